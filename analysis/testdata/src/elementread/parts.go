package elementread

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func record(row *tensor.Tensor) (list []string) {
	for _, v := range row.Float32s() {
		list = append(list, fmt.Sprint(v))
	}
	return list
}

func encode(w *csv.Writer, out io.Writer, t *tensor.Tensor) error {
	for i := range t.Dim(0) {
		if err := w.Write(record(t.Row(i))); err != nil { // want `repeated read in loop: record reads one part of t in each iteration`
			return err
		}
	}
	for _, row := range t.Unbind(0) {
		if err := json.NewEncoder(out).Encode(row); err != nil { // want `reads one part of t in each iteration`
			return err
		}
	}
	rows := t.Unbind(0)
	for i, row := range rows {
		for _, v := range row.Float32s() { // want `row.Float32s\(\) reads one part of t in each iteration`
			fmt.Fprintln(out, i, v)
		}
	}
	return nil
}

// Silent from here on.

func describe(out io.Writer, t *tensor.Tensor, names map[string]int) {
	for i, row := range t.Unbind(0) {
		fmt.Fprintln(out, i, row.Dim(0))
		if i%100 == 0 {
			fmt.Fprintln(out, row)
		}
	}
	for name, i := range names {
		fmt.Fprintln(out, name, i)
	}
	all := t.Float32s()
	for i := range t.Dim(0) {
		fmt.Fprintln(out, all[i*t.Dim(1):(i+1)*t.Dim(1)])
	}
	for _, row := range tensor.From([]float32{1, 2}).Unbind(0) {
		fmt.Fprintln(out, row) // host data, which nobody waits for
	}
}

func palette(picture *tensor.Tensor, points [][2]int) (colours [][3]float64) {
	for _, at := range points {
		var c [3]float64
		for ch := range c {
			c[ch] = picture.At(ch, at[0], at[1]) // want `picture.At\(ch, at\[0\], at\[1\]\) reads one part of picture`
		}
		colours = append(colours, c)
	}
	return colours
}

func worst(errors, places *tensor.Tensor, n int) (list []float64) {
	for i := range n {
		at := places.AtInt(i)                   // want `places.AtInt\(i\) reads one part of places`
		list = append(list, errors.At(int(at))) // want `errors.At\(int\(at\)\) reads one part of errors`
	}
	return list
}

// followed goes from one place to the next, which only the tensor tells.
func followed(next *tensor.Tensor, n int) (list []int64) {
	var at int64
	for range n {
		at = next.AtInt(int(at))
		list = append(list, at)
	}
	return list
}

// A table that the host has made. While the device is busy an element of it is a round trip.

type schedule struct {
	rates []float64
	table *tensor.Tensor
}

func newSchedule(rates []float32) *schedule {
	s := &schedule{rates: make([]float64, len(rates))}
	s.table = tensor.From(rates)
	return s
}

func (s *schedule) sample(x *tensor.Tensor, f func(*tensor.Tensor, int) *tensor.Tensor) *tensor.Tensor {
	for t := len(s.rates) - 1; t >= 0; t-- {
		x = x.Sub(f(x, t)).MulScalar(s.table.At(t)) // want `reads one part of s.table`
	}
	for t := range s.rates {
		s.rates[t] = s.table.At(t) // nobody waits
	}
	return x
}

func columnsByIndex(x *tensor.Tensor, order []int, find func(int) int) (all [][]float32) {
	for j := range x.Dim(1) {
		all = append(all, x.Index(tensor.All(), tensor.At(j)).Float32s())             // want `reads one part of x`
		all = append(all, x.Index(tensor.Range(2*j, 2*j+2), tensor.At(0)).Float32s()) // want `reads one part of x`
		all = append(all, x.Index(tensor.All(), tensor.At(find(j))).Float32s())       // who knows how many there are
	}
	for _, j := range order {
		all = append(all, x.Index(tensor.All(), tensor.At(j)).Float32s()) // want `reads one part of x`
	}
	return all
}

// The elements of one tensor decide whether those of another are read. Both are read one by one.
func percentage(pred, truth *tensor.Tensor, n int) (sum float64) {
	for i := range n {
		if truth.At(i) == 0 { // want `reads one part of truth`
			continue
		}
		sum += (pred.At(i) - truth.At(i)) / truth.At(i) // want `reads one part of pred`
	}
	return sum
}
