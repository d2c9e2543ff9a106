package clc

import (
	"github.com/asyncgen/asyncgen/device"
)

// Rows are sorted in chunks that fit into the local memory of a work group. Sorted chunks are then
// merged in pairs.
const (
	smallChunk = 64
	largeChunk = 1024
)

// chunkFor returns the length of a chunk for rows of n elements.
func chunkFor(n int) int {
	if n <= smallChunk {
		return smallChunk
	}
	return largeChunk
}

// The arguments of the kernels chunks and merge. A launch that doesn't need an argument gets any
// operand, and does not access it.
var (
	sortArgs = []Operand{{Buf, 0}, {Buf, 0}, {Buf, 0}, {Buf, 0}, {Buf, 1}} // a row is one chunk
	// Keys and places go to scratch memory, for merge.
	chunkArgs = []Operand{{Buf, 0}, {Scratch, 0}, {Scratch, 1}, {Buf, 0}, {Buf, 1}}
	// The same for indices, which may be wrong.
	placeArgs = []Operand{{Buf, 0}, {Scratch, 0}, {Scratch, 1}, {Kind: Fault}, {Buf, 2}}
	mergeArgs = [2][]Operand{{{Scratch, 0}, {Scratch, 1}, {Scratch, 2}, {Scratch, 3}, {Buf, 0}}, {{Scratch, 2}, {Scratch, 3}, {Scratch, 0}, {Scratch, 1}, {Buf, 0}}}
)

func (l *Lowering) lowerArgSort(c *device.Command) error {
	k := c.Kernel
	if k.Body != nil || len(k.In) != 1 || !isNumber(k.In[0]) || k.Out != device.Int64 {
		return unsupported(k)
	}
	kept, folded, first := &l.axes[0], &l.axes[1], &l.axes[2]
	shape, n, most := c.Args.Shape, c.Args.Kept, c.Args.Ints[0]
	in, out := c.Args.Strides[1], c.Args.Strides[0]
	if in == nil {
		in = shape.Strides()
	}
	if out == nil {
		out = append(shape[:n:n], most).Strides()
	}
	if err := kept.merge(shape[:n], in[:n], out[:n]); err != nil {
		return err
	}
	zero := make([]int, len(shape)-n)
	if err := folded.merge(shape[n:], in[n:], zero); err != nil {
		return err
	}
	if err := first.merge(device.Shape{most}, []int{0}, out[n:]); err != nil {
		return err
	}
	return l.sort(c, kept, folded, first, most)
}

// sort lowers an ArgSort.
func (l *Lowering) sort(c *device.Command, kept, folded, first *axes, most int) error {
	l.spans(c, 0, 1, kept, first)
	l.spans(c, 1, 0, kept, folded)
	k, rows, length := c.Kernel, kept.size(), folded.size()
	chunk := chunkFor(length)
	chunks := (length + chunk - 1) / chunk
	f := form{part: partChunks, rank: printed(kept, folded, first), flags: wide(max(length, rows))}
	args := chunkArgs
	if chunks == 1 {
		args = sortArgs
	}
	s, err := l.source(k, f, printChunks)
	if err != nil {
		return err
	}
	l.push(uint64(chunk), uint64(chunks), uint64(length), truth(chunks == 1), uint64(most), uint64(c.Args.Ints[1]))
	l.off(c, 1, k.In[0].Size())
	l.off(c, 0, k.Out.Size())
	l.view(kept, f.rank)
	l.view(folded, f.rank)
	l.view(first, f.rank)
	l.launch(s, args, rows*chunks, min(chunk/2, items))
	if chunks == 1 {
		return nil
	}
	_, err = l.merge(c, kept, first, rows, length, most)
	return err
}

// merge appends the launches that merge sorted chunks, pair by pair, from scratch buffers 0 and 1
// into 2 and 3 and back. If most is not 0, the last launch writes the first most elements of each
// row to the output. Otherwise merge returns which pair of scratch buffers has the result, 0 or 1.
func (l *Lowering) merge(c *device.Command, kept, first *axes, rows, length, most int) (from int, err error) {
	for range 4 {
		l.scratch(rows * length * 8)
	}
	f := form{part: partMerge, flags: wide(max(rows, length)), rank: printed(kept, first)}
	s, err := l.source(c.Kernel, f, printMerge)
	if err != nil {
		return 0, err
	}
	for run := largeChunk; run < length; run *= 2 {
		l.push(uint64(rows*length), uint64(length), uint64(run), truth(run*2 >= length && most > 0), uint64(most))
		l.off(c, 0, c.Kernel.Out.Size())
		l.view(kept, f.rank)
		l.view(first, f.rank)
		l.launch(s, mergeArgs[from], groupsFor(rows*length), items)
		from = 1 - from
	}
	return from, nil
}

// keys are the texts of sort keys: numbers as ulong, in the same order. 0 and -0 have the same key,
// and NaN has the greatest.
var keys = [...]string{
	device.Float32: "(ISNAN(x) ? 0xffffffffffffffffUL : (ulong)((x) == 0 ? 0x80000000u : AG_BITS32(x) >> 31 ? ~AG_BITS32(x) : AG_BITS32(x) | 0x80000000u))",
	device.Float64: "(ISNAN(x) ? 0xffffffffffffffffUL : (x) == 0 ? 0x8000000000000000UL : AG_BITS64(x) >> 63 ? ~AG_BITS64(x) : AG_BITS64(x) | 0x8000000000000000UL)",
	device.Int64:   "((ulong)(x) ^ 0x8000000000000000UL)",
}

var isNaN = map[bool]string{true: "((x) != (x))", false: "0"}

func printChunks(p *program, k *device.Kernel, f form) error {
	p.define("T", ctype(k.In[0]))
	p.define("KEY(x)", keys[k.In[0]])
	p.define("ISNAN(x)", isNaN[k.In[0].IsFloat()])
	p.define("MOST", largeChunk)
	p.defineIf("PLACES", false)
	p.params("CHUNK", "CHUNKS", "LEN", "LAST", "KEPT", "DESCENDING", "IN", "OUT")
	p.view("kept", f.rank, 2)
	p.view("folded", f.rank, 2)
	p.view("first", f.rank, 2)
	p.kernel("chunks")
	return nil
}

func printMerge(p *program, _ *device.Kernel, f form) error {
	p.params("N", "LEN", "RUN", "LAST", "KEPT", "OUT")
	p.view("kept", f.rank, 2)
	p.view("first", f.rank, 2)
	p.kernel("merge")
	return nil
}
