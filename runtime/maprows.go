package asyncrt

import (
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// MappedRows are what a function gives for each row of tensors: see [MapRows].
//
// Those of one loop are for one goroutine at a time.
type MappedRows struct {
	of     func(row RowOf) *tensor.Tensor
	loop   *rowLoop
	size   int // how many rows at once; below 2: each alone
	detach bool

	from, to int            // the rows of part
	part     *tensor.Tensor // one row of it for each
}

// A rowLoop is what the MappedRows of one loop have in common.
type rowLoop struct {
	n int // rows that may be computed together

	// While a function runs: the rows that it runs for, and if they are more than one, how it gets them.
	from, to int
	row      func(*tensor.Tensor) *tensor.Tensor
}

// missing is what This panics with if what it is about has to be computed before.
type missing struct{ m *MappedRows }

// MapRows computes of(row) for the rows 0 to n-1 of the tensors that it asks for: row(x) is x.Row(j). Each
// operation is done once for many rows, as in [tensor.VMapRows], when the first of them is asked for.
//
//	hidden := asyncrt.MapRows(x.Dim(0), func(row asyncrt.RowOf) *tensor.Tensor { return row(x).MatMul(w).Tanh() })
//	for i := range x.Dim(0) {
//		list = append(list, hidden.Row(i))
//	}
//
// Nobody can tell the rows from those that of gives for one after the other, with x.Row(j). Where
// somebody could, or it can't be done (see [tensor.VMapSure]; or a tensor has fewer rows, or of
// panics), they are computed like that. So of must only compute, and while rows are asked for the
// variables that it uses must keep their values. Not covered is a failure of the device itself, as
// for want of memory: it spoils all rows that are computed at once.
//
// Rows are meant to be asked for in order. Many are computed some thousand at a time, or as many
// as take some megabytes of any tensor in between.
//
//asyncgen:api call 1 later
//go:noinline
func MapRows(n int, of func(row RowOf) *tensor.Tensor) *MappedRows {
	return (&rowLoop{n: n}).mapped(of)
}

func (l *rowLoop) mapped(of func(row RowOf) *tensor.Tensor) *MappedRows {
	return &MappedRows{of: of, loop: l, size: min(l.n, partRows)}
}

// Map is MapRows for more that is computed in the loop that m is of, so that it can be made of [MappedRows.This].
//
//asyncgen:api call 0 later
//go:noinline
func (m *MappedRows) Map(of func(row RowOf) *tensor.Tensor) *MappedRows {
	more := m.loop.mapped(of)
	more.detach = m.detach
	return more
}

// Detach says that no gradients are asked for that go through the rows, so that tensors which are
// tracked are no reason to compute them one after the other. It returns m.
//
//asyncgen:api control
func (m *MappedRows) Detach() *MappedRows {
	m.detach = true
	return m
}

// Row is what the function gives for row j.
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

// This is what m has for the row, or the rows, for which a function of the same loop runs now.
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

// enter says for which rows a function runs now. The result takes it back.
func (l *rowLoop) enter(from, to int, row func(*tensor.Tensor) *tensor.Tensor) (leave func()) {
	before := *l
	l.from, l.to, l.row = from, to, row
	return func() { *l = before }
}

// compute computes the rows that row j is one of, if they can be computed together.
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

// cover computes some rows at once, unless they are there, or returns how many may be tried
// instead; else a negative number.
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

// together computes some rows at once. If that fails, it returns what has to be computed before, or
// how many rows may be tried instead.
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
		} // whatever else it is, it comes again if the rows are computed alone
		guess.Discard()
		guess.Restore() // a layer may have drawn its weights
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
	guess.Keep()
	return part, nil, 0
}
