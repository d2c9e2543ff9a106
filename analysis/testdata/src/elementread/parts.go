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
