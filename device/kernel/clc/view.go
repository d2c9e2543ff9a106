package clc

import (
	"fmt"

	"github.com/asyncgen/asyncgen/device"
)

// maxRank bounds the axes of a view after merging.
const maxRank = 12

// axes are an iteration space, merged into as few axes as possible, and the strides of some
// operands over it. The innermost axis comes first.
type axes struct {
	rank     int
	operands int
	dims     [maxRank]int
	strides  [1 + device.MaxInputs][maxRank]int
}

// merge sets a to shape with the strides of operands. Neighbouring axes that all operands step
// through as if they were one are merged. nil strides are those of an operand that is contiguous
// over shape.
func (a *axes) merge(shape device.Shape, operands ...[]int) error {
	a.rank, a.operands = 0, len(operands)
	inner := 1 // the number of elements of the axes further inside
	for i := len(shape) - 1; i >= 0; i-- {
		d := shape[i]
		if d == 1 {
			continue
		}
		var strides [1 + device.MaxInputs]int
		canMerge := a.rank > 0
		for o, s := range operands {
			if strides[o] = inner; s != nil {
				strides[o] = s[i]
			}
			canMerge = canMerge && strides[o] == a.strides[o][a.rank-1]*a.dims[a.rank-1]
		}
		inner *= d
		if canMerge {
			a.dims[a.rank-1] *= d
			continue
		}
		if a.rank == maxRank {
			return fmt.Errorf("opencl: view of shape %v with more than %d independent axes: %w", shape, maxRank, device.ErrUnsupported)
		}
		a.dims[a.rank] = d
		for o := range operands {
			a.strides[o][a.rank] = strides[o]
		}
		a.rank++
	}
	return nil
}

// isContiguous reports whether all operands are contiguous.
func (a *axes) isContiguous() bool {
	for o := range a.operands {
		if a.rank > 1 || a.rank == 1 && a.strides[o][0] != 1 {
			return false
		}
	}
	return true
}

// size returns how many elements the space has.
func (a *axes) size() int {
	n := 1
	for _, d := range a.dims[:a.rank] {
		n *= d
	}
	return n
}

// fewAxes is enough for nearly all views.
const fewAxes = 4

// printed returns how many axes the text has room for in each of these views: fewAxes or maxRank.
// There are only these two variants, as compiling takes long.
func printed(views ...*axes) uint8 {
	for _, a := range views {
		if a.rank > fewAxes {
			return maxRank
		}
	}
	return fewAxes
}

// view pushes the rank, lengths and strides of a for a text with room for so many axes.
func (l *Lowering) view(a *axes, printed uint8) {
	rank := int(printed)
	l.push(uint64(a.rank))
	for axis := range rank {
		if axis < a.rank {
			l.push(uint64(a.dims[axis]))
		} else {
			l.push(1)
		}
	}
	for o := range a.operands {
		for axis := range rank {
			if axis < a.rank {
				l.push(uint64(a.strides[o][axis]))
			} else {
				l.push(0)
			}
		}
	}
}

// wide returns isWide if counts up to n need 64 bits.
func wide(n int) flags {
	if n > 1<<31-1 {
		return isWide
	}
	return 0
}
