package tensor

import (
	"fmt"
	"slices"

	"github.com/asyncgen/asyncgen/runtime/op"
)

// Either runs then if c is true, and otherwise, which may be nil, if it is false. It does not wait for c: if c isn't
// known yet, both functions run, and the device chooses the values of vars, pointers to the variables that the
// functions assign (*[*Tensor], *[F64] or *[I64]).
//
//	norm := g.Norm().F64()
//	tensor.Either(norm.Gt(tensor.Const(1)), func() {
//		g = g.DivF64(norm)
//	}, nil, &g)
//
// The functions must do nothing but compute and assign to variables, and must not fail: a failure on the side that
// isn't taken would spoil the chosen value. Either waits for c after all, and runs one function alone, if one of them
// panics, if they leave tensors of different shapes or element types or on different devices, if the values are no
// floating-point numbers, or if gradients go through them. If c has failed, it may run neither: no program that had
// looked at c would have come here.
//
//asyncgen:api call 1 once
//go:noinline
func Either(c Cond, then, otherwise func(), vars ...any) {
	if otherwise == nil {
		otherwise = func() {}
	}
	if c.t != nil && !c.t.Ready() && c.decides(then, otherwise, vars) {
		return
	}
	switch {
	case c.t != nil && c.t.Wait() != nil:
	case c.Item():
		then()
	default:
		otherwise()
	}
}

// decides reports whether vars have got what the device chooses. If not, they are as they were.
func (c Cond) decides(then, otherwise func(), vars []any) bool {
	before := values(vars)
	x, okX := outcome(then, vars, before)
	y, okY := outcome(otherwise, vars, before)
	if !okX || !okY {
		return false
	}
	for i := range vars {
		if !alike(x[i], y[i]) {
			return false
		}
	}
	for i, v := range vars {
		switch v := v.(type) {
		case **Tensor:
			if a, b := x[i].(*Tensor), y[i].(*Tensor); a != b {
				*v = c.Choose(a, b)
			} else {
				*v = a
			}
		case *F64:
			*v = c.ChooseF64(x[i].(F64), y[i].(F64))
		case *I64:
			*v = c.chooseI64(x[i].(I64), y[i].(I64))
		}
	}
	return true
}

// outcome returns what vars hold after f, and gives them back what they held before. It is not ok if f panics.
func outcome(f func(), vars, before []any) (after []any, ok bool) {
	defer func() {
		for i, v := range vars {
			switch v := v.(type) {
			case **Tensor:
				*v = before[i].(*Tensor)
			case *F64:
				*v = before[i].(F64)
			case *I64:
				*v = before[i].(I64)
			}
		}
		if !ok {
			_ = recover() // if the program gets here, it comes once more
		}
	}()
	f()
	return values(vars), true
}

// values returns what vars point to.
func values(vars []any) []any {
	vs := make([]any, len(vars))
	for i, v := range vars {
		switch v := v.(type) {
		case **Tensor:
			vs[i] = *v
		case *F64:
			vs[i] = *v
		case *I64:
			vs[i] = *v
		default:
			panic(&Mistake{Op: "Either", Text: fmt.Sprintf("%s: %T", op.MistakeType, v)})
		}
	}
	return vs
}

// alike reports whether the device can choose between x and y, and nobody can tell afterwards.
func alike(x, y any) bool {
	a, ok := x.(*Tensor)
	if !ok {
		return true // numbers
	}
	b := y.(*Tensor)
	if a == nil || b == nil {
		return a == b
	}
	return a.dtype == b.dtype && a.dtype.IsFloat() && a.node == nil && b.node == nil &&
		slices.Equal(a.shape, b.shape) && a.storage.Device() == b.storage.Device()
}

// chooseI64 returns x if c is true, and else y.
func (c Cond) chooseI64(x, y I64) I64 {
	on := c.t.storage.Device()
	a, b := x.on(on), y.on(on)
	defer letGo(a, b)
	return I64{t: elementwise(op.Where, [2]float64{}, operands{c.t, a, b}, false)}
}
