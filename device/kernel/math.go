package kernel

import "math"

// A MathFunc is the Body of a Math kernel: a function of Go's package math on
// float64s. It has the bits of that function on the host, where the primitives of
// the same name may be a little off.
type MathFunc uint8

const (
	MathExp MathFunc = iota // of one number
	MathExp2
	MathExpm1
	MathLog
	MathLog2
	MathLog10
	MathLog1p
	MathSin
	MathCos
	MathTan
	MathAsin
	MathAcos
	MathAtan
	MathSinh
	MathCosh
	MathTanh
	MathCbrt
	MathErf
	MathErfc
	MathTrunc
	MathRound
	MathPow // of two
	MathMod
	MathRemainder
	MathAtan2
	MathHypot
	MathCopysign
)

var mathFuncs = [...]struct {
	name string
	one  func(float64) float64
	two  func(x, y float64) float64
}{
	MathExp:       {name: "Exp", one: math.Exp},
	MathExp2:      {name: "Exp2", one: math.Exp2},
	MathExpm1:     {name: "Expm1", one: math.Expm1},
	MathLog:       {name: "Log", one: math.Log},
	MathLog2:      {name: "Log2", one: math.Log2},
	MathLog10:     {name: "Log10", one: math.Log10},
	MathLog1p:     {name: "Log1p", one: math.Log1p},
	MathSin:       {name: "Sin", one: math.Sin},
	MathCos:       {name: "Cos", one: math.Cos},
	MathTan:       {name: "Tan", one: math.Tan},
	MathAsin:      {name: "Asin", one: math.Asin},
	MathAcos:      {name: "Acos", one: math.Acos},
	MathAtan:      {name: "Atan", one: math.Atan},
	MathSinh:      {name: "Sinh", one: math.Sinh},
	MathCosh:      {name: "Cosh", one: math.Cosh},
	MathTanh:      {name: "Tanh", one: math.Tanh},
	MathCbrt:      {name: "Cbrt", one: math.Cbrt},
	MathErf:       {name: "Erf", one: math.Erf},
	MathErfc:      {name: "Erfc", one: math.Erfc},
	MathTrunc:     {name: "Trunc", one: math.Trunc},
	MathRound:     {name: "Round", one: math.Round},
	MathPow:       {name: "Pow", two: math.Pow},
	MathMod:       {name: "Mod", two: math.Mod},
	MathRemainder: {name: "Remainder", two: math.Remainder},
	MathAtan2:     {name: "Atan2", two: math.Atan2},
	MathHypot:     {name: "Hypot", two: math.Hypot},
	MathCopysign:  {name: "Copysign", two: math.Copysign},
}

// MathFuncs lists them all, in order.
func MathFuncs() []MathFunc {
	all := make([]MathFunc, len(mathFuncs))
	for i := range all {
		all[i] = MathFunc(i)
	}
	return all
}

// String is the name in package math: "Exp".
func (f MathFunc) String() string { return mathFuncs[f].name }

// Key implements [device.Body].
func (f MathFunc) Key() string { return "math " + mathFuncs[f].name }

// Arity is the number of operands, 1 or 2.
func (f MathFunc) Arity() int {
	if mathFuncs[f].two != nil {
		return 2
	}
	return 1
}

// Call computes the function; y is ignored if it takes one number.
func (f MathFunc) Call(x, y float64) float64 {
	if two := mathFuncs[f].two; two != nil {
		return two(x, y)
	}
	return mathFuncs[f].one(x)
}

// A HostFunc is the Body of a Host kernel: a Go function of one or two arrays of float64s. It has to depend on its
// arguments alone, and several goroutines may call it.
type HostFunc struct {
	Name string // another one for each
	// Call computes dst, which is not zeroed, from x and y, which it must not change; y is nil if there is one input.
	// ints is what Args.Ints has for the function.
	Call func(dst, x, y []float64, ints []int) error
}

// Key implements [device.Body].
func (f *HostFunc) Key() string { return "host " + f.Name }
