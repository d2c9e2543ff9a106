package cpu

import (
	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/pool"
)

// Maps of operands that lie across the result, as x.Add(y.T()) has one: neighbours of the result are far apart in the
// operand. To gather them one by one takes a cache line for each. So such an operand is transposed first, in blocks
// that use whole lines, a band of the result at a time. (x.T() plus 1, of 256 x 4096 elements, took 4.4 ms and takes
// 0.5: one core of a busy AMD EPYC, Zen 3.)

// Limits of bands. Tests make them small.
var (
	fewestAcross = 4096      // elements of a command for which it pays
	bandBytes    = 256 << 10 // of a transposed operand: it stays in the second cache
)

const (
	thinnestBand = 16      // rows of a band, if they are neighbours in the operand: they share a cache line
	mostBytes    = 8 << 20 // of a band
	leastRow     = 4       // how many neighbours in the operand are worth it
)

// across returns the inputs of c that lie across the result, a bit for each.
func (p *program) across(c *device.Command) (set uint) {
	if c.Args == nil || c.N < fewestAcross {
		return 0
	}
	for i := 1; i <= p.inputs; i++ {
		if strides := c.Strides(i); strides != nil && liesAcross(c.Args.Shape, strides) {
			set |= 1 << i
		}
	}
	return set
}

// liesAcross reports whether neighbours in memory are neighbours along another axis than the last one.
func liesAcross(shape device.Shape, strides []int) bool {
	last := len(shape) - 1
	for last >= 0 && shape[last] == 1 {
		last--
	}
	if last < 0 || strides[last] < leastRow {
		return false
	}
	for i, d := range shape[:last] {
		if strides[i] == 1 && d >= leastRow {
			return true
		}
	}
	return false
}

// runAcross runs c. set says which inputs lie across the result. ok is false if a band would need too much memory: then
// runAcross has done nothing.
func (p *program) runAcross(c *device.Command, set uint) (ok bool, err error) {
	b := bands{program: p, command: *c, set: set}
	args := c.Args.Clone()
	b.command.Args = args
	for args.Shape[0] == 1 { // more than one element follows
		args.Shape = args.Shape[1:]
		for i := range args.Strides {
			if args.Strides[i] != nil {
				args.Strides[i] = args.Strides[i][1:]
			}
		}
		for i := range args.Parts {
			if args.Parts[i].Strides != nil {
				args.Parts[i].Strides = args.Parts[i].Strides[1:]
			}
		}
	}
	b.each = c.N / args.Shape[0]
	least, bytes := 1, 0 // of a row
	for i := 1; i <= p.inputs; i++ {
		if set&(1<<i) == 0 {
			continue
		}
		bytes = max(bytes, b.each*p.sizes[i])
		if b.command.Strides(i)[0] == 1 {
			least = min(thinnestBand, args.Shape[0])
		}
	}
	b.rows = min(max(least, bandBytes/bytes), args.Shape[0])
	if b.rows*bytes > mostBytes {
		return false, nil
	}
	// What is wrong with the command is found before anything is written.
	s := scratches.Get().(*scratch)
	err = s.open(p, c, 0)
	s.release()
	if err != nil {
		return true, err
	}
	n := (args.Shape[0] + b.rows - 1) / b.rows
	pool.Run(n, grainOf((p.cost+p.moves+copyCost)*b.rows*b.each), b.run)
	return true, nil
}

// bands are the parts of a command that are computed one by one: some neighbouring rows of the result each, a row being
// all elements with the same index along the first axis.
type bands struct {
	program *program
	command device.Command
	set     uint // the inputs that lie across
	rows    int  // of a band
	each    int  // elements of a row
}

func (b *bands) run(lo, hi int) {
	for i := lo; i < hi; i++ {
		b.band(i*b.rows, min((i+1)*b.rows, b.command.Args.Shape[0]))
	}
}

// band computes the rows from lo to hi-1.
func (b *bands) band(lo, hi int) {
	p, c := b.program, b.command
	args := c.Args.Clone()
	c.Args, c.N = args, (hi-lo)*b.each
	args.Shape[0] = hi - lo
	c.Off[0] += lo * b.each
	for i := 1; i <= p.inputs; i++ {
		buf, off := c.Operand(i)
		strides := c.Strides(i)
		if strides == nil {
			off += lo * b.each
		} else {
			off += lo * strides[0]
		}
		if b.set&(1<<i) != 0 {
			turned := takeSpare(c.N * p.sizes[i])
			defer giveSpare(turned)
			transpose(turned, buf, off, p.sizes[i], args.Shape, strides)
			buf, off, strides = turned, 0, nil
		}
		if i < device.MaxOperands {
			c.Buf[i], c.Off[i], args.Strides[i] = buf, off, strides
		} else {
			part := &args.Parts[i-device.MaxOperands]
			part.Buf, part.Off, part.Strides = buf, off, strides
		}
	}
	// No error: that was found before.
	_ = p.runRange(&c, 0, c.N)
}

// transpose copies a view of src to dst, without gaps.
func transpose(dst, src *device.Buffer, off, size int, shape device.Shape, strides []int) {
	c := device.Command{N: shape.Size(), Args: &device.Args{Shape: shape}}
	c.Buf[0], c.Buf[1], c.Off[1], c.Args.Strides[1] = dst, src, off, strides
	var t transfer
	if err := t.open(&c, size); err != nil {
		panic(err) // which makeView would have found as well
	}
	t.past = false // the copy is read at once
	t.run(0, t.to.dims[0])
}
