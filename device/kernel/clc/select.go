package clc

import (
	"fmt"
	"slices"

	"github.com/asyncgen/asyncgen/device"
)

var (
	gatherArgs = []Operand{{Buf, 0}, {Buf, 1}, {Buf, 2}, {Kind: Fault}}
	settleArgs = []Operand{{Buf, 2}, {Kind: Fault}}
	outOnly    = []Operand{{Buf, 0}}
	sumArgs    = [2][]Operand{{{Buf, 0}, {Buf, 1}, {Scratch, 0}, {Scratch, 1}}, {{Buf, 0}, {Buf, 1}, {Scratch, 2}, {Scratch, 3}}}
)

func isSelection(k *device.Kernel) bool {
	return k.Body == nil && len(k.In) == 2 && k.In[0] == k.Out && k.In[1] == device.Int64
}

func (l *Lowering) lowerGather(c *device.Command) error {
	k := c.Kernel
	if !isSelection(k) {
		return unsupported(k)
	}
	space := &l.axes[0]
	if err := space.merge(c.Args.Shape, c.Args.Strides[1], c.Args.Strides[2]); err != nil {
		return err
	}
	l.within(c, 0, 0, c.N-1)
	l.spans(c, 1, 0, space, l.along(c, 0))
	l.spans(c, 2, 1, space)
	f := form{rank: printed(space), flags: wide(c.N)}
	s, err := l.source(k, f, printGather)
	if err != nil {
		return err
	}
	l.push(uint64(c.N), uint64(c.Args.LeastIndex()), uint64(c.Args.Ints[0]), uint64(c.Args.Ints[1]))
	l.off(c, 0, k.Out.Size())
	l.off(c, 1, k.Out.Size())
	l.off(c, 2, 8)
	l.slot()
	l.view(space, f.rank)
	l.launch(s, gatherArgs, groupsFor(c.N), items)
	outer := space
	if err := outer.merge(c.Args.Shape[:l.width(c)], c.Args.Strides[2][:l.width(c)]); err != nil {
		return err
	}
	return l.settle(c, outer)
}

// along returns the axis that indices choose from, as operand o of a space.
func (l *Lowering) along(c *device.Command, o int) *axes {
	a := &l.axes[3]
	a.rank, a.dims[0] = 1, c.Args.Ints[0]
	a.strides[o][0] = c.Args.Ints[1]
	return a
}

// width returns how many leading axes the indices vary over. Together, the axes behind them are the
// slice that one index selects.
func (l *Lowering) width(c *device.Command) int {
	split := len(c.Args.Shape)
	for split > 0 && (c.Args.Strides[2][split-1] == 0 || c.Args.Shape[split-1] == 1) {
		split--
	}
	return split
}

// settle appends the launch that finds the first wrong index, if there is one. outer is the space
// of the indices.
func (l *Lowering) settle(c *device.Command, outer *axes) error {
	n := outer.size()
	f := form{part: partSettle, rank: printed(outer), flags: wide(n)}
	s, err := l.source(c.Kernel, f, printSettle)
	if err != nil {
		return err
	}
	l.push(uint64(n), uint64(c.Args.LeastIndex()), uint64(c.Args.Ints[0]))
	l.off(c, 2, 8)
	l.slot()
	l.view(outer, f.rank)
	l.launch(s, settleArgs, 1, items)
	return nil
}

func printGather(p *program, k *device.Kernel, f form) error {
	p.define("T", ofSize(k.Out.Size()))
	p.params("N", "LEAST", "LENGTH", "STEP", "OUT", "IN", "INDEX", "SLOT")
	p.view("space", f.rank, 2)
	p.kernel("gather")
	return nil
}

func printSettle(p *program, _ *device.Kernel, f form) error {
	p.params("N", "LEAST", "LENGTH", "INDEX", "SLOT")
	p.view("space", f.rank, 1)
	p.kernel("settle")
	return nil
}

// lowerScatterAdd sorts the indices by the output place they select. Then all summands of an output
// element are neighbours, in their original order, and one item adds them up.
func (l *Lowering) lowerScatterAdd(c *device.Command) error {
	k := c.Kernel
	if !isSelection(k) || !isNumber(k.Out) {
		return unsupported(k)
	}
	if err := l.zero(c); err != nil {
		return err
	}
	shape, to, from := c.Args.Shape, c.Args.Strides[0], c.Args.Strides[1]
	if to == nil {
		to = shape.Strides()
	}
	if from == nil {
		from = shape.Strides()
	}
	split := l.width(c)
	if !areApart(shape, to, split, c.Args.Ints[1]) {
		split = len(shape)
	}
	count, width := shape[:split].Size(), shape[split:].Size()
	if count*width == 0 {
		return nil
	}
	merged, err := l.sortPlaces(c, to, split, count)
	if err != nil {
		return err
	}
	outer, inner := &l.axes[0], &l.axes[1]
	if err := outer.merge(shape[:split], from[:split]); err != nil {
		return err
	}
	if err := inner.merge(shape[split:], from[split:], to[split:]); err != nil {
		return err
	}
	l.spans(c, 1, 0, outer, inner)
	f := form{part: partSums, rank: printed(outer, inner), flags: wide(max(count, width))}
	s, err := l.source(k, f, printSums)
	if err != nil {
		return err
	}
	l.push(uint64(count), uint64(width))
	l.off(c, 0, k.Out.Size())
	l.off(c, 1, k.Out.Size())
	l.view(outer, f.rank)
	l.view(inner, f.rank)
	l.launch(s, sumArgs[merged], groupsFor(count*width), items)
	if err := outer.merge(shape[:split], c.Args.Strides[2][:split]); err != nil {
		return err
	}
	return l.settle(c, outer)
}

// areApart reports whether the slices of the output that two indices select are always identical or
// disjoint. A slice covers the axes from split on. areApart checks that its elements have distinct
// places, and that its span is no longer than the greatest common divisor of the distances between
// slices.
func areApart(shape device.Shape, strides []int, split, step int) bool {
	var order []int
	for axis := split; axis < len(shape); axis++ {
		if shape[axis] > 1 {
			order = append(order, axis)
		}
	}
	slices.SortFunc(order, func(i, j int) int { return strides[i] - strides[j] })
	span := 1
	for _, axis := range order {
		if strides[axis] < span {
			return false
		}
		span = strides[axis]*(shape[axis]-1) + span
	}
	apart := max(step, -step)
	for axis := range split {
		for rest := max(strides[axis], -strides[axis]); rest != 0 && shape[axis] > 1; { // the greatest common divisor
			apart, rest = rest, apart%rest
		}
	}
	return apart == 0 || apart >= span
}

// sortPlaces appends launches that sort the indices by the output place they select. It returns
// which pair of scratch buffers has the sorted keys and places: 0 or 1, see sumArgs.
func (l *Lowering) sortPlaces(c *device.Command, to []int, split, count int) (merged int, err error) {
	k, none, outer := c.Kernel, &l.axes[0], &l.axes[1]
	if err := none.merge(nil, nil, nil); err != nil {
		return 0, err
	}
	if err := outer.merge(c.Args.Shape[:split], c.Args.Strides[2][:split], to[:split]); err != nil {
		return 0, err
	}
	l.spans(c, 2, 0, outer)
	l.reach(c, to)
	chunk := chunkFor(count)
	chunks := (count + chunk - 1) / chunk
	f := form{part: partChunks, rank: printed(none, outer), flags: wide(count)}
	s, err := l.source(k, f, printPlaces)
	if err != nil {
		return 0, err
	}
	l.push(uint64(chunk), uint64(chunks), uint64(count), 0, 0, uint64(c.Args.LeastIndex()), uint64(c.Args.Ints[0]), uint64(c.Args.Ints[1]))
	l.off(c, 2, 8)
	l.push(0)
	l.slot()
	l.view(none, f.rank)
	l.view(outer, f.rank)
	l.view(none, f.rank)
	l.launch(s, placeArgs, chunks, min(chunk/2, items))
	if chunks > 1 {
		return l.merge(c, none, none, 1, count, 0)
	}
	l.scratch(count * 8)
	l.scratch(count * 8)
	return 0, nil
}

// reach checks that all places that indices of a ScatterAdd can select are in the output.
func (l *Lowering) reach(c *device.Command, to []int) {
	least, most := 0, 0
	for axis, d := range c.Args.Shape {
		span := (d - 1) * to[axis]
		least, most = least+min(span, 0), most+max(span, 0)
	}
	span := (max(c.Args.Ints[0], 1) - 1) * c.Args.Ints[1]
	least, most = least+min(span, 0), most+max(span, 0)
	if l.outside == nil && (least < 0 || most >= c.N) {
		l.outside = fmt.Errorf("opencl: kernel %s: indices lead outside of the output", c.Kernel.Name)
	}
}

func printPlaces(p *program, _ *device.Kernel, f form) error {
	p.define("T", "long")
	p.define("MOST", largeChunk)
	p.defineIf("PLACES", true)
	p.params("CHUNK", "CHUNKS", "LEN", "LAST", "KEPT", "LEAST", "LENGTH", "STEP", "IN", "OUT", "SLOT")
	p.view("kept", f.rank, 2)
	p.view("folded", f.rank, 2)
	p.view("first", f.rank, 2)
	p.kernel("chunks")
	return nil
}

func printSums(p *program, k *device.Kernel, f form) error {
	p.arithmetic(k.Out)
	p.params("N", "WIDTH", "OUT", "IN")
	p.view("outer", f.rank, 1)
	p.view("inner", f.rank, 2)
	p.kernel("sums")
	return nil
}
