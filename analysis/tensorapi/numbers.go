package tensorapi

import "go/types"

// This file maps arithmetic on float64s to the methods of numbers that the device may still be computing. These give
// the same bits, as each step rounds once. Arithmetic that is not here has no such method, so its operands have to be
// read.

// Number is the type of floating-point numbers that may still be computed, Integer that of integers, Condition that of
// their comparisons, as "import/path.Name". Const is the function that makes a Number of a float64.
const (
	Number    = module + "/runtime/tensor.F64"
	Integer   = module + "/runtime/tensor.I64"
	Condition = module + "/runtime/tensor.Cond"
	Const     = module + "/runtime/tensor.Const"
)

// IsNumber reports whether t is the type of numbers that may not have been computed yet, or of comparisons of them.
func IsNumber(t types.Type) bool { return named(t, []string{Number, Integer, Condition}) }

// IsInteger reports whether t is the type of integers that may not have been computed yet.
func IsInteger(t types.Type) bool { return named(t, []string{Integer}) }

// IsCondition reports whether t is the type of comparisons of such numbers.
func IsCondition(t types.Type) bool { return named(t, []string{Condition}) }

var operators = map[string]string{
	"+": "Add", "-": "Sub", "*": "Mul", "/": "Div",
	"<": "Lt", "<=": "Le", ">": "Gt", ">=": "Ge", "==": "Eq", "!=": "Ne",
}

var functions = map[string]string{
	"max": "Max", "min": "Min", // with two arguments; more are pairs from the left
	"math.Max": "MathMax", "math.Min": "MathMin",
	"math.Abs": "Abs", "math.Sqrt": "Sqrt", "math.Floor": "Floor", "math.Ceil": "Ceil", "math.RoundToEven": "RoundToEven",
}

// NumberOperator returns the method of a Number that is the binary operator on
// float64s with the given text: "Add" for "+". The unary minus is the method Neg.
func NumberOperator(text string) (method string, ok bool) {
	method, ok = operators[text]
	return method, ok
}

// NumberFunc returns the method of a Number for a function or built-in with the given full name: "Sqrt"
// for "math.Sqrt". The first argument of the function is the receiver. The conversion
// float64(float32(x)) is the method Float32. Functions whose results aren't correctly rounded are
// computed by the host's processor even so, to give the same bits.
func NumberFunc(name string) (method string, ok bool) {
	if method, ok = functions[name]; !ok {
		method, ok = mathFuncs[name]
	}
	return method, ok
}

// IntegerOperator returns the method of an Integer that is the binary operator on integers with the given text.
func IntegerOperator(text string) (method string, ok bool) {
	switch text {
	case "+", "-", "*":
		return operators[text], true
	}
	return "", false
}

// ConditionOperator returns the method of a Condition for the operator on bools with the given text:
// "Not" for "!". The methods for && and || look at both operands. If the second has failed, the result
// has failed, though the host would perhaps not have looked at it.
func ConditionOperator(text string) (method string, ok bool) {
	method, ok = map[string]string{"&&": "And", "||": "Or", "!": "Not"}[text]
	return method, ok
}
