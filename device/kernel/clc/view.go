package clc

import (
	"fmt"

	"github.com/asyncgen/asyncgen/device"
)

// maxRank bounds the axes of a view, after those that can be walked as one were merged.
const maxRank = 12

// axes are a space, with as few axes as possible, and the strides of some operands over it. The
// innermost axis comes first.
type axes struct {
	rank     int
	operands int
	dims     [maxRank]int
	strides  [device.MaxOperands][maxRank]int
}

// merge sets a to the axes of shape with the strides of operands, nil being those of something contiguous over it.
func (a *axes) merge(shape device.Shape, operands ...[]int) error {
	a.rank, a.operands = 0, len(operands)
	inner := 1 // elements of the axes inside
	for i := len(shape) - 1; i >= 0; i-- {
		d := shape[i]
		if d == 1 {
			continue
		}
		var strides [device.MaxOperands]int
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

// isContiguous reports whether all operands are.
func (a *axes) isContiguous() bool {
	for o := range a.operands {
		if a.rank > 1 || a.rank == 1 && a.strides[o][0] != 1 {
			return false
		}
	}
	return true
}

// size is how many elements the space has.
func (a *axes) size() int {
	n := 1
	for _, d := range a.dims[:a.rank] {
		n *= d
	}
	return n
}

// fewAxes are as many as nearly all views have.
const fewAxes = 4

// printed is for how many axes of each of these views a text is printed. There are two kinds of
// text only, as compiling takes long.
func printed(views ...*axes) uint8 {
	for _, a := range views {
		if a.rank > fewAxes {
			return maxRank
		}
	}
	return fewAxes
}

// view pushes what a view of these axes takes in a text for so many.
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

// wide is isWide if n elements need it.
func wide(n int) flags {
	if n > 1<<31-1 {
		return isWide
	}
	return 0
}

// stridesOf are those of operand i of c, nil if it is contiguous.
func stridesOf(c *device.Command, i int) []int {
	if c.Args == nil {
		return nil
	}
	return c.Args.Strides[i]
}
