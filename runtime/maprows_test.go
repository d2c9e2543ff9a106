package asyncrt_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func ExampleMapRows() {
	x, w := tensor.From([]float32{1, 0, 0, 1, 2, 3}, 3, 2), tensor.From([]float32{1, 2, 3, 4}, 2, 2)
	var list []*tensor.Tensor
	products := asyncrt.MapRows(3, func(row asyncrt.RowOf) *tensor.Tensor { return row(x).MatMul(w) })
	for i := range 3 {
		list = append(list, products.Row(i))
	}
	fmt.Println(tensor.Stack(0, list...))
	// Output:
	// [[ 1.  2.]
	//  [ 3.  4.]
	//  [11. 16.]]
}

// listed runs a loop that adds tensors to a list. It returns the list, and as text all that can be known of it: the
// tensors, how the loop ended, and what failed.
func listed(f func(add func(*tensor.Tensor))) (list []*tensor.Tensor, text string) {
	var b strings.Builder
	b.WriteString(lookedAt(func() any {
		f(func(t *tensor.Tensor) { list = append(list, t) })
		return len(list)
	}))
	for _, t := range list {
		fmt.Fprintf(&b, "\n%i %s", t, lookedAt(func() any {
			if t.DType() == tensor.Bool {
				return t.Bools()
			} else if t.DType() == tensor.Int64 {
				return t.Int64s()
			} else if t.DType() == tensor.Float64 {
				return t.Float64s()
			}
			return fmt.Sprintf("%x", t.Float32s())
		}))
	}
	if len(list) > 0 {
		fmt.Fprintf(&b, "\nstacked %s", lookedAt(func() any { return fmt.Sprint(tensor.Stack(0, list...)) }))
	}
	if err := asyncrt.WaitAll(); err != nil {
		b.WriteString("\nleft " + roots(err))
	}
	return list, b.String()
}

// roots returns the causes of the errors that WaitAll returned, without lines.
func roots(err error) string {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var all []string
		for _, e := range many.Unwrap() {
			all = append(all, roots(e))
		}
		return strings.Join(all, "; ")
	}
	if op, ok := err.(*asyncrt.OpError); ok {
		return op.Err.Error()
	}
	return err.Error()
}

// MapRows has the results, the end, the failures in WaitAll and the gradients of the loop.
func TestMapRows(t *testing.T) {
	devices(t, func(t *testing.T, on device.Device) {
		_ = asyncrt.WaitAll()
		r := rand.New(rand.NewPCG(*seed, 6))
		t.Logf("-seed %d", *seed)
		normal := func(shape ...int) *tensor.Tensor {
			data := make([]float32, device.Shape(shape).Size())
			for i := range data {
				data[i] = float32(r.NormFloat64())
			}
			return tensor.FromOn(on, data, shape...)
		}
		x, y, w := normal(9, 5), normal(7, 5), normal(5, 3)
		wide, tall := normal(12, 1<<19), normal(12, 700)
		ints := tensor.FromOn(on, []int64{3, 1 << 60, 2, 5, 0, -1, 4, 8, 1}, 9)
		labels := tensor.FromOn(on, []int64{0, 2, 1, 1, 0, 2, 2, 1, 0}, 9)
		bad := tensor.FromOn(on, []int64{0, 2, 3, 1, 0, -1, 2, 1, 0}, 9)
		p := tensor.NewParam(normal(5, 3))
		failed, _ := failing(on)
		_ = asyncrt.WaitAll()
		for _, c := range []struct {
			name  string
			n     int
			of    func(row asyncrt.RowOf) *tensor.Tensor
			calls int // of the function; 0 means one more than in the loop
		}{
			{"the row", 9, func(row asyncrt.RowOf) *tensor.Tensor { return row(x) }, 1},
			{"a number", 9, func(row asyncrt.RowOf) *tensor.Tensor { return row(x).Sum() }, 1},
			{"some rows", 4, func(row asyncrt.RowOf) *tensor.Tensor { return row(x).Softmax(-1) }, 1},
			{"one row", 1, func(row asyncrt.RowOf) *tensor.Tensor { return row(x).Softmax(-1) }, 1},
			{"none", 0, func(row asyncrt.RowOf) *tensor.Tensor { return row(x).Mean() }, 0},
			{"a product", 9, func(row asyncrt.RowOf) *tensor.Tensor { return row(x).MatMul(w).Tanh() }, 1},
			{"from the other side", 9, func(row asyncrt.RowOf) *tensor.Tensor { return w.T().MatMul(row(x)) }, 1},
			{"two tensors", 7, func(row asyncrt.RowOf) *tensor.Tensor { return row(x).Sub(row(y)).Norm() }, 1},
			{"a product of rows", 7, func(row asyncrt.RowOf) *tensor.Tensor { return row(x).Dot(row(y)) }, 1},
			{"too few rows", 9, func(row asyncrt.RowOf) *tensor.Tensor { return row(x).Dot(row(y)) }, 0},
			{"of no row", 9, func(row asyncrt.RowOf) *tensor.Tensor { return w.Sum(0) }, 1},
			{"joined", 9, func(row asyncrt.RowOf) *tensor.Tensor {
				return tensor.Concat(0, row(x), w.Row(0)).Reshape(2, 4).T().Slice(0, 1, 3)
			}, 1},
			{"chosen", 9, func(row asyncrt.RowOf) *tensor.Tensor {
				return tensor.Where(row(x).Gt(w.Row(0).Sum()), row(x).Neg(), w.Sum())
			}, 1},
			{"integers", 9, func(row asyncrt.RowOf) *tensor.Tensor { return row(ints).AddScalar(1).As(tensor.Float64) }, 1},
			{"divided integers", 9, func(row asyncrt.RowOf) *tensor.Tensor { return row(ints).Div(row(ints)) }, 0},
			{"divided floats", 9, func(row asyncrt.RowOf) *tensor.Tensor { return row(x).Div(row(x).Sum()).DivScalar(0) }, 1},
			{"of a class", 9, func(row asyncrt.RowOf) *tensor.Tensor { return nn.CrossEntropy(row(x).MatMul(w), row(labels)) }, 0},
			{"of no class", 9, func(row asyncrt.RowOf) *tensor.Tensor { return nn.CrossEntropy(row(x).MatMul(w), row(bad)) }, 0},
			{"of the best class", 9, func(row asyncrt.RowOf) *tensor.Tensor { return x.RowAt(row(x).ArgMax()) }, 0},
			{"shapes that don't match", 9, func(row asyncrt.RowOf) *tensor.Tensor { return row(x).MatMul(y) }, 0},
			{"nil", 9, func(row asyncrt.RowOf) *tensor.Tensor { return row((*tensor.Tensor)(nil)).Sum() }, 0},
			{"no result", 9, func(row asyncrt.RowOf) *tensor.Tensor { row(x).Sum(); return nil }, 0},
			{"a read", 9, func(row asyncrt.RowOf) *tensor.Tensor { return row(x).MulScalar(row(x).Sum().Item()) }, 0},
			{"a read that nobody misses", 9, func(row asyncrt.RowOf) (t *tensor.Tensor) {
				defer func() {
					if recover() != nil {
						t = x.Row(0)
					}
				}()
				return row(x).MulScalar(row(x).Sum().Item())
			}, 0},
			{"a doubt that nobody has", 9, func(row asyncrt.RowOf) (t *tensor.Tensor) {
				defer func() {
					if recover() != nil {
						t = x.Row(0)
					}
				}()
				return row(ints).Div(row(ints))
			}, 0},
			{"no axes", 9, func(row asyncrt.RowOf) *tensor.Tensor { return row(x.Sum()).Sum() }, 0},
			{"a failed tensor", 3, func(row asyncrt.RowOf) *tensor.Tensor { return row(failed).Exp().Sum() }, 1},
			{"beside a failed tensor", 9, func(row asyncrt.RowOf) *tensor.Tensor { return row(x).Mul(failed.Sum()).Sum() }, 1},
			{"tracked", 9, func(row asyncrt.RowOf) *tensor.Tensor { return row(x).MatMul(p.Value()) }, 0},
			{"tracked in between", 9, func(row asyncrt.RowOf) *tensor.Tensor { return row(x).MatMul(p.Value().Detach()) }, 1},
			{"tracked rows", 5, func(row asyncrt.RowOf) *tensor.Tensor { return row(p.Value()) }, 0},
			{"a tracked part", 5, func(row asyncrt.RowOf) *tensor.Tensor { return tensor.Concat(0, row(x), p.Value().Flatten()) }, 0},
			{"wide", 12, func(row asyncrt.RowOf) *tensor.Tensor { return row(wide).Sum() }, 3 + 1},
			{"wide in between", 12, func(row asyncrt.RowOf) *tensor.Tensor {
				return row(tall).Unsqueeze(0).Mul(row(tall).Unsqueeze(1)).Sum(0).Max()
			}, 3 + 1},
		} {
			calls := 0
			loop := func(of func(j int) *tensor.Tensor) func(func(*tensor.Tensor)) {
				return func(add func(*tensor.Tensor)) {
					for j := range c.n {
						add(of(j))
					}
				}
			}
			before, want := listed(loop(func(j int) *tensor.Tensor {
				return c.of(func(x *tensor.Tensor) *tensor.Tensor { return x.Row(j) })
			}))
			m := asyncrt.MapRows(c.n, func(row asyncrt.RowOf) *tensor.Tensor { calls++; return c.of(row) })
			after, got := listed(loop(m.Row))
			if got != want {
				t.Errorf("%s: got\n%s\nwant\n%s", c.name, got, want)
			}
			if c.calls > 0 && calls > c.calls {
				t.Errorf("%s: the function ran %d times", c.name, calls)
			}
			if !strings.Contains(c.name, "racked") || len(before) != len(after) {
				continue
			}
			var gradients []string
			for _, list := range [][]*tensor.Tensor{before, after} {
				p.ZeroGrad()
				gradients = append(gradients, lookedAt(func() any {
					tensor.Stack(0, list...).Square().Sum().Backward()
					return fmt.Sprintf("%x", p.Grad().Float32s())
				}))
			}
			if gradients[0] != gradients[1] {
				t.Errorf("%s: the gradient is %s, want %s", c.name, gradients[1], gradients[0])
			}
		}
	})
}

// Rows may be asked for in any order, and may be out of range.
func TestMapRowsInAnyOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(*seed, 7))
	t.Logf("-seed %d", *seed)
	for _, width := range []int{3, 1 << 18} {
		x := tensor.Zeros(30, width).AddScalar(1).CumSum(0)
		of := func(row asyncrt.RowOf) *tensor.Tensor { return row(x).Slice(0, 0, 2).Exp() }
		m := asyncrt.MapRows(25, of)
		var alone, together []*tensor.Tensor
		for range 30 {
			j := r.IntN(60) - 30
			alone = append(alone, of(func(x *tensor.Tensor) *tensor.Tensor { return x.Row(j) }))
			together = append(together, m.Row(j))
		}
		for i := range alone {
			if got, want := together[i].String(), alone[i].String(); got != want {
				t.Errorf("width %d: %s, want %s", width, got, want)
			}
		}
	}
}

// A function of rows that uses other rows has the results of the loop, even where some of them can't be computed
// together.
func TestMapRowsOfRows(t *testing.T) {
	_ = asyncrt.WaitAll()
	x, w, p := tensor.Randn(40, 6), tensor.Randn(6, 6), tensor.NewParam(tensor.Randn(6, 6))
	long, ints := tensor.Randn(40, 1<<16), tensor.Arange(0, 40, 1).As(tensor.Int64)
	type f = func(row asyncrt.RowOf) *tensor.Tensor
	for _, first := range []f{
		func(row asyncrt.RowOf) *tensor.Tensor { return row(x).MatMul(w) },
		func(row asyncrt.RowOf) *tensor.Tensor { return row(x).MatMul(p.Value()) },
		func(row asyncrt.RowOf) *tensor.Tensor { return row(long).Slice(0, 0, 6) },
		func(row asyncrt.RowOf) *tensor.Tensor { return row(ints).Div(row(ints)).As(tensor.Float32).Mul(row(x)) },
		func(row asyncrt.RowOf) *tensor.Tensor { return row(x).MatMul(long) },
	} {
		for _, second := range []func(this *tensor.Tensor, row asyncrt.RowOf) *tensor.Tensor{
			func(this *tensor.Tensor, row asyncrt.RowOf) *tensor.Tensor { return this.Softmax(0).Mul(row(x)) },
			func(this *tensor.Tensor, row asyncrt.RowOf) *tensor.Tensor { return this.Dot(p.Value().Row(0)) },
			func(this *tensor.Tensor, row asyncrt.RowOf) *tensor.Tensor {
				return row(long).MulScalar(2).Sum().Add(this)
			},
			func(this *tensor.Tensor, row asyncrt.RowOf) *tensor.Tensor { return this.Add(tensor.Ones(5)) },
		} {
			loop := func(h, y func(j int) *tensor.Tensor) func(func(*tensor.Tensor)) {
				return func(add func(*tensor.Tensor)) {
					for j := range 40 {
						if h != nil && j%3 == 0 {
							h(j)
						}
						add(y(j))
					}
				}
			}
			alone := func(j int) asyncrt.RowOf { return func(x *tensor.Tensor) *tensor.Tensor { return x.Row(j) } }
			h := func(j int) *tensor.Tensor { return first(alone(j)) }
			_, want := listed(loop(h, func(j int) *tensor.Tensor { return second(h(j), alone(j)) }))
			m := asyncrt.MapRows(40, first)
			n := m.Map(func(asyncrt.RowOf) *tensor.Tensor { return m.This().Neg() })
			q := n.Map(func(row asyncrt.RowOf) *tensor.Tensor { return second(n.This().Neg(), row) })
			if _, got := listed(loop(m.Row, q.Row)); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		}
	}
}

// A layer draws its weights when it first gets a row, even if the rows are computed one by one in the end.
func TestMapRowsOfALayer(t *testing.T) {
	devices(t, func(t *testing.T, on device.Device) {
		var want string
		for _, detach := range []bool{false, true} {
			for _, together := range []bool{false, true} {
				tensor.Seed(7)
				x := tensor.On(on).Randn(4, 2, 3)
				net := nn.Sequential(nn.Dense(5), nn.ReLU(), nn.Dense(2))
				m := asyncrt.MapRows(4, func(row asyncrt.RowOf) *tensor.Tensor { return net.Forward(row(x)) })
				if detach {
					m.Detach()
				}
				row := m.Row
				if !together {
					row = func(j int) *tensor.Tensor { return net.Forward(x.Row(j)) }
				}
				_, got := listed(func(add func(*tensor.Tensor)) {
					for j := range 4 {
						add(row(j))
					}
					add(tensor.On(on).Randn(2))
				})
				for _, p := range net.Params() {
					got += p.Value().String()
				}
				if want == "" {
					want = got
				}
				if got != want {
					t.Errorf("detached %v, together %v: got\n%s\nwant\n%s", detach, together, got, want)
				}
			}
		}
	})
}

// After Detach, tracked rows are computed together.
func TestMapRowsDetach(t *testing.T) {
	x, p := tensor.Randn(50, 4), tensor.NewParam(tensor.Randn(4, 4))
	for _, of := range []func(row asyncrt.RowOf) *tensor.Tensor{
		func(row asyncrt.RowOf) *tensor.Tensor { return row(x).MatMul(p.Value()).Tanh() },
		func(row asyncrt.RowOf) *tensor.Tensor { return tensor.Concat(0, row(x), p.Value().Row(0)) },
		func(row asyncrt.RowOf) *tensor.Tensor { return p.Value() },
	} {
		calls := 0
		m := asyncrt.MapRows(50, func(row asyncrt.RowOf) *tensor.Tensor { calls++; return of(row) }).Detach()
		for j := range 50 {
			want := of(func(x *tensor.Tensor) *tensor.Tensor { return x.Row(j) })
			if got := m.Row(j); got.String() != want.String() {
				t.Errorf("row %d is %v, want %v", j, got, want)
			}
		}
		if calls != 1 {
			t.Errorf("the function ran %d times", calls)
		}
	}
}

// One row after the other, and all together.
func BenchmarkMapRows(b *testing.B) {
	x, w := tensor.Randn(1000, 16), tensor.Randn(16, 8)
	of := func(row asyncrt.RowOf) *tensor.Tensor { return row(x).MatMul(w).Tanh() }
	run := func(name string, row func() func(int) *tensor.Tensor) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				list := make([]*tensor.Tensor, 0, 1000)
				f := row()
				for j := range 1000 {
					list = append(list, f(j))
				}
				tensor.Stack(0, list...).Sum().Item()
			}
		})
	}
	run("alone", func() func(int) *tensor.Tensor {
		return func(j int) *tensor.Tensor { return of(func(x *tensor.Tensor) *tensor.Tensor { return x.Row(j) }) }
	})
	run("together", func() func(int) *tensor.Tensor { return asyncrt.MapRows(1000, of).Row })
}

// What a function draws, and what it counts, is drawn and counted for each row.
func TestMapRowsThatChangeSomething(t *testing.T) {
	devices(t, func(t *testing.T, on device.Device) {
		nets := map[string]func() nn.Module{
			"drops":   func() nn.Module { return nn.Sequential(nn.Dense(3), nn.Dropout(0.5)) },
			"counts":  func() nn.Module { return nn.BatchNorm() },
			"is lazy": func() nn.Module { return nn.Dense(3) },
		}
		for name, net := range nets {
			run := func(rows func(m nn.Module, x *tensor.Tensor) []*tensor.Tensor) string {
				tensor.Seed(1)
				x, m := tensor.On(on).Randn(4, 5, 2), net()
				list := rows(m, x)
				list = append(list, tensor.On(on).Rand(5, 3)) // what comes next
				for _, c := range nn.Cells(m) {
					list = append(list, c.Value())
				}
				return fmt.Sprint(list)
			}
			want := run(func(m nn.Module, x *tensor.Tensor) (list []*tensor.Tensor) {
				for i := range 4 {
					list = append(list, m.Forward(x.Row(i)))
				}
				return list
			})
			got := run(func(m nn.Module, x *tensor.Tensor) (list []*tensor.Tensor) {
				rows := asyncrt.MapRows(4, func(row asyncrt.RowOf) *tensor.Tensor { return m.Forward(row(x)) }).Detach()
				for i := range 4 {
					list = append(list, rows.Row(i))
				}
				return list
			})
			if got != want {
				t.Errorf("a module that %s: rows\n%s\nwant\n%s", name, got, want)
			}
		}
	})
}
