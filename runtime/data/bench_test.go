package data_test

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/runtime/data"
)

// BenchmarkLoader says how many images of 28 by 28 two workers give in a second, shuffled, in batches of 64. If
// ASYNCGEN_PYTHON, or python3, is a Python that has PyTorch, the other numbers say how many times as fast that is as
// its DataLoader with two workers.
func BenchmarkLoader(b *testing.B) {
	const n = 60_000
	images := data.Array[uint8]{Data: make([]uint8, n*28*28), Shape: []int{n, 28, 28}}
	labels := data.Array[int64]{Data: make([]int64, n), Shape: []int{n}}
	loader := data.NewLoader(data.Pair(images, labels), 64, data.Options{Shuffle: true, Workers: 2})
	for b.Loop() {
		for _, err := range loader.All() {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	rate := float64(b.N) * n / b.Elapsed().Seconds()
	b.ReportMetric(rate, "images/s")

	out, err := exec.Command(cmp.Or(os.Getenv("ASYNCGEN_PYTHON"), "python3"), "testdata/loader.py").Output()
	if err != nil {
		b.Logf("no PyTorch: %v", err)
		return
	}
	for line := range strings.Lines(string(out)) {
		var name string
		var theirs float64
		if _, err := fmt.Sscan(line, &name, &theirs); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(rate/theirs, "x-PyTorch-"+name)
	}
}
