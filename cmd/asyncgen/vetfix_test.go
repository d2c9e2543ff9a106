package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/internal/turns"
)

// fixable has something for every rule with a fix, several of them in one loop.
const fixable = `package main

import (
	"fmt"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func main() {
	tensor.Seed(1)
	x := tensor.Randn(8, 8)
	for _, n := range []int{0, 1, 7} {
		fmt.Println(loop(x, n))
		fmt.Println(many(x, n))
	}
	fmt.Println(invariant(x))
	fmt.Println(waits(x))
}

func loop(x *tensor.Tensor, n int) (float64, []float32, int) {
	var last float64
	var row []float32
	count := 0

	// What the loop does stays as it is.
	for i := range n { // to the end of the line
		y := x.MatMul(x).MulScalar(float64(i)).Tanh()
		v := y.Sum().Item()
		u := y.Mean()
		mean := u.Item()
		row = y.Row(0).Float32s()
		last = float64(y.Max().Item())
		if i%3 == 0 {
			// Rarely.
			fmt.Println(i, v, mean)
		}
		count++
		if count > 5 {
			break
		}
	}
	return last, row, count
}

func many(x *tensor.Tensor, n int) (float64, float64) {
	var last, other float64
	for i := range n {
		y := x.AddScalar(float64(i))
		last = y.Norm().Item()
		other = y.Sum().Item()
		min := y.Min()
		max := y.Max()
		low := min.Item()
		high := max.Item()
		if i == n-1 {
			fmt.Println(low, high)
		}
	}
	return last, other
}

func invariant(x *tensor.Tensor) (total, last float64) {
	scale, shift := x.Norm(), x.Mean()
	end := 0.0
	for i := range 100 {
		total += float64(i)*scale.Item() + shift.Item() - scale.Item()
		end = x.AddScalar(float64(i)).Sum().Item()
	}
	return total, end
}

func waits(x *tensor.Tensor) float64 {
	y := x.Exp().Sum()
	y.Wait()
	return y.Item()
}
`

// The fixes of all rules together leave a program that compiles, prints the
// same, waits for less, and has nothing more to fix.
func TestFixesKeepOutput(t *testing.T) {
	turns.Take(t)
	userModule(t, fixable)
	before := goRun(t)
	stdout, stderr, code := asyncgen(t, "vet", "-fix", ".")
	if code != exitOK || stdout != "" || !strings.HasPrefix(stderr, "asyncgen: vet: 1 file changed; 2 findings left, 0 with a fix") {
		t.Fatalf("vet -fix exits with %d and prints\n%s%s", code, stdout, stderr)
	}
	fixed, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if after := goRun(t); after != before {
		t.Errorf("as written it prints\n%s\nand fixed\n%s\nThe program is now\n%s", before, after, fixed)
	}
	for _, want := range []string{
		"if rowTensor != nil {\n\t\trow = rowTensor.Float32s()\n\t}\n",   // AT002
		"\n\tscaleValue := scale.Item()\n\tshiftValue := shift.Item()\n", // AT006
		"// Rarely.\n", "\t\t\tmean := u.Item()\n", "\t\t\tlow := min.Item()\n\t\t\thigh := max.Item()\n", // AT008
		"\ty := x.Exp().Sum()\n\treturn y.Item()\n", // AT009
		"for i := range n { // to the end of the line\n",
	} {
		if !strings.Contains(string(fixed), want) {
			t.Errorf("%q is not in what was fixed:\n%s", want, fixed)
		}
	}
	if stdout, stderr, code := asyncgen(t, "vet", "-fix", "-diff", "."); code != exitOK || stdout+stderr != "" {
		t.Errorf("fixing again exits with %d and prints\n%s%s", code, stdout, stderr)
	}
	if out, err := exec.Command("gofmt", "-l", ".").CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("gofmt: %v\n%s", err, out)
	}
}

// goRun is what the program in the current folder prints.
func goRun(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("go", "run", ".")
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go run: %v", err)
	}
	return string(out)
}
