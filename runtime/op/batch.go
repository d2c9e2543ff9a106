package op

import (
	"slices"

	"github.com/asyncgen/asyncgen/device"
)

// A Batch is one use of an operation for all examples of a batch at once.
type Batch struct {
	Def  *Def
	Attr Attr // for one example
	// In are the operands. An operand whose bit in Has is set has one more axis than in one example:
	// the first one, which numbers the N examples. The others are the same for all examples.
	In  []Value
	Has uint8
	N   int
}

// Batched enqueues the operation for all examples of s. Each example gets exactly the bits that the
// operation on that example alone gives. The first axis of the result numbers the examples. At least
// one operand has that axis.
func Batched(b Builder, s *Batch) Value {
	d := s.Def
	if d.Expr == nil {
		return d.Batch(b, s)
	}
	rank := 0
	for i := range s.In {
		rank = max(rank, s.rank(i))
	}
	var in [MaxInputs]Value
	for i := range s.In {
		in[i] = s.lead(b, i, rank)
	}
	return b.Elementwise(d, s.Attr.Scalars, in[:len(s.In)]...)
}

// has reports whether operand i differs between examples.
func (s *Batch) has(i int) bool { return s.Has>>i&1 != 0 }

// rank returns how many axes operand i has in one example.
func (s *Batch) rank(i int) int {
	n := len(s.In[i].Shape())
	if s.has(i) {
		n--
	}
	return n
}

// wrong panics with a Mistake about the operands of one example.
func (s *Batch) wrong(text string) {
	m := &Mistake{Op: s.Def.Name, Text: text}
	for i, x := range s.In {
		shape := x.Shape()
		m.Shapes, m.DTypes = append(m.Shapes, shape[len(shape)-s.rank(i):]), append(m.DTypes, x.DType())
	}
	panic(m)
}

// withExamples returns shape, that of one example, with the axis of the examples in front.
func (s *Batch) withExamples(shape device.Shape) device.Shape {
	return append(device.Shape{s.N}, shape...)
}

// lead returns operand i with the given rank in one example. It inserts axes of length 1 behind the
// axis of the examples, as broadcasting of one example would add them in front.
func (s *Batch) lead(b Builder, i, rank int) Value {
	if !s.has(i) {
		return s.In[i]
	}
	return leading(b, s.In[i], rank)
}

// leading is lead for a tensor whose first axis numbers the examples.
func leading(b Builder, x Value, rank int) Value {
	shape := x.Shape()
	if len(shape) == rank+1 {
		return x
	}
	longer := slices.Insert(slices.Clone(shape), 1, make([]int, rank+1-len(shape))...)
	for i := 1; i <= rank+1-len(shape); i++ {
		longer[i] = 1
	}
	return b.Structural(Reshape, Attr{Shape: longer}, x)
}

// insert returns operand i with one more axis, of length 1, before the given one of an example.
func (s *Batch) insert(b Builder, i, axis int) Value {
	if s.has(i) {
		axis++
	}
	return b.Structural(Reshape, Attr{Shape: slices.Insert(slices.Clone(s.In[i].Shape()), axis, 1)}, s.In[i])
}

// full returns operand i with the axis of the examples, even if it is the same for all of them.
func (s *Batch) full(b Builder, i int) Value {
	if s.has(i) {
		return s.In[i]
	}
	return b.Structural(BroadcastTo, Attr{Shape: s.withExamples(s.In[i].Shape())}, s.In[i])
}

// Batching rules that several operations share.

// batchAsIs is the rule of operations to which axes don't matter, or only the last ones.
func batchAsIs(b Builder, s *Batch) Value { return b.Structural(s.Def, s.Attr, s.In...) }

// batchAxis is the rule of operations along Attr.Axis.
func batchAxis(b Builder, s *Batch) Value {
	a := s.Attr
	a.Axis++
	return b.Structural(s.Def, a, s.In...)
}

// batchAxes is the rule of operations over Attr.Axes.
func batchAxes(b Builder, s *Batch) Value {
	a := s.Attr
	a.Axes = slices.Clone(a.Axes)
	for i := range a.Axes {
		a.Axes[i]++
	}
	return b.Structural(s.Def, a, s.In...)
}
