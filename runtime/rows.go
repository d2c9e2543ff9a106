package asyncrt

import (
	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A RowOf is passed to a function that computes something for each row of tensors. It returns the present row of a
// tensor.
type RowOf = func(*tensor.Tensor) *tensor.Tensor

// Rows are what a function gives for each row of tensors: see [Later.Rows]. Its
// methods are for functions of the backlog, as those of a [Read] are.
//
// Rows is for one goroutine at a time.
type Rows struct {
	of    func(row RowOf) *tensor.Tensor
	n     int    // how many rows
	size  int    // how many rows are in a part; the last may have fewer
	parts []part // part i has the rows from i*size on; parts are dropped two behind the newest
}

// A part is some rows, computed at once.
type part struct {
	state   partState
	t       *tensor.Tensor // has one row for each; detached, in host memory
	guess   *engine.Guess  // discarded if the part fails, because the program did not ask for it
	numbers []float64      // the elements of t, when Item has been called
	ints    []int64        // the same for ItemInt
}

type partState uint8

const (
	unknown  partState = iota // not tried yet, or dropped
	started                   // t is being computed
	arrived                   // t has been computed, without an error
	rowByRow                  // these rows can't be computed together
)

const (
	partRows = 1 << 14 // rows in a part, at most
	// bytes of one operand's rows in a part, at most, unless it is one row; less if a device has little memory
	partBytes = 8 << 20
)

// Rows computes of(row) for each j from 0 to n-1, where row(x) stands for x.Row(j). Each operation is
// done once for many rows, as in [tensor.VMapRows]. Like [Later.Read], Rows never waits and never
// panics.
//
//	logits := x.MatMul(w)
//	best := later.Rows(len(labels), func(row asyncrt.RowOf) *tensor.Tensor { return row(logits).ArgMax() })
//	later.Do(func() {
//		for j := range labels {
//			if best.ItemInt(j) == labels[j] {
//				correct++
//			}
//		}
//	})
//
// Sometimes rows can't be computed together: a tensor has fewer rows, operands don't fit, the device doesn't
// promise the same bits, or an operation fails for one of them. Then, when a row is asked for, of is called for it
// alone, with x.Row(j), and may panic. The same holds for a j that is not from 0 to n-1. So of may be
// called any number of times, until the last row is asked for. It must only compute, and the variables that it uses
// must keep their values.
//
// Many rows are computed in parts of some thousand, or of some megabytes of an operand, while the
// parts before are used.
//
//asyncgen:api call 1 later
//go:noinline
func (l *Later[S]) Rows(n int, of func(row RowOf) *tensor.Tensor) *Rows {
	r := &Rows{of: of, n: max(n, 0), size: min(n, partRows)}
	for n > 0 {
		size := r.size
		r.parts = make([]part, (n+size-1)/size)
		r.start(0)
		if r.size == size {
			break
		} // otherwise the rows are too big for parts of this size
	}
	if n > 0 && r.parts[0].t != nil {
		l.reads = append(l.reads, Read{t: r.parts[0].t})
	}
	return r
}

// Item is Tensor.Item of the function's result for row j.
//
//asyncgen:api read
//go:noinline
func (r *Rows) Item(j int) float64 {
	p, i := r.part(j)
	if p == nil || p.t.Size() != p.t.Dim(0) {
		return r.alone(j).Item()
	}
	if p.numbers == nil {
		p.numbers = numbers(p.t)
	}
	return p.numbers[i]
}

// ItemInt is Tensor.ItemInt of the function's result for row j.
//
//asyncgen:api read
//go:noinline
func (r *Rows) ItemInt(j int) int64 {
	p, i := r.part(j)
	if p == nil || p.t.Size() != p.t.Dim(0) || p.t.DType().IsFloat() {
		return r.alone(j).ItemInt()
	}
	if p.ints == nil {
		p.ints = ints(p.t)
	}
	return p.ints[i]
}

// At returns the function's result for row j, as a Read.
//
//asyncgen:api read
//go:noinline
func (r *Rows) At(j int) Read {
	if p, i := r.part(j); p != nil {
		return Read{t: p.t.Row(i)}
	}
	return Read{t: onHost(r.alone(j).Detach())}
}

// alone computes row j alone, and raises the panics of that.
func (r *Rows) alone(j int) *tensor.Tensor {
	return r.of(func(x *tensor.Tensor) *tensor.Tensor { return x.Row(j) })
}

// part returns the part with row j, after it has arrived, and the row's index in the part. It returns nil if the
// row has to be computed alone.
func (r *Rows) part(j int) (*part, int) {
	if j < 0 || j >= r.n {
		return nil, 0
	}
	k := j / r.size
	p := &r.parts[k]
	if p.state == arrived {
		return p, j - k*r.size
	}
	if p.state == unknown {
		r.start(k)
	}
	if p.state == started {
		if k > 1 {
			r.parts[k-2] = part{} // rows are mostly asked for in order
		}
		if k+1 < len(r.parts) && r.parts[k+1].state == unknown {
			r.start(k + 1)
		}
		p.arrive()
	}
	if p.state != arrived {
		return nil, 0
	}
	return p, j - k*r.size
}

// arrive waits for p, which was started.
func (p *part) arrive() {
	var err error
	engine.AllowSync(func() { err = p.t.Wait() })
	if err != nil {
		p.guess.Discard()
		*p = part{state: rowByRow}
		return
	}
	p.guess.Keep()
	p.state = arrived
}

// start begins to compute part k. If it turns out that rows of part 0 take too many bytes, start only makes size
// smaller.
func (r *Rows) start(k int) {
	from, to := k*r.size, min((k+1)*r.size, r.n)
	p := &r.parts[k]
	p.state = rowByRow
	ahead := engine.Default().Speculate()
	defer ahead.End()
	p.guess = ahead.Guess()
	defer func() {
		if recover() != nil { // of panics again when a row is asked for
			p.guess.Discard()
			p.t, p.guess = nil, nil
		}
	}()
	t := tensor.VMapRows(from, to, func(row func(*tensor.Tensor) *tensor.Tensor) *tensor.Tensor {
		return r.of(func(x *tensor.Tensor) *tensor.Tensor {
			if !x.Device().Caps().BatchInvariant {
				panic("rows computed together would have other bits")
			}
			if most := mostRows(x); most < r.size && k == 0 {
				r.size = most
				panic("too many rows")
			}
			return row(x.Detach())
		})
	})
	p.t, p.state = onHost(t.Detach()), started
}

// mostRows returns how many rows of x may be in a part.
func mostRows(x *tensor.Tensor) int {
	bytes := x.Size() / max(x.Dim(0), 1) * x.DType().Size()
	return max(engine.Default().Part(partBytes)/max(bytes, 1), 1)
}

// onHost returns t, or starts a copy that the host can reach.
func onHost(t *tensor.Tensor) *tensor.Tensor {
	if t.Device().Caps().HostMemory {
		return t
	}
	return t.To(device.CPU())
}

// numbers are the elements of t, as Item returns them.
func numbers(t *tensor.Tensor) []float64 {
	switch t.DType() {
	case tensor.Float64:
		return t.Float64s()
	case tensor.Float32:
		return convert(t.Float32s(), func(v float32) float64 { return float64(v) })
	case tensor.Float16:
		return convert(tensor.SliceOf[tensor.Float16Bits](t), func(v tensor.Float16Bits) float64 { return float64(v.Float32()) })
	case tensor.BFloat16:
		return convert(tensor.SliceOf[tensor.BFloat16Bits](t), func(v tensor.BFloat16Bits) float64 { return float64(v.Float32()) })
	}
	return convert(ints(t), func(v int64) float64 { return float64(v) })
}

// ints are the elements of t, as ItemInt returns them.
func ints(t *tensor.Tensor) []int64 {
	switch t.DType() {
	case tensor.Int64:
		return t.Int64s()
	case tensor.Int32:
		return convert(tensor.SliceOf[int32](t), func(v int32) int64 { return int64(v) })
	case tensor.Uint8:
		return convert(tensor.SliceOf[uint8](t), func(v uint8) int64 { return int64(v) })
	}
	return convert(t.Bools(), func(v bool) int64 {
		if v {
			return 1
		}
		return 0
	})
}

func convert[T, U any](vs []T, f func(T) U) []U {
	out := make([]U, len(vs))
	for i, v := range vs {
		out[i] = f(v)
	}
	return out
}
