package severity

import (
	"context"
	"log"
	"sync"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// What a world, a client or the asker of a job waits for is of severity info; what nobody waits for is a warning.

type arena interface {
	Act(force float64) (seen []float32, done bool)
}

type pilot struct{}

func (pilot) force(seen []float32) float64 { return tensor.From(seen).Norm().Square().Item() }

func fly(w arena, p pilot, seen []float32) {
	for done := false; !done; {
		seen, done = w.Act(p.force(seen))
	}
}

type sight struct {
	at   []float32
	done bool
}

type car struct{ s sight }

func (c *car) steer(f float64) sight { return c.s }

func drive(c *car, n int) {
	s := c.s
	for range n {
		s = c.steer(tensor.From(s.at).Square().Norm().Item())
	}
}

type board struct{ cells []float32 }

func (b *board) state() []float32 { return b.cells }
func (b *board) put(i int) bool   { b.cells[i]++; return b.cells[i] > 1 }
func (b *board) note(v float64)   {}

func selfPlay(b *board) {
	for over := false; !over; {
		over = b.put(int(tensor.From(b.state()).Square().ItemInt()))
	}
}

func (b *board) fill(n int) {
	for range n {
		b.put(int(tensor.From(b.cells).Square().ItemInt()))
	}
}

func (b *board) observe(n int) {
	for i := range n {
		b.note(tensor.From(b.cells[i:]).Square().Item()) // want `AT001`
	}
}

func generate(tokens []int64, n int, emit func(int64) bool) []int64 {
	for range n {
		t := tensor.From(tokens).Square().ItemInt()
		if !emit(t) {
			break
		}
		tokens = append(tokens, t)
	}
	return tokens
}

func complete(tokens []int64, n int) []int64 {
	for range n {
		t := tensor.From(tokens).Square().ItemInt() // want `AT00`
		tokens = append(tokens, t)
	}
	return tokens
}

type job struct {
	id int
	x  []float32
}

type result struct {
	id int
	v  float64
}

func work(ctx context.Context, jobs <-chan job, out chan<- result, alarm func(float64)) (kept []result) {
	for j := range jobs {
		v, err := tensor.From(j.x).Square().ItemContext(ctx)
		if err != nil {
			return nil
		}
		out <- result{j.id, v}
	}
	for j := range jobs {
		if v := tensor.From(j.x).Square().Item(); v > 1 {
			alarm(v)
		}
	}
	for j := range jobs {
		kept = append(kept, result{j.id, tensor.From(j.x).Square().Item()}) // want `AT001`
	}
	return kept
}

// Goroutines that only print, and numbers that nobody needs yet.

func spawned(xs []*tensor.Tensor, out []float64) {
	later := asyncrt.NewLater[struct{}](8)
	for i, x := range xs {
		y := x.Square()
		go log.Println(i, y) // want `AT013`
		go func() {
			v := y.Item()
			out[i] = v
		}()
		later.Do(func() { out[i] = y.Item() }) // want `AT001`
		s := scored{x.Norm()}
		later.Do(func() { out[i] = s.value() }) // want `AT001`
		at := later.Read(x.Norm())
		later.Do(func() { out[i] += at.Item() })
	}
	later.Flush()
}

type scored struct{ loss *tensor.Tensor }

func (s scored) value() float64 { return s.loss.Item() }

// meters read before they lock, so that nobody waits for the lock.
type meter struct {
	mu         sync.Mutex
	sum, total float64
}

func (m *meter) Observe(x *tensor.Tensor) {
	v := x.Norm().Item()
	m.mu.Lock()
	m.sum += v
	m.mu.Unlock()
}

func (m *meter) Add(x *tensor.Tensor) {
	m.total += x.Norm().Item() // want `AT012`
}

// A wait and a read are two findings, as each has to go; of the same tensor, one, if nobody looks at the error.

func waits(xs []*tensor.Tensor, opt *optim.Optimizer) (sum float64, err error) {
	for _, x := range xs {
		loss := x.Norm()
		opt.Minimize(loss)
		if err := loss.Wait(); err != nil { // want `AT009`
			return 0, err
		}
		sum += loss.Square().Item() // want `AT001`
	}
	for _, x := range xs {
		loss := x.Norm()
		opt.Minimize(loss)
		if err := loss.Wait(); err != nil { // want `AT009`
			return 0, err
		}
		sum += loss.Item() // want `AT001`
	}
	for _, x := range xs {
		loss := x.Norm()
		opt.Minimize(loss)
		_ = loss.Wait()
		opt.ZeroGrad()
		sum += loss.Item() // want `AT001`
	}
	return sum, nil
}

// A search that is all a function does can try many rates at once.

func shorter(x, d *tensor.Tensor, f func(*tensor.Tensor) *tensor.Tensor, limit float64) *tensor.Tensor {
	for rate := 1.0; rate > 1e-9; rate /= 2 {
		y := x.AddScaled(d, rate)
		if f(y).Item() < limit { // want `AT005`
			return y
		}
	}
	return x
}

// A loop that tries sizes is short.

func largest(try func(n int) *tensor.Tensor) (best int) {
	for n := 1; n < 1<<20; n *= 2 {
		if err := try(n).Wait(); err != nil {
			break
		}
		best = n
	}
	return best
}
