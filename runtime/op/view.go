package op

import (
	"slices"

	"github.com/asyncgen/asyncgen/device"
)

// Views. They copy no elements: View computes where the result's elements lie in the operand's
// buffer. Axes in Attr are in range.
var (
	// Reshape reads Attr.Shape, which has as many elements as the operand.
	Reshape = define(&Def{
		Name: "Reshape", Types: All,
		Doc: "returns t's elements, in row-major order, in another shape of the same size; one length may be -1 and is computed. The result is a view where t's memory allows it, as it does unless t is itself a view that skips or reorders elements; else t is copied.",
		View: func(a *Attr, in View) (View, bool) {
			strides, ok := in.reshape(a.Shape)
			return View{Shape: a.Shape, Strides: strides, Off: in.Off}.tidy(), ok
		},
		VJP: func(b Builder, c *Call, _ int, g Value) Value {
			return b.Structural(c.Def, Attr{Shape: c.In[0].Shape()}, g)
		},
		Batch: func(b Builder, s *Batch) Value {
			return b.Structural(s.Def, Attr{Shape: s.withExamples(s.Attr.Shape)}, s.In[0])
		},
	})
	// Transpose reads Attr.Axes, a permutation: axis i of the result is axis Axes[i] of the operand.
	Transpose = define(&Def{
		Name: "Transpose", Types: All,
		Doc: "returns a view of t with its axes in the given order, or in reverse order if none is given.",
		View: func(a *Attr, in View) (View, bool) {
			steps := in.steps()
			out := View{Shape: make(device.Shape, len(a.Axes)), Strides: make([]int, len(a.Axes)), Off: in.Off}
			for i, axis := range a.Axes {
				out.Shape[i], out.Strides[i] = in.Shape[axis], steps[axis]
			}
			return out.tidy(), true
		},
		VJP: func(b Builder, c *Call, _ int, g Value) Value {
			back := make([]int, len(c.Attr.Axes))
			for i, axis := range c.Attr.Axes {
				back[axis] = i
			}
			return b.Structural(c.Def, Attr{Axes: back}, g)
		},
		Batch: func(b Builder, s *Batch) Value {
			axes := []int{0}
			for _, axis := range s.Attr.Axes {
				axes = append(axes, axis+1)
			}
			return b.Structural(s.Def, Attr{Axes: axes}, s.In[0])
		},
	})
	// Slice reads Attr.Axis, Attr.From, Attr.To and Attr.Step. From and To are in range.
	Slice = define(&Def{
		Name: "Slice", Types: All,
		Doc: "returns a view of the elements of t whose index along axis is at least from and below to. Negative indices count from the end; there is no step.",
		View: func(a *Attr, in View) (View, bool) {
			steps := in.steps()
			out := View{Shape: slices.Clone(in.Shape), Strides: steps, Off: in.Off + a.From*steps[a.Axis]}
			out.Shape[a.Axis] = a.To - a.From
			if step := a.step(); step > 1 {
				out.Shape[a.Axis] = (a.To - a.From + step - 1) / step
				out.Strides = slices.Clone(steps)
				out.Strides[a.Axis] *= step
			}
			return out.tidy(), true
		},
		VJP: func(b Builder, c *Call, _ int, g Value) Value {
			n := c.In[0].Shape()[c.Attr.Axis]
			return b.Structural(Scatter, Attr{Axis: c.Attr.Axis, From: c.Attr.From, To: n, Step: c.Attr.Step}, g)
		},
		Batch: batchAxis,
	})
	// Row reads Attr.From, an index of the first axis.
	Row = define(&Def{
		Name: "Row", Types: All,
		Doc: "returns a view of the part of t with index i along the first axis: of a matrix the row, of a vector the element. Negative i counts from the end.",
		View: func(a *Attr, in View) (View, bool) {
			steps := in.steps()
			return View{Shape: in.Shape[1:], Strides: steps[1:], Off: in.Off + a.From*steps[0]}.tidy(), true
		},
		VJP: func(b Builder, c *Call, _ int, g Value) Value {
			shape := c.In[0].Shape()
			row := append(device.Shape{1}, shape[1:]...)
			g = b.Structural(Reshape, Attr{Shape: row}, g)
			return b.Structural(Scatter, Attr{From: c.Attr.From, To: shape[0]}, g)
		},
		Batch: func(b Builder, s *Batch) Value {
			x, i := s.In[0], s.Attr.From
			x = b.Structural(Slice, Attr{Axis: 1, From: i, To: i + 1}, x)
			return b.Structural(Reshape, Attr{Shape: s.withExamples(x.Shape()[2:])}, x)
		},
	})
	// BroadcastTo reads Attr.Shape.
	BroadcastTo = define(&Def{
		Name: "BroadcastTo", Types: All,
		Doc: "returns a view of t in which axes of length 1, and axes that t does not have in front of its own, repeat as often as shape says.",
		View: func(a *Attr, in View) (View, bool) {
			return View{Shape: a.Shape, Strides: in.BroadcastStrides(a.Shape), Off: in.Off}.tidy(), true
		},
		Batch: func(b Builder, s *Batch) Value {
			x := s.lead(b, 0, len(s.Attr.Shape))
			return b.Structural(s.Def, Attr{Shape: s.withExamples(s.Attr.Shape)}, x)
		},
	})
)

// step returns a.Step, or 1 if it is not set.
func (a *Attr) step() int { return max(a.Step, 1) }

// within returns the part of x that a Put or Scatter with the attributes a writes, if it writes n elements
// along the axis.
func within(b Builder, a Attr, n int, x Value) Value {
	to := a.From
	if n > 0 {
		to += (n-1)*a.step() + 1
	}
	return b.Structural(Slice, Attr{Axis: a.Axis, From: a.From, To: to, Step: a.Step}, x)
}

// steps returns the strides of v, even if v.Strides is nil.
func (v View) steps() []int {
	if v.Strides != nil {
		return v.Strides
	}
	return v.Shape.Strides()
}

// BroadcastStrides returns the strides of v broadcast to shape: 0 for repeated axes.
func (v View) BroadcastStrides(shape device.Shape) []int {
	steps, lead := v.steps(), len(shape)-len(v.Shape)
	strides := make([]int, len(shape))
	for axis, n := range v.Shape {
		if n != 1 {
			strides[lead+axis] = steps[axis]
		}
	}
	return strides
}

// tidy drops strides that are those of elements in row-major order without gaps. A view without
// elements gets offset 0, since the offset of an empty slice may lie behind the buffer's end.
func (v View) tidy() View {
	if v.Shape.Size() == 0 {
		return View{Shape: v.Shape}
	}
	n := 1
	for axis := len(v.Shape) - 1; axis >= 0; axis-- {
		if length := v.Shape[axis]; length != 1 {
			if v.Strides != nil && v.Strides[axis] != n {
				return v
			}
			n *= length
		}
	}
	v.Strides = nil
	return v
}

// reshape returns strides that give v's elements another shape of the same size. It returns false if
// there are none. Runs of axes that cover the same number of elements in both shapes correspond to
// each other; within each run, the elements must be evenly spaced in row-major order.
func (v View) reshape(shape device.Shape) ([]int, bool) {
	if v.Strides == nil || v.Shape.Size() == 0 {
		return nil, true
	}
	var old device.Shape // without axes of length 1
	var steps []int
	for axis, n := range v.Shape {
		if n != 1 {
			old, steps = append(old, n), append(steps, v.Strides[axis])
		}
	}
	strides := make([]int, len(shape))
	i, j := 0, 0
	for i < len(old) {
		first, n, m := i, old[i], 1
		begin := j
		for m *= shape[j]; n != m; {
			if n < m {
				i++
				n *= old[i]
			} else {
				j++
				m *= shape[j]
			}
		}
		for ; first < i; first++ {
			if steps[first] != old[first+1]*steps[first+1] {
				return nil, false
			}
		}
		step := steps[i]
		for axis := j; axis >= begin; axis-- {
			strides[axis] = step
			step *= shape[axis]
		}
		i, j = i+1, j+1
	}
	return strides, true // the remaining axes have length 1
}

// Broadcast returns the shape to which a and b are both broadcast. It returns false if there is none.
func Broadcast(a, b device.Shape) (device.Shape, bool) {
	if len(a) < len(b) {
		a, b = b, a
	}
	shape, lead := slices.Clone(a), len(a)-len(b)
	for i, n := range b {
		switch have := shape[lead+i]; {
		case have == n || n == 1:
		case have == 1:
			shape[lead+i] = n
		default:
			return nil, false
		}
	}
	return shape, true
}
