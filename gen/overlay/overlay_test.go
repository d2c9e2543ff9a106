package overlay_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/gen"
	"github.com/asyncgen/asyncgen/gen/overlay"
	"github.com/asyncgen/asyncgen/internal/sametemp"
)

const program = `package main

import (
	"fmt"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func main() {
	w := tensor.Ones(2, 2)
	for i := range 3 {
		w = w.MulScalar(2)
		fmt.Println(i, tensor.ItemOf[float32](w.Sum()))
	}
	for range 2 {
		fmt.Println(w.Mean().Item())
		w.Reshape(3) // line 17
	}
}
`

// TestOverlay: a program that is built with the overlay does what it did, and
// a panic names the lines that the user wrote.
func TestOverlay(t *testing.T) {
	dir := sametemp.Dir(t)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"main.go": program,
		"go.sum":  string(sum),
		"go.mod": fmt.Sprintf("module example.com/user\n\ngo 1.26\n\nrequire (\n\tgithub.com/asyncgen/asyncgen v0.0.0\n\tgolang.org/x/sys v0.47.0\n\tgonum.org/v1/gonum v0.17.0\n)\n\n"+
			"replace github.com/asyncgen/asyncgen => %s\n", root),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	result, err := gen.Generate(context.Background(), gen.Config{Dir: dir, All: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := result.Commit(); err == nil {
		t.Error("files for an overlay were committed")
	}
	if len(result.Files) != 1 || strings.Count(string(result.Files[0].Text), "later.Do(") != 2 {
		t.Fatalf("generated: %s", result.Files)
	}
	o, err := overlay.Of(result)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "run", o.Flag(), ".")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.HasPrefix(string(out), "0 8\n1 16\n2 32\n8\npanic: ") || !strings.Contains(string(out), filepath.Join(dir, "main.go")+":17 ") {
		t.Errorf("go run: %v\n%s", err, out)
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(o.JSON()); !os.IsNotExist(err) {
		t.Errorf("after Close: %v", err)
	}
}
