package tensor

import (
	"fmt"
	"slices"

	"github.com/asyncgen/asyncgen/runtime/op"
)

// Either runs the function then if c is true, and the function otherwise if c is false; otherwise may be nil. It
// does not wait for c. If c isn't known yet, Either runs both functions, and the device chooses between the values
// that they assign to variables. vars are pointers to all these variables: *[*Tensor], *[F64] or *[I64]. If they set
// the learning rate of an optimiser, that is one of vars, too.
//
//	norm := g.Norm().F64()
//	tensor.Either(norm.Gt(tensor.Const(1)), func() {
//		g = g.DivF64(norm)
//	}, nil, &g)
//
// The functions must do nothing but compute, assign to variables and set learning rates, and must not fail: a failure
// on the side that isn't taken would spoil the chosen value.
//
// Either waits for c after all, and runs one function alone, if a function panics, or if the device can't choose
// between the tensors that they leave in a variable: tensors that differ in shape, element type or device, are not
// floating-point, or are tracked.
//
// If c has failed, Either may run neither function: a program that reads c would have panicked here.
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

// decides runs both functions and sets vars to the values that the device chooses. It returns false, and leaves
// vars as they were, if the device can't choose.
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
		case rated:
			rates := x[i].([]F64)
			for k, y := range y[i].([]F64) {
				rates[k] = c.ChooseF64(rates[k], y)
			}
			v.SetRates(rates)
		}
	}
	return true
}

// A rated is an optimiser, which holds learning rates.
type rated interface {
	Rates() []F64
	SetRates([]F64)
}

// outcome runs f and returns what vars hold then. It sets vars back to before. ok is false if f panics.
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
			case rated:
				v.SetRates(before[i].([]F64))
			}
		}
		if !ok {
			_ = recover() // f panics again if Either has to run it alone
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
		case rated:
			vs[i] = v.Rates()
		default:
			panic(&Mistake{Op: "Either", Text: fmt.Sprintf("%s: %T", op.MistakeType, v)})
		}
	}
	return vs
}

// alike reports whether the device can choose between x and y, so that the program can't tell the result from the
// chosen one.
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

// chooseI64 returns x if c is true, and y otherwise.
func (c Cond) chooseI64(x, y I64) I64 {
	on := c.t.storage.Device()
	a, b := x.on(on), y.on(on)
	defer letGo(a, b)
	return I64{t: elementwise(op.Where, [2]float64{}, operands{c.t, a, b}, false)}
}
