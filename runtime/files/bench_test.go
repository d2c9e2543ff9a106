package files_test

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/runtime/files"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// BenchmarkRead reads a file of 1 GiB that the system has in its page cache. The other numbers say how many times
// as long cat takes to read it, and Python's safetensors, if ASYNCGEN_PYTHON, or python3, is a Python that has it.
func BenchmarkRead(b *testing.B) {
	path := filepath.Join(b.TempDir(), "big.safetensors")
	tensors := make(map[string]*tensor.Tensor)
	for i := range 16 {
		tensors[fmt.Sprint(i)] = tensor.Ones(16, 1<<20)
	}
	if err := files.Write(path, tensors, nil); err != nil {
		b.Fatal(err)
	}
	clear(tensors)
	b.SetBytes(1 << 30)
	for b.Loop() {
		tensors, err := files.Read(path)
		if err != nil {
			b.Fatal(err)
		}
		for _, t := range tensors {
			if err := t.Wait(); err != nil {
				b.Fatal(err)
			}
			tensor.Dead(t)
		}
	}
	ours := b.Elapsed() / time.Duration(b.N)

	cat := time.Duration(1 << 62)
	for range 3 {
		start := time.Now()
		if err := exec.Command("cat", path).Run(); err != nil {
			b.Fatal(err)
		}
		cat = min(cat, time.Since(start))
	}
	b.ReportMetric(float64(cat)/float64(ours), "x-cat")
	out, err := exec.Command(cmp.Or(os.Getenv("ASYNCGEN_PYTHON"), "python3"), "testdata/read.py", path).Output()
	if err != nil {
		b.Logf("no safetensors: %v", err)
		return
	}
	var seconds float64
	if _, err := fmt.Sscan(string(out), &seconds); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(seconds/ours.Seconds(), "x-Python")
}
