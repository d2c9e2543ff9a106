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
	ReduceSum  Reducer = iota // of numbers; 0 if there are none
	ReduceProd                // of numbers; 1 if there are none
	ReduceMax                 // of numbers; if there are none, the least value, -Inf for floats
	ReduceMin                 // of numbers; if there are none, the greatest value, +Inf for floats
	ReduceAll                 // of bools, or of the bits of integers; true if there are none
	ReduceAny                 // of bools, or of the bits of integers; false if there are none
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
	ReduceAll:  {"all", PrimAnd, func(dt device.DType) uint64 { return BitsOf(-1, dt) }},
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

// Identity returns the Bits of the value that the fold starts with. It is defined for the types of Prim.
func (r Reducer) Identity(dt device.DType) uint64 { return reducers[r].identity(dt) }

// A FoldOf is the Body of a Reduce kernel that computes Expr for each element of the inputs and folds
// the results by By. It gives the bits of a Map kernel of Expr followed by a Reduce kernel of By.
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

// Fold combines the elements of x by r. The order depends on the length of x alone, and vector units
// and GPUs can follow it:
//
//   - x is cut into blocks of [Block] elements; the last may be shorter.
//   - A block has [Lanes] lanes. Lane l starts with the identity and takes the block's elements l,
//     l+Lanes, l+2*Lanes, ... in this order. Then lane l takes lane l+32 for l < 32, then lane l+16
//     for l < 16, and so on. Lane 0 is the result. (Lanes without elements hold the identity, and
//     taking it changes nothing. So a short block may begin with fewer lanes: the smallest power of
//     two that is not below its length.)
//   - The blocks' results are combined in neighbouring pairs, first with second, third with fourth,
//     until one is left. An odd last one goes on alone.
//
// The earlier one is always the left operand. The fold of nothing is the identity.
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

// ArgFold is the index of the greatest element of x if r is ReduceMax, of the least if r is
// ReduceMin, and of the first NaN if there is one. Among equal elements it is the first; 0 and -0 are
// equal. It is -1 if x is empty.
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

// Scan sets each dst[i] to the fold of x[0] to x[i], combined one after the other. With back, it
// starts at the last element and goes down to x[i]. dst is as long as x.
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
