package asyncrt_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func ExampleLater_Rows() {
	scores := tensor.From([]float32{0.1, 0.7, 0.2, 0.5, 0.3, 0.2}, 2, 3)
	later := asyncrt.NewLater[struct{}](8)
	defer later.Close()
	best := later.Rows(2, func(row asyncrt.RowOf) *tensor.Tensor { return row(scores).ArgMax() })
	later.Do(func() {
		for i := range 2 {
			fmt.Println(best.ItemInt(i))
		}
	})
	later.Flush()
	// Output:
	// 1
	// 0
}

// lookedAt returns what look returns or panics with, as text.
func lookedAt(look func() any) (s string) {
	defer func() {
		if p := recover(); p != nil {
			var op *asyncrt.OpError
			if err, ok := p.(error); ok && errors.As(err, &op) {
				p = op.Err
			}
			s = fmt.Sprint("panic: ", p)
		}
	}()
	v := look()
	return fmt.Sprintf("%T %v", v, v)
}

// Rows have the values and panics of calls for one row after the other.
func TestRows(t *testing.T) {
	devices(t, func(t *testing.T, on device.Device) {
		r := rand.New(rand.NewPCG(*seed, 5))
		t.Logf("-seed %d", *seed)
		normal := func(shape ...int) *tensor.Tensor {
			n := 1
			for _, d := range shape {
				n *= d
			}
			data := make([]float32, n)
			for i := range data {
				data[i] = float32(r.NormFloat64())
			}
			return tensor.FromOn(on, data, shape...)
		}
		x, y, w := normal(9, 5), normal(7, 5), normal(5, 3)
		wide := normal(20, 1<<19) // takes more than one part
		ints := tensor.FromOn(on, []int64{3, 1 << 60, 2, 5, 0, -1, 4, 8, 1}, 9)
		failed, _ := failing(on)
		for _, c := range []struct {
			name string
			n    int
			of   func(row asyncrt.RowOf) *tensor.Tensor
		}{
			{"the row", 9, func(row asyncrt.RowOf) *tensor.Tensor { return row(x) }},
			{"a number", 9, func(row asyncrt.RowOf) *tensor.Tensor { return row(x).Sum() }},
			{"some rows", 4, func(row asyncrt.RowOf) *tensor.Tensor { return row(x).Mean() }},
			{"none", 0, func(row asyncrt.RowOf) *tensor.Tensor { return row(x).Mean() }},
			{"below none", -3, func(row asyncrt.RowOf) *tensor.Tensor { return row(x).Mean() }},
			{"an index", 9, func(row asyncrt.RowOf) *tensor.Tensor { return row(x).MatMul(w).ArgMax() }},
			{"two tensors", 7, func(row asyncrt.RowOf) *tensor.Tensor { return row(x).Sub(row(y)).Norm() }},
			{"too few rows", 9, func(row asyncrt.RowOf) *tensor.Tensor { return row(x).Dot(row(y)) }},
			{"one element", 9, func(row asyncrt.RowOf) *tensor.Tensor { return row(x).Sum().Reshape(1, 1) }},
			{"of no row", 9, func(row asyncrt.RowOf) *tensor.Tensor { return w.Sum() }},
			{"integers", 9, func(row asyncrt.RowOf) *tensor.Tensor { return row(ints).AddScalar(1) }},
			{"truths", 9, func(row asyncrt.RowOf) *tensor.Tensor { return row(ints).Gt(row(ints).MulScalar(2)) }},
			{"shapes that don't match", 9, func(row asyncrt.RowOf) *tensor.Tensor { return row(x).MatMul(y) }},
			{"nil", 9, func(row asyncrt.RowOf) *tensor.Tensor { return row((*tensor.Tensor)(nil)).Sum() }},
			{"no axes", 9, func(row asyncrt.RowOf) *tensor.Tensor { return row(x.Sum()).Sum() }},
			{"failing for one", 9, func(row asyncrt.RowOf) *tensor.Tensor { return row(ints).Div(row(ints)) }},
			{"a failed tensor", 3, func(row asyncrt.RowOf) *tensor.Tensor { return row(failed).Exp().Sum() }},
			{"beside a failed tensor", 9, func(row asyncrt.RowOf) *tensor.Tensor { return row(x).Mul(failed.Sum()).Sum() }},
			{"wide", 20, func(row asyncrt.RowOf) *tensor.Tensor { return row(wide).Sum() }},
		} {
			later := asyncrt.NewLater[struct{}](4)
			rows := later.Rows(c.n, c.of)
			order := r.Perm(c.n + 3)
			if c.n < 0 {
				order = []int{0}
			}
			later.Do(func() {
				for _, j := range order {
					j -= 2
					alone := func() *tensor.Tensor {
						return c.of(func(x *tensor.Tensor) *tensor.Tensor { return x.Row(j) })
					}
					for _, look := range []struct {
						name      string
						want, got func() any
					}{
						{"Item", func() any { return alone().Item() }, func() any { return rows.Item(j) }},
						{"ItemInt", func() any { return alone().ItemInt() }, func() any { return rows.ItemInt(j) }},
						{"Float32s", func() any { return alone().Float32s() }, func() any { return rows.At(j).Float32s() }},
						{"String", func() any { return alone().String() }, func() any { return rows.At(j).String() }},
						{"Wait", func() any { return alone().Wait() != nil }, func() any { return rows.At(j).Err() != nil }},
					} {
						if c.name == "wide" && look.name != "Item" {
							continue
						}
						if got, want := lookedAt(look.got), lookedAt(look.want); got != want {
							t.Errorf("%s, row %d: %s is %s, want %s", c.name, j, look.name, got, want)
						}
					}
				}
			})
			later.Flush()
			later.Close()
		}
	})
}

// failing returns a tensor that fails, and its error.
func failing(on device.Device) (*tensor.Tensor, error) {
	zero := tensor.FromOn(on, []int64{0}, 1)
	t := tensor.FromOn(on, []int64{1}, 1).Div(zero).As(tensor.Float32).BroadcastTo(3, 2)
	return t, t.Wait()
}

// Rows that fail together are computed one by one. The failure of all rows is not reported, as the program did not
// ask for them.
func TestRowsFailAlone(t *testing.T) {
	devices(t, func(t *testing.T, on device.Device) {
		_ = asyncrt.WaitAll()
		x := tensor.FromOn(on, []int64{4, 0, 2}, 3)
		later := asyncrt.NewLater[struct{}](4)
		rows := later.Rows(3, func(row asyncrt.RowOf) *tensor.Tensor { return tensor.FromOn(on, []int64{8}).Row(0).Div(row(x)) })
		var got []int64
		later.Do(func() { got = append(got, rows.ItemInt(0), rows.ItemInt(2)) })
		later.Flush()
		later.Close()
		if fmt.Sprint(got) != "[2 4]" {
			t.Errorf("8 / [4 2] is %v", got)
		}
		if err := asyncrt.WaitAll(); err != nil {
			t.Errorf("the program never computed row 1, but: %v", err)
		}
	})
}

// Rows computed together need one operation where single rows need one each.
func TestRowsTogether(t *testing.T) {
	x := tensor.Randn(64, 8)
	if err := asyncrt.WaitAll(); err != nil {
		t.Fatal(err)
	}
	count := 0
	later := asyncrt.NewLater[struct{}](4)
	defer later.Close()
	rows := later.Rows(64, func(row asyncrt.RowOf) *tensor.Tensor { count++; return row(x).Sum() })
	later.Do(func() {
		for j := range 64 {
			rows.Item(j)
		}
	})
	later.Flush()
	if count != 1 {
		t.Errorf("the function ran %d times for 64 rows", count)
	}
}

// One row after the other, and all together.
func BenchmarkRows(b *testing.B) {
	x := tensor.Randn(256, 10)
	b.Run("alone", func(b *testing.B) {
		for b.Loop() {
			for j := range 256 {
				x.Row(j).ArgMax().ItemInt()
			}
		}
	})
	b.Run("together", func(b *testing.B) {
		for b.Loop() {
			later := asyncrt.NewLater[struct{}](4)
			rows := later.Rows(256, func(row asyncrt.RowOf) *tensor.Tensor { return row(x).ArgMax() })
			later.Do(func() {
				for j := range 256 {
					rows.ItemInt(j)
				}
			})
			later.Flush()
			later.Close()
		}
	})
}
