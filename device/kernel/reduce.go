package kernel

import (
	"math"
	"math/bits"

	"github.com/asyncgen/asyncgen/device"
)

// A Reducer is the Body of a Reduce kernel: it folds elements of one type into
// one of the same type. See [Fold] for the order.
type Reducer uint8

const (
	ReduceSum  Reducer = iota // numbers; 0 of none
	ReduceProd                // numbers; 1 of none
	ReduceMax                 // numbers; the least value, -Inf for floats, of none
	ReduceMin                 // numbers; the greatest value of none
	ReduceAll                 // bools; true of none
	ReduceAny                 // bools; false of none
)

var reducers = [...]struct {
	name     string
	prim     Prim
	identity func(device.DType) uint64
}{
	ReduceSum:  {"sum", PrimAdd, func(dt device.DType) uint64 { return BitsOf(0, dt) }},
	ReduceProd: {"prod", PrimMul, func(dt device.DType) uint64 { return BitsOf(1, dt) }},
	ReduceMax:  {"max", PrimMax, func(dt device.DType) uint64 { return BitsOf(math.Inf(-1), dt) }},
	ReduceMin:  {"min", PrimMin, func(dt device.DType) uint64 { return BitsOf(math.Inf(1), dt) }},
	ReduceAll:  {"all", PrimAnd, func(dt device.DType) uint64 { return BitsOf(1, dt) }},
	ReduceAny:  {"any", PrimOr, func(dt device.DType) uint64 { return BitsOf(0, dt) }},
}

// Reducers lists all reducers, in order.
func Reducers() []Reducer {
	all := make([]Reducer, len(reducers))
	for i := range all {
		all[i] = Reducer(i)
	}
	return all
}

// String is r's name: "sum".
func (r Reducer) String() string { return reducers[r].name }

// Key implements [device.Body].
func (r Reducer) Key() string { return "reduce " + reducers[r].name }

// Prim combines two elements.
func (r Reducer) Prim() Prim { return reducers[r].prim }

// Identity returns the Bits of the value that the fold starts with. It is defined for the types that Prim is defined
// for.
func (r Reducer) Identity(dt device.DType) uint64 { return reducers[r].identity(dt) }

// A FoldOf is the Body of a Reduce kernel that folds, by By, what Expr makes of the elements at the
// same place of the inputs: it has the bits that a Map kernel of Expr and a Reduce kernel of By
// give one after the other. Expr takes no immediates.
type FoldOf struct {
	By   Reducer
	Expr *Expr
}

// Key implements [device.Body].
func (f FoldOf) Key() string { return f.By.Key() + " of " + f.Expr.Key() }

// The shape of the tree by which elements are combined; see [Fold].
const (
	Lanes = 64   // how many running results a block has
	Block = 4096 // how many elements a block has
)

// Fold combines the elements of x by r. The order depends on the length of x
// alone, and is such that vector units and GPUs can follow it:
//
//   - x is cut into blocks of [Block] elements; the last may be shorter.
//   - A block has [Lanes] lanes. Lane l starts with the identity and takes the
//     block's elements l, l+Lanes, l+2*Lanes, ... in this order. Then
//     lane l takes lane l+32 for l < 32, then l+16 for l < 16, and so on: lane 0 is
//     the result. (Lanes that got no element hold the identity, and
//     taking it changes nothing, so a short block may begin with fewer lanes:
//     the smallest power of two that is not below its length.)
//   - The blocks' results are combined in neighbouring pairs, first with
//     second, third with fourth, an odd last one going on alone, until one is left.
//
// Everywhere the earlier one is the left operand. The fold of nothing is the identity.
func Fold[T device.Element](r Reducer, x []T) T {
	combine := r.Prim().Func(device.DTypeOf[T]()).(func(T, T) T)
	identity := Value[T](r.Identity(device.DTypeOf[T]()))
	if len(x) == 0 {
		return identity
	}
	var results []T
	for len(x) > 0 {
		block := x[:min(Block, len(x))]
		x = x[len(block):]
		var lanes [Lanes]T
		for l := range lanes {
			lanes[l] = identity
		}
		for i, v := range block {
			lanes[i%Lanes] = combine(lanes[i%Lanes], v)
		}
		for half := Lanes / 2; half > 0; half /= 2 {
			for l := range half {
				lanes[l] = combine(lanes[l], lanes[l+half])
			}
		}
		results = append(results, lanes[0])
	}
	for len(results) > 1 {
		var next []T
		for i := 0; i+1 < len(results); i += 2 {
			next = append(next, combine(results[i], results[i+1]))
		}
		if len(results)%2 == 1 {
			next = append(next, results[len(results)-1])
		}
		results = next
	}
	return results[0]
}

// LanesFor is how many lanes a block of n elements, at least one, needs.
func LanesFor(n int) int {
	if n >= Lanes {
		return Lanes
	}
	return 1 << bits.Len(uint(n-1))
}

// ArgFold is the index of the first element of x that ReduceMax or ReduceMin, as r
// says, folds x to, or of the first NaN; 0 and -0 are equal. It is -1 if x is empty.
func ArgFold[T float32 | float64 | int64](r Reducer, x []T) int {
	best := -1
	for i, v := range x {
		switch {
		case best < 0:
		case x[best] != x[best]:
			return best
		case v != v:
		case r == ReduceMax && v > x[best]:
		case r == ReduceMin && v < x[best]:
		default:
			continue
		}
		best = i
	}
	return best
}

// Scan sets dst, as long as x, to the folds of x up to each element, combined one
// after the other, from the first to the last or back.
func Scan[T device.Element](r Reducer, dst, x []T, back bool) {
	combine := r.Prim().Func(device.DTypeOf[T]()).(func(T, T) T)
	acc := Value[T](r.Identity(device.DTypeOf[T]()))
	for i := range x {
		if back {
			i = len(x) - 1 - i
		}
		acc = combine(acc, x[i])
		dst[i] = acc
	}
}
