package op

import (
	"slices"

	"github.com/asyncgen/asyncgen/device"
)

// A Batch is one use of an operation for all examples of a batch at once.
type Batch struct {
	Def  *Def
	Attr Attr // for one example
	// In are the operands. Those whose bit in Has is set have an axis more
	// than in one example, the first, which numbers the N examples; the others
	// are the same for all.
	In  []Value
	Has uint8
	N   int
}

// Batched enqueues what gives every example of s the bits that the operation
// gives it alone. The first axis of the result numbers the examples. An operand
// at least has them.
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

// rank is how many axes operand i has in one example.
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

// withExamples is the shape of a tensor that has the given one in each example.
func (s *Batch) withExamples(shape device.Shape) device.Shape {
	return append(device.Shape{s.N}, shape...)
}

// lead returns operand i with so many axes of length 1 after that of the
// examples that it has the given rank in one example, as broadcasting would add
// them in front.
func (s *Batch) lead(b Builder, i, rank int) Value {
	if !s.has(i) {
		return s.In[i]
	}
	return leading(b, s.In[i], rank)
}

// leading is lead of a tensor of which the first axis numbers the examples.
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

// full returns operand i with the axis of the examples, also if it is the same for all.
func (s *Batch) full(b Builder, i int) Value {
	if s.has(i) {
		return s.In[i]
	}
	return b.Structural(BroadcastTo, Attr{Shape: s.withExamples(s.In[i].Shape())}, s.In[i])
}

// The batching rules that several operations have.

// batchAsIs is that of operations that don't look at axes, or at the last alone.
func batchAsIs(b Builder, s *Batch) Value { return b.Structural(s.Def, s.Attr, s.In...) }

// batchAxis is that of operations along Attr.Axis.
func batchAxis(b Builder, s *Batch) Value {
	a := s.Attr
	a.Axis++
	return b.Structural(s.Def, a, s.In...)
}

// batchAxes is that of operations over Attr.Axes.
func batchAxes(b Builder, s *Batch) Value {
	a := s.Attr
	a.Axes = slices.Clone(a.Axes)
	for i := range a.Axes {
		a.Axes[i]++
	}
	return b.Structural(s.Def, a, s.In...)
}
