package tensor_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/fault"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/op"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func ExampleDead() {
	x, w := tensor.Ones(100, 100), tensor.Full(0.01, 100, 100)
	for range 20 {
		h := x.MatMul(w)
		y := h.Tanh()
		tensor.Dead(x, h) // used by operations that are queued, and by nobody after them
		x = y
	}
	fmt.Printf("%.4f\n", x.At(3, 3))
	// Output: 0.2616
}

// withoutCollector runs f without garbage collection. live returns how many bytes are in use after everything has
// run.
func withoutCollector(t *testing.T, f func(t *testing.T, on tensor.Maker, live func() int64)) {
	eachBackend(t, func(t *testing.T, b *fault.Backend, on device.Device, e *engine.Engine) {
		defer debug.SetGCPercent(debug.SetGCPercent(-1))
		before := b.Memory().Stats().Live
		f(t, tensor.On(on), func() int64 {
			if err := e.WaitAll(context.Background()); err != nil {
				t.Errorf("%+v", err)
			}
			low := b.Memory().Stats().Live
			for range 100 { // a worker may still be giving back memory
				runtime.Gosched()
				low = min(low, b.Memory().Stats().Live)
			}
			return low - before
		})
	})
}

// Memory of a tensor that is declared dead is given back when the operations that use it have run, whether the
// tensor has one handle or several.
func TestDead(t *testing.T) {
	withoutCollector(t, func(t *testing.T, on tensor.Maker, live func() int64) {
		x := on.Full(2, 64, 64)
		for range 8 {
			y := x.MulScalar(2)
			column, z := y.Slice(1, 0, 1), y.Detach()
			sum := column.Add(z)
			tensor.Dead(y, x)
			tensor.Dead(column)
			x = sum.SubScalar(3)
			tensor.Dead(sum, z)
		}
		if got := live(); got < 4*64*64 || got > 2*4*64*64 {
			t.Errorf("%d bytes are live, one result has %d", got, 4*64*64)
		}
		if got := x.At(5, 5); got != 1+(1<<16) {
			t.Errorf("the result is %v, want %v", got, 1+(1<<16))
		}
		tensor.Dead(x)
		if got := live(); got != 0 {
			t.Errorf("%d bytes are live in the end", got)
		}
	})
}

// Reads that first copy a tensor to the host give that copy back.
func TestReadsKeepNothing(t *testing.T) {
	withoutCollector(t, func(t *testing.T, on tensor.Maker, live func() int64) {
		x := on.Full(2, 64, 64)
		host := device.MemoryOf(device.CPU().Backend())
		held := live() // of x
		before := host.Stats().Live
		for name, read := range map[string]func(){
			"Float32s":    func() { x.Float32s() },
			"a view":      func() { x.T().Float32s() },
			"Matrix":      func() { x.Matrix() },
			"MarshalJSON": func() { x.MarshalJSON() },
			"String":      func() { _ = x.String() },
			"Format":      func() { _ = fmt.Sprintf("%.2f", x) },
		} {
			read()
			if got, after := live(), host.Stats().Live; got > held || after > before {
				t.Errorf("%s leaves %d bytes live on the device and %d on the host", name, got-held, after-before)
			}
		}
	})
}

// Every use of a dead handle panics and names the line where it was declared dead. Methods that don't need the
// elements work.
func TestUseAfterDead(t *testing.T) {
	p := tensor.NewParam(tensor.Ones(1))
	live := tensor.Ones(1)
	for name, use := range map[string]func(x *tensor.Tensor){
		"Add":          func(x *tensor.Tensor) { x.Add(live) },
		"Sub":          func(x *tensor.Tensor) { live.Sub(x) },
		"Where":        func(x *tensor.Tensor) { tensor.Where(live.As(tensor.Bool), live, x) },
		"Sum":          func(x *tensor.Tensor) { x.Sum() },
		"MatMul":       func(x *tensor.Tensor) { live.MatMul(x) },
		"Mean":         func(x *tensor.Tensor) { x.Mean() },
		"Norm":         func(x *tensor.Tensor) { x.Norm() },
		"Softmax":      func(x *tensor.Tensor) { x.Softmax(0) },
		"LogSumExp":    func(x *tensor.Tensor) { x.LogSumExp() },
		"Take":         func(x *tensor.Tensor) { x.Take(0, live.As(tensor.Int64)) },
		"Pick":         func(x *tensor.Tensor) { x.Pick(live.Row(0).As(tensor.Int64)) },
		"RowAt":        func(x *tensor.Tensor) { x.RowAt(live.As(tensor.Int64)) },
		"Reshape":      func(x *tensor.Tensor) { x.Reshape(1, 1) },
		"As":           func(x *tensor.Tensor) { x.As(x.DType()) },
		"To":           func(x *tensor.Tensor) { x.To(x.Device()) },
		"Detach":       func(x *tensor.Tensor) { x.Detach() },
		"Track":        func(x *tensor.Tensor) { x.Track() },
		"Set":          func(x *tensor.Tensor) { p.Set(x) },
		"Backward":     func(x *tensor.Tensor) { x.Backward() },
		"Grad":         func(x *tensor.Tensor) { tensor.Grad(p.Value().Sum(), x) },
		"Item":         func(x *tensor.Tensor) { x.Item() },
		"At":           func(x *tensor.Tensor) { x.At(0) },
		"Float32s":     func(x *tensor.Tensor) { x.Float32s() },
		"ItemContext":  func(x *tensor.Tensor) { x.ItemContext(context.Background()) },
		"Wait":         func(x *tensor.Tensor) { x.Wait() },
		"WaitContext":  func(x *tensor.Tensor) { x.WaitContext(context.Background()) },
		"Ready":        func(x *tensor.Tensor) { x.Ready() },
		"MarshalJSON":  func(x *tensor.Tensor) { x.MarshalJSON() },
		"SliceOf":      func(x *tensor.Tensor) { tensor.SliceOf[float32](x) },
		"Dead":         func(x *tensor.Tensor) { tensor.Dead(live.Detach(), x) },
		"SetBuffer":    func(x *tensor.Tensor) { tensor.NewBuffer(nil).Set(x) },
		"WaitFunction": func(x *tensor.Tensor) { tensor.Wait(live, x) },
	} {
		for _, tracked := range []bool{false, true} {
			x := tensor.Ones(1)
			if tracked {
				x = p.Value().MulScalar(1)
			}
			_, file, line, _ := runtime.Caller(0)
			tensor.Dead(x)
			m := mistake(func() { use(x) })
			want := fmt.Sprintf("%s at %s:%d", op.MistakeDead, file, line+1)
			if m == nil || m.Text != want || !strings.HasPrefix(name, m.Op) {
				t.Errorf("%s: %v, want %s", name, m, want)
			}
			if x.Size() != 1 || x.DType() != tensor.Float32 || fmt.Sprintf("%i", x) != "float32[1] on cpu" || !x.SharesMemory(x) {
				t.Errorf("what is known of a dead handle has changed: %i", x)
			}
		}
	}
	x := tensor.Ones(3)
	if m := mistake(func() { tensor.Dead(x, x) }); m == nil || m.Op != "Dead" {
		t.Errorf("dead twice in one call: %v", m)
	}
	tensor.Dead()
	if live.Item() != 1 {
		t.Error("a handle died with another")
	}
	x = tensor.Ones(3)
	tensor.Dead(x)
	if text := fmt.Sprint(x); !strings.Contains(text, op.MistakeDead) || !strings.Contains(text, filepath.Base("dead_test.go")) {
		t.Errorf("printed as %s", text)
	}
}

// The elements are kept by other handles, cells, States, and gradients that have not been computed.
func TestDeadLeavesOthers(t *testing.T) {
	withoutCollector(t, func(t *testing.T, on tensor.Maker, live func() int64) {
		const n = 64
		for name, other := range map[string]func(x *tensor.Tensor) (read func() *tensor.Tensor){
			"a view": func(x *tensor.Tensor) func() *tensor.Tensor { v := x.T(); return func() *tensor.Tensor { return v } },
			"Detach": func(x *tensor.Tensor) func() *tensor.Tensor {
				v := x.Detach()
				return func() *tensor.Tensor { return v }
			},
			"the type": func(x *tensor.Tensor) func() *tensor.Tensor {
				v := x.As(x.DType())
				return func() *tensor.Tensor { return v }
			},
			"the device": func(x *tensor.Tensor) func() *tensor.Tensor {
				v := x.To(x.Device())
				return func() *tensor.Tensor { return v }
			},
			"a parameter": func(x *tensor.Tensor) func() *tensor.Tensor { p := tensor.NewParam(x); return p.Value },
			"a buffer":    func(x *tensor.Tensor) func() *tensor.Tensor { p := tensor.NewBuffer(x); return p.Value },
			"frozen": func(x *tensor.Tensor) func() *tensor.Tensor {
				p := tensor.NewParam(x)
				f := p.Frozen()
				p.Set(on.Zeros(n, n))
				return f.Value
			},
			"a snapshot": func(x *tensor.Tensor) func() *tensor.Tensor {
				p := tensor.NewParam(x)
				s := tensor.Snapshot(p)
				p.Set(on.Zeros(n, n))
				return func() *tensor.Tensor { s.Restore(); return p.Value() }
			},
			"a gradient": func(x *tensor.Tensor) func() *tensor.Tensor {
				p := tensor.NewParam(on.Ones(n, n))
				loss := x.Mul(p.Value()).Sum()
				return func() *tensor.Tensor { loss.Backward(); return p.Grad() }
			},
			"a gradient that needs its result": func(x *tensor.Tensor) func() *tensor.Tensor {
				p := tensor.NewParam(x)
				most := p.Value().Reshape(n*n/2, 2).Max(1)
				loss := most.Sum()
				tensor.Dead(most)
				return func() *tensor.Tensor { loss.Backward(); return p.Grad().MulScalar(14) } // two share each
			},
			"a gradient of a gradient": func(x *tensor.Tensor) func() *tensor.Tensor {
				p := tensor.NewParam(on.Ones(n, n))
				g := tensor.Grad(x.Mul(p.Value()).Mul(p.Value()).MulScalar(0.5).Sum(), p.Value())[0]
				return func() *tensor.Tensor { g.Sum().Backward(); return p.Grad() }
			},
		} {
			x := on.Full(7, n, n)
			read := other(x)
			tensor.Dead(x)
			on.Full(3, n, n).Add(on.Full(4, n, n)).Wait() // would overwrite its memory, if that was given back
			if got := read().Sum().Item(); got != 7*n*n {
				t.Errorf("%s: the sum is %v, want %v", name, got, 7*n*n)
			}
		}
		live()
	})
}

// If a guess is discarded, handles that it declared dead are alive again, except for those made within it. If it is
// kept, their memory is given back.
func TestDeadInVain(t *testing.T) {
	withoutCollector(t, func(t *testing.T, on tensor.Maker, live func() int64) {
		one := on.Full(1, 64, 64)
		bytes := live() // more than the elements in checked builds
		sum := one.Sum()
		small := live() - bytes // such results are left to the collector
		tensor.Dead(one, sum)
		isNaive := strings.Contains(t.Name(), fmt.Sprintf("Mode:%v", engine.Naive)) // it has no count of that
		for _, keep := range []bool{false, true} {
			base := live()
			x, p := on.Full(2, 64, 64), tensor.NewParam(nil)
			old := on.Full(5, 64, 64)
			p.Set(old)
			tensor.Dead(old)
			before := tensor.Snapshot(p)
			sp := tensor.CurrentEngine().Speculate()
			g := sp.Guess()
			y := x.MulScalar(3)
			v := p.Value()
			next := v.Add(y)
			p.Set(next)
			tensor.Dead(x, y, v, next)
			if m := mistake(func() { y.Sum() }); m == nil && !isNaive {
				t.Error("what was made after the guess began is not dead")
			}
			got := live() - base
			if got > 3*bytes+bytes/2+small && !isNaive { // x, the old value and the new one
				t.Errorf("%d bytes are live while it is open, a result has %d", got, bytes)
			}
			if !keep {
				g.Discard()
				sp.End()
				before.Restore()
				if a, b := x.Sum().Item(), p.Value().Sum().Item(); a != 2*64*64 || b != 5*64*64 {
					t.Errorf("after Discard the sums are %v and %v", a, b)
				}
				tensor.Dead(x)
				continue
			}
			g.Keep()
			sp.End()
			tensor.Dead(before.Tensors()[0])
			if got := live() - base; got < bytes || got > bytes+bytes/2+small {
				t.Errorf("%d bytes are live after Keep, a result has %d", got, bytes)
			}
			if got := p.Value().Sum().Item(); got != 11*64*64 {
				t.Errorf("after Keep the sum is %v", got)
			}
		}
	})
}

// TestRandomDeaths compares random programs that declare handles dead with a plain interpreter, and their gradients
// with those of the same program without Dead.
func TestRandomDeaths(t *testing.T) {
	seed := uint64(rand.Uint32())
	for n := range uint64(15) {
		t.Run(fmt.Sprintf("seed=%d", seed+n), func(t *testing.T) {
			var want []float32
			everywhere(t, func(t *testing.T, dev device.Device) {
				got := mortal{t: t, on: tensor.On(dev), rng: rand.New(rand.NewPCG(seed+n, 0)), deaths: true}.run()
				if want == nil {
					want = mortal{t: t, on: tensor.On(dev), rng: rand.New(rand.NewPCG(seed+n, 0))}.run()
				}
				if !slices.Equal(got, want) {
					t.Errorf("got %v, without deaths %v", got, want)
				}
			})
		})
	}
}

// A mortal is a random program.
type mortal struct {
	t      *testing.T
	on     tensor.Maker
	rng    *rand.Rand
	deaths bool
}

// side is the number of rows and columns of all matrices. They are too large for the memory of a handle.
const side = 40

// A known is a tensor with the elements that it should have.
type known struct {
	x     *tensor.Tensor
	data  []float64
	alive bool
}

// grid returns a matrix with the elements f(i, j).
func grid(f func(i, j int) float64) []float64 {
	data := make([]float64, side*side)
	for at := range data {
		data[at] = f(at/side, at%side)
	}
	return data
}

func (m mortal) run() (results []float32) {
	var all []*known
	add := func(x *tensor.Tensor, f func(i, j int) float64) { all = append(all, &known{x, grid(f), true}) }
	one := func(i, j int) float64 { return 1 }
	param, held := tensor.NewParam(m.on.Ones(side, side)), grid(one)
	var losses []*tensor.Tensor
	snapshot, then := tensor.Snapshot(param), held
	for range 120 {
		var living []*known
		for _, k := range all {
			if k.alive {
				living = append(living, k)
			}
		}
		if len(living) < 3 {
			c := float64(m.rng.IntN(5))
			add(m.on.Full(c, side, side), func(i, j int) float64 { return c })
			continue
		}
		a, b := living[m.rng.IntN(len(living))], living[m.rng.IntN(len(living))]
		switch m.rng.IntN(12) {
		case 0, 1:
			add(a.x.Add(b.x), func(i, j int) float64 { return a.data[i*side+j] + b.data[i*side+j] })
		case 2:
			add(a.x.T(), func(i, j int) float64 { return a.data[j*side+i] })
		case 3:
			row := m.on.Arange(0, side, 1)
			add(a.x.Add(row), func(i, j int) float64 { return a.data[i*side+j] + float64(j) })
			m.die(row)
		case 4:
			part := a.x.Slice(0, 3, 4)
			add(part.BroadcastTo(side, side), func(i, j int) float64 { return a.data[3*side+j] })
			m.die(part)
		case 5:
			d := a.x.Detach()
			add(d.Flatten().Reshape(side, side), func(i, j int) float64 { return a.data[i*side+j] })
			m.die(d)
		case 6:
			param.Set(a.x)
			held = a.data
		case 7:
			v := param.Value()
			add(v.SubScalar(1), func(i, j int) float64 { return held[i*side+j] - 1 })
			m.die(v)
		case 8:
			if m.rng.IntN(2) == 0 {
				snapshot, then = tensor.Snapshot(param), held
			} else {
				snapshot.Restore()
				held = then
			}
		case 9:
			v := param.Value()
			h := v.MulScalar(0.001).Tanh()
			product := h.MatMul(a.x.Detach().MulScalar(0.0001))
			losses = append(losses, product.Mul(h).Mean())
			m.die(v, h, product)
		case 10:
			if len(losses) > 0 {
				l := losses[len(losses)-1]
				losses = losses[:len(losses)-1]
				l.Backward()
				if g := param.Grad(); g != nil {
					s := g.Sum()
					results = append(results, float32(s.Item()))
					m.die(g, s)
				}
				if m.rng.IntN(2) == 0 {
					param.ZeroGrad()
				}
			}
		default:
			m.die(a.x)
			a.alive = false
		}
	}
	for _, k := range all {
		if !k.alive {
			continue
		}
		for at, got := range k.x.Float32s() {
			// Greater numbers were rounded.
			if want := k.data[at]; math.Abs(want) < 1<<23 && float64(got) != want {
				m.t.Fatalf("element %d is %v, want %v", at, got, want)
			}
		}
	}
	return results
}

func (m mortal) die(xs ...*tensor.Tensor) {
	if m.deaths {
		tensor.Dead(xs...)
	}
}
