package devicetest

import (
	"fmt"

	"github.com/asyncgen/asyncgen/device"
)

// testConcat puts parts side by side: a few or many, some without elements, some twice.
func testConcat(s *suite) {
	for range 30 {
		concat(s, ordinary[float32])
		concat(s, someFloats[float64])
		concat(s, someInts)
		concat(s, bools)
	}
}

func concat[T device.Element](s *suite, values func(*suite, int) []T) {
	dt := device.DTypeOf[T]()
	rows, count := 1+s.rnd.IntN(4), 1+s.rnd.IntN(7)
	switch s.rnd.IntN(6) {
	case 0:
		count = 200
	case 1:
		rows = 300
	}
	c := device.Command{Kernel: device.NewKernel(fmt.Sprintf("concat %v", dt), device.Concat, nil, dt), Args: &device.Args{Shape: device.Shape{rows}}}
	var data [][]T
	for len(data) < count {
		p := device.Part{Off: s.rnd.IntN(5), N: s.rnd.IntN(9)}
		switch s.rnd.IntN(8) {
		case 0:
			p.N = 1
		case 1:
			p.N = 100 + s.rnd.IntN(2000)/count
		}
		all := values(s, p.Off+rows*p.N)
		p.Buf = put(s, all)
		for range 1 + s.rnd.IntN(2)*s.rnd.IntN(2) {
			c.Args.Parts, data, c.N = append(c.Args.Parts, p), append(data, all[p.Off:]), c.N+rows*p.N
		}
	}
	got := compute[T](s, c)
	for row := range rows {
		for i, p := range c.Args.Parts {
			for j, want := range data[i][row*p.N:][:p.N] {
				if !same(got[0], want) {
					s.Fatalf("row %d of %d, part %d of %d: element %d of %d is %v, want %v", row, rows, i, len(data), j, p.N, got[0], want)
				}
				got = got[1:]
			}
		}
	}
}
