package asyncrt

import (
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// MappedRows are what a function gives for each row of tensors: see [MapRows]. One goroutine at a time may use the
// MappedRows of a loop.
type MappedRows struct {
	of     func(row RowOf) *tensor.Tensor
	loop   *rowLoop
	size   int // how many rows are computed at once; below 2, each is computed alone
	detach bool

	from, to int            // the rows that part has
	part     *tensor.Tensor // has one row for each
}

// A rowLoop is what the MappedRows of one loop share.
type rowLoop struct {
	n int // how many rows the loop has

	// While a function runs: the rows that it runs for. If they are several, row gives it those of a tensor;
	// otherwise row is nil.
	from, to int
	row      func(*tensor.Tensor) *tensor.Tensor
}

// missing is what This panics with if m has to compute the rows first.
type missing struct{ m *MappedRows }

// MapRows computes of(row) for the rows 0 to n-1 of tensors, where row(x) stands for x.Row(j). When a row is asked
// for, many are computed together, with each operation done once for all of them, as in [tensor.VMapRows].
//
//	hidden := asyncrt.MapRows(x.Dim(0), func(row asyncrt.RowOf) *tensor.Tensor { return row(x).MatMul(w).Tanh() })
//	for i := range x.Dim(0) {
//		list = append(list, hidden.Row(i))
//	}
//
// The rows can't be told from those that of gives for one row after the other, with x.Row(j). Where they could, or
// where rows can't be computed together (see [tensor.VMapSure]; or a tensor has fewer rows, of panics, draws random
// numbers or sets a cell), each is computed alone. So of must only compute, and the variables that it uses must keep
// their values while rows are asked for. A failure of the device itself, such as a lack of memory, is not covered: it
// spoils all rows that are computed together.
//
// Ask for rows in order. Many rows are computed some thousand at a time, or fewer if those of some tensor in
// between take more than some megabytes.
//
//asyncgen:api call 1 later
//go:noinline
func MapRows(n int, of func(row RowOf) *tensor.Tensor) *MappedRows {
	return (&rowLoop{n: n}).mapped(of)
}

func (l *rowLoop) mapped(of func(row RowOf) *tensor.Tensor) *MappedRows {
	return &MappedRows{of: of, loop: l, size: min(l.n, partRows)}
}

// Map is MapRows for another function of the same loop. It can use the rows of m with [MappedRows.This].
//
//asyncgen:api call 0 later
//go:noinline
func (m *MappedRows) Map(of func(row RowOf) *tensor.Tensor) *MappedRows {
	more := m.loop.mapped(of)
	more.detach = m.detach
	return more
}

// Detach declares that no gradients are asked for that go through the rows. Then tracked tensors are no reason to
// compute rows one by one. It returns m.
//
//asyncgen:api control
func (m *MappedRows) Detach() *MappedRows {
	m.detach = true
	return m
}

// Row returns what the function gives for row j.
//
//asyncgen:api op none
//go:noinline
func (m *MappedRows) Row(j int) *tensor.Tensor {
	if (j < m.from || j >= m.to) && 0 <= j && j < m.loop.n {
		m.compute(j)
	}
	if m.from <= j && j < m.to {
		return m.part.Row(j - m.from)
	}
	defer m.loop.enter(j, j+1, nil)()
	return m.of(func(x *tensor.Tensor) *tensor.Tensor { return x.Row(j) })
}

// This returns what m has for the row, or the rows, that another function of the same loop runs for now.
//
//asyncgen:api op none
//go:noinline
func (m *MappedRows) This() *tensor.Tensor {
	l := m.loop
	switch {
	case l.row == nil:
		return m.Row(l.from)
	case m.from > l.from || m.to < l.to:
		panic(missing{m})
	}
	return l.row(m.part.Slice(0, l.from-m.from, l.to-m.from))
}

// enter sets the rows that a function runs for now. leave sets them back.
func (l *rowLoop) enter(from, to int, row func(*tensor.Tensor) *tensor.Tensor) (leave func()) {
	before := *l
	l.from, l.to, l.row = from, to, row
	return func() { *l = before }
}

// compute computes row j and others near it, if they can be computed together.
func (m *MappedRows) compute(j int) {
	for m.size > 1 {
		from := j / m.size * m.size
		fit := m.cover(from, min(from+m.size, m.loop.n))
		if fit < 0 {
			return
		}
		m.size = min(fit, m.size-1)
	}
}

// cover computes the rows [from, to) together, unless m has them. It first does so for other MappedRows that the
// function needs. On success it returns a negative number; otherwise how many rows may be tried instead.
func (m *MappedRows) cover(from, to int) (fit int) {
	for m.from > from || m.to < to {
		part, lacks, fit := m.together(from, to)
		switch {
		case part != nil:
			if m.part != nil {
				tensor.Dead(m.part)
			}
			m.part, m.from, m.to = part, from, to
		case lacks == nil:
			return fit
		default:
			if fit = lacks.cover(from, to); fit >= 0 {
				return fit
			}
		}
	}
	return -1
}

// together computes the rows [from, to) at once. If it can't, part is nil, and lacks has to be covered first; if
// lacks is nil, too, fit rows may be tried instead.
func (m *MappedRows) together(from, to int) (part *tensor.Tensor, lacks *MappedRows, fit int) {
	ahead := engine.Default().Speculate()
	defer ahead.End()
	guess := ahead.Guess()
	defer func() {
		switch p := recover().(type) {
		case nil:
			return
		case missing:
			lacks = p.m
		case *tensor.Unsure:
			fit = p.Rows
		} // other panics come again when the rows are computed alone
		guess.Discard()
		guess.Restore() // for example weights that a layer has drawn
	}()
	part = tensor.VMapSure(0, to-from, int64(engine.Default().Part(partBytes)), m.detach, func(row func(*tensor.Tensor) *tensor.Tensor) *tensor.Tensor {
		defer m.loop.enter(from, to, row)()
		return m.of(func(x *tensor.Tensor) *tensor.Tensor {
			if most := mostRows(x); most < to-from {
				panic(&tensor.Unsure{Why: "too many rows", Rows: most})
			}
			if from > 0 || to < x.Dim(0) {
				x = x.Slice(0, from, to)
			}
			return row(x)
		})
	})
	if guess.Changes() { // what is called once now may give something else each time: it draws, or counts
		guess.Discard()
		guess.Restore()
		tensor.Dead(part)
		return nil, nil, 0
	}
	guess.Keep()
	return part, nil, 0
}
