package severity

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Loops that others pace, and searches, are of severity info; but not what a world only has for a record.

type game interface {
	Step(action int) (state []float32, reward float64)
}

func play(e game, state []float32, n int) (total float64) {
	for range n {
		act := tensor.From(state).ArgMax()
		next, r := e.Step(int(act.ItemInt()))
		state, total = next, total+r
	}
	return total
}

func record(e game, xs []*tensor.Tensor) (total float64) {
	for _, x := range xs {
		_, r := e.Step(int(x.ArgMax().ItemInt())) // want `AT001`
		total += r
	}
	return total
}

type request struct {
	x      []float32
	answer chan float64
}

func receive(in chan request) (list []request) {
	for len(list) < 8 {
		list = append(list, <-in)
	}
	return list
}

func serve(in chan request, rows chan []float32) {
	for {
		for _, q := range receive(in) {
			q.answer <- 0
		}
		y := tensor.From(<-rows).Sum()
		fmt.Fprint(io.Discard, y.Item())
	}
}

func stream(ctx context.Context, x *tensor.Tensor, to chan<- float64) error {
	for {
		x = x.Square()
		v, err := x.Norm().ItemContext(ctx)
		if err != nil {
			return err
		}
		select {
		case to <- v:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func filter(r io.Reader, w io.Writer, block []float32) error {
	for {
		if err := binary.Read(r, binary.LittleEndian, block); err != nil {
			return err
		}
		if err := binary.Write(w, binary.LittleEndian, tensor.From(block).Square().Float32s()); err != nil {
			return err
		}
	}
}

func sink(w io.Writer, in <-chan *tensor.Tensor) error {
	for x := range in {
		if err := binary.Write(w, binary.LittleEndian, x.Float32s()); err != nil {
			return err
		}
	}
	return nil
}

func descend(f func(*tensor.Tensor) *tensor.Tensor, x *tensor.Tensor, n int) *tensor.Tensor {
	for range n {
		g := f(x)
		at := g.Norm().Item()
		rate := 1.0
		for f(x.AddScaled(g, -rate)).Item() > at {
			rate /= 2
		}
		x = x.AddScaled(g, -rate)
	}
	return x
}

func (s *server) first() *tensor.Tensor { return s.all[0] }

// What a function makes of a value on the host could be made on the device.

func iterate(x *tensor.Tensor, n int) *tensor.Tensor {
	for range n {
		next := clip(x.Square().Float32s()) // want `AT001`
		x = tensor.From(next)
	}
	return x
}

func clip(list []float32) []float32 {
	for i := range list {
		list[i] = min(list[i], 1)
	}
	return list
}
