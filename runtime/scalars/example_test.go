package scalars_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/asyncgen/asyncgen/runtime/scalars"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// What is recorded can be read again, by this program or a later one.
func Example() {
	dir, err := os.MkdirTemp("", "scalars")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "run", "scalars.csv")

	w, err := scalars.Open(scalars.Options{CSV: path})
	if err != nil {
		panic(err)
	}
	x := tensor.Full(256, 1)
	for step := range 3 {
		x = x.Sqrt()
		w.Add(step, "root", x)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	list, err := scalars.Read(path)
	fmt.Println(list, err)
	// Output: [{root [0 1 2] [16 4 2]}] <nil>
}
