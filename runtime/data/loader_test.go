package data_test

import (
	"testing"

	"github.com/asyncgen/asyncgen/runtime/data"
)

func TestSmoke(t *testing.T) {
	x := data.Array[float32]{Data: make([]float32, 20), Shape: []int{10, 2}}
	for i := range x.Data {
		x.Data[i] = float32(i)
	}
	y := data.Array[int64]{Data: []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, Shape: []int{10}}
	l := data.NewLoader(data.Pair(x, y), 3, data.Options{Shuffle: true})
	for range 2 {
		for b, err := range l.All() {
			if err != nil {
				t.Fatal(err)
			}
			t.Log(b.X, b.Y, l.Position())
		}
	}
}
