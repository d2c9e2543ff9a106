package cpu

import (
	"sort"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu/internal/vec"
	"github.com/asyncgen/asyncgen/device/pool"
)

func newConcat(k *device.Kernel) (runner, error) {
	if len(k.In) != 0 {
		return nil, unsupported(k)
	}
	size := k.Out.Size()
	return func(c *device.Command) error {
		if c.N <= 0 {
			return nil
		}
		j := joining{dst: pointer(c, 0, size, c.N), size: size, rows: c.Args.Shape[0], parts: c.Args.Parts, past: 2*c.N*size > large}
		j.width = c.N / j.rows
		j.check(c)
		switch {
		case !pool.Worth(c.N, grainOf(copyCost)):
			j.run(0, j.rows)
		case j.rows > 1:
			j.splitRows()
		default:
			j.splitRow()
		}
		return nil
	}, nil
}

// A joining is a Concat command.
type joining struct {
	dst         unsafe.Pointer
	size        int // of an element
	rows, width int // of the output
	parts       []device.Part
	past        bool // the caches
}

// check panics if a part reaches outside of its buffer, or if the parts are not the output's elements.
func (j *joining) check(c *device.Command) {
	width := 0
	for _, p := range j.parts {
		width += p.N
		if p.Off < 0 || p.N < 0 || int64(p.Off+j.rows*p.N)*int64(j.size) > p.Buf.Bytes {
			panic("cpu: kernel " + c.Kernel.Name + ": a part reaches outside of its buffer")
		}
	}
	if width != j.width {
		panic("cpu: kernel " + c.Kernel.Name + ": the parts don't make up the output")
	}
}

// at is row i of a part.
func (j *joining) at(p *device.Part, i int) unsafe.Pointer {
	return unsafe.Add(p.Buf.Ptr, (p.Off+i*p.N)*j.size)
}

// run makes the rows from lo to hi-1, some of them at a time, which stay in the innermost cache where parts are narrow.
func (j *joining) run(lo, hi int) {
	if j.past {
		defer vec.Fence()
	}
	most := max(1, joinBytes/(j.width*j.size))
	for ; lo < hi; lo += most {
		n, to := min(most, hi-lo), lo*j.width
		for i := range j.parts {
			if p := &j.parts[i]; p.N > 0 { // or else it may be where its buffer ends, and no pointer may
				j.put(unsafe.Add(j.dst, to*j.size), j.at(p, lo), n, p.N)
				to += p.N
			}
		}
	}
}

// joinBytes is how many bytes of the output are made before the next part is looked at.
const joinBytes = 16 << 10

// put copies n rows of the given number of contiguous elements to rows of the output.
func (j *joining) put(dst, src unsafe.Pointer, n, width int) {
	switch {
	case width == 1 && j.size == 2:
		copySteps(slice[uint16](dst, (n-1)*j.width+1), slice[uint16](src, n), n, j.width, 1)
	case width == 1 && j.size == 4:
		copySteps(slice[uint32](dst, (n-1)*j.width+1), slice[uint32](src, n), n, j.width, 1)
	case width == 1 && j.size == 8:
		copySteps(slice[uint64](dst, (n-1)*j.width+1), slice[uint64](src, n), n, j.width, 1)
	default:
		for i := range n {
			copyPast(unsafe.Add(dst, i*j.width*j.size), unsafe.Add(src, i*width*j.size), width*j.size, j.past)
		}
	}
}

func (j joining) splitRows() { pool.Run(j.rows, grainOf(copyCost*j.width), j.run) }

// splitRow makes the only row.
func (j joining) splitRow() {
	ends := make([]int, len(j.parts)) // of the parts in the output
	end := 0
	for i, p := range j.parts {
		end += p.N
		ends[i] = end
	}
	pool.Run(j.width, grainOf(copyCost), func(lo, hi int) {
		if j.past {
			defer vec.Fence()
		}
		for i := sort.SearchInts(ends, lo+1); lo < hi; i++ {
			p := &j.parts[i]
			n, done := min(hi, ends[i])-lo, lo-(ends[i]-p.N)
			if n == 0 {
				continue
			}
			copyPast(unsafe.Add(j.dst, lo*j.size), unsafe.Add(p.Buf.Ptr, (p.Off+done)*j.size), n*j.size, j.past)
			lo += n
		}
	})
}

// copyPast copies the given number of bytes, past the caches if past is set.
func copyPast(dst, src unsafe.Pointer, bytes int, past bool) {
	for at := 0; at < bytes; at += part {
		n, to, from := min(bytes-at, part), unsafe.Add(dst, at), unsafe.Add(src, at)
		if past {
			vec.Stream(to, from, n)
		} else {
			copy(slice[byte](to, n), slice[byte](from, n))
		}
	}
}
