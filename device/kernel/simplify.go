package kernel

import (
	"math"

	"github.com/asyncgen/asyncgen/device"
)

// simplify is the node for n, or a simpler expression with the same bits for all operands (NaN is
// NaN whatever its payload). Some tempting rules would be wrong for floats: x+0 is not x for -0; x*0
// is not 0 for NaN, infinities and negative numbers; x-x is not 0 for NaN and infinities.
func simplify(n Expr) *Expr {
	if v, ok := foldConstant(n); ok {
		return v
	}
	x, y, z := n.in[0], n.in[1], n.in[2]
	switch n.prim {
	case PrimNeg, PrimNot:
		if x.kind == Application && x.prim == n.prim {
			return x.in[0]
		}
	case PrimAdd:
		if isZeroOfAdd(y) {
			return x
		}
		if isZeroOfAdd(x) {
			return y
		}
	case PrimSub:
		if isConst(y, 0) {
			return x
		}
	case PrimMul:
		switch {
		case isConst(y, 1):
			return x
		case isConst(x, 1):
			return y
		case isConst(y, -1):
			return Neg(x)
		case isConst(x, -1):
			return Neg(y)
		case n.dtype == device.Int64 && (isConst(x, 0) || isConst(y, 0)):
			return Const(0, n.dtype)
		}
	case PrimDiv:
		if isConst(y, 1) {
			return x
		}
	case PrimPow:
		if isConst(y, 1) {
			return x
		}
	case PrimMax, PrimMin:
		if x == y {
			return x
		}
	case PrimAnd:
		switch {
		case n.dtype != device.Bool:
		case x == y || isConst(y, 1):
			return x
		case isConst(x, 1):
			return y
		case isConst(x, 0) || isConst(y, 0):
			return Const(0, device.Bool)
		}
	case PrimOr:
		switch {
		case n.dtype != device.Bool:
		case x == y || isConst(y, 0):
			return x
		case isConst(x, 0):
			return y
		case isConst(x, 1) || isConst(y, 1):
			return Const(1, device.Bool)
		}
	case PrimWhere:
		switch {
		case y == z || isConst(x, 1):
			return y
		case isConst(x, 0):
			return z
		}
	case PrimCast:
		// A float32 survives the way to float64 and back, and a type for storage that to its wide type and back.
		if x.kind == Application && x.prim == PrimCast && x.in[0].dtype == n.dtype &&
			(n.dtype == device.Float32 && x.dtype == device.Float64 || n.dtype.IsStorage()) {
			return x.in[0]
		}
	}
	return intern(n)
}

// foldConstant evaluates n when all operands are constants. It leaves integer Div and Pow, which may
// fail.
func foldConstant(n Expr) (*Expr, bool) {
	var in [3]uint64
	for i, x := range n.in[:n.prim.Arity()] {
		if x.kind != Constant {
			return nil, false
		}
		in[i] = x.bits
	}
	if (n.prim == PrimDiv || n.prim == PrimPow) && n.dtype == device.Int64 {
		return nil, false // a failure belongs to the command's run
	}
	return constant(applyBits(&n, in), n.dtype), true
}

// isConst reports whether x is the constant v, which is not -0.
func isConst(x *Expr, v float64) bool {
	return x.kind == Constant && x.bits == BitsOf(v, x.dtype)
}

// isZeroOfAdd reports whether x is -0 (or the integer 0): adding it changes nothing. Adding +0 turns
// -0 into +0.
func isZeroOfAdd(x *Expr) bool {
	return x.kind == Constant && x.bits == BitsOf(math.Copysign(0, -1), x.dtype)
}
