package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/analysis"
)

// The test binary is the tool that go vet runs for the command under test.
func TestMain(m *testing.M) {
	if analysis.IsUnit(os.Args[1:]) {
		analysis.Unit()
	}
	os.Exit(m.Run())
}

func TestVetUsage(t *testing.T) {
	for want, args := range map[string]string{
		`severity "loud"`:      "vet -severity=loud",
		"-diff needs -fix":     "vet -diff",
		"goes without -fix":    "vet -fix -json",
		`unknown rule "AT999"`: "vet -rules=AT001,AT999",
	} {
		if message := oneLine(t, exitTrouble, strings.Fields(args)...); !strings.Contains(message, want) {
			t.Errorf("asyncgen %s: %q, want a message with %q", args, message, want)
		}
	}
}

func TestVet(t *testing.T) {
	dir := t.TempDir()
	stubs := filepath.Join("..", "..", "analysis", "testdata", "src", "github.com", "asyncgen", "asyncgen")
	if err := os.CopyFS(filepath.Join(dir, "asyncgen"), os.DirFS(stubs)); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"asyncgen/go.mod": "module github.com/asyncgen/asyncgen\n\ngo 1.26\n",
		"go.mod":          "module example.com/user\n\ngo 1.26\n\nrequire github.com/asyncgen/asyncgen v0.0.0\n\nreplace github.com/asyncgen/asyncgen => ./asyncgen\n",
		"clean/clean.go":  "package clean\n",
		"broken/broken.go": `package broken

import "github.com/asyncgen/asyncgen/runtime/tensor"

var x = tensor.Nothing
`,
		"loop/loop.go": `package loop

import "github.com/asyncgen/asyncgen/runtime/tensor"

func Sum(x *tensor.Tensor) (sum float64) {
	for i := range 100 {
		x = x.AddScalar(1)
		v := x.Item()
		if i%10 == 0 {
			sum += v
		}
	}
	return sum
}
`,
	} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)

	loop := filepath.Join("loop", "loop.go")
	stdout, stderr, code := asyncgen(t, "vet", "./loop", "./clean")
	if code != exitFindings || stderr != "" || !strings.HasPrefix(stdout, loop+":8:8: ") || strings.Count(stdout, "\n") != 1 {
		t.Errorf("vet exits with %d and prints\n%s%s", code, stdout, stderr)
	}

	stdout, stderr, code = asyncgen(t, "vet", "-json", "./loop")
	var found []analysis.Finding
	if err := json.Unmarshal([]byte(stdout), &found); err != nil {
		t.Fatalf("vet -json: %v in\n%s%s", err, stdout, stderr)
	}
	if code != exitFindings || len(found) != 1 || found[0].Rule != "AT008" || len(found[0].Fixes) != 1 || len(found[0].Related) != 1 {
		t.Errorf("vet -json exits with %d and prints\n%s", code, stdout)
	}

	if stdout, stderr, code = asyncgen(t, "vet", "-json", "./clean"); code != exitOK || strings.TrimSpace(stdout) != "[]" {
		t.Errorf("vet -json of a clean package exits with %d and prints\n%s%s", code, stdout, stderr)
	}

	if stdout, stderr, code = asyncgen(t, "vet", "./broken"); code != exitTrouble || stdout != "" || !strings.Contains(stderr, "undefined: tensor.Nothing") {
		t.Errorf("vet of a broken package exits with %d and prints\n%s%s", code, stdout, stderr)
	}

	if stdout, stderr, code = asyncgen(t, "vet", "-fix", "-diff", "./loop"); code != exitFindings || !strings.Contains(stdout, "+\t\t\tv := x.Item()\n") {
		t.Errorf("vet -fix -diff exits with %d and prints\n%s%s", code, stdout, stderr)
	}
	if stdout, stderr, code = asyncgen(t, "vet", "-fix", "./loop"); code != exitOK || stdout+stderr != "" {
		t.Errorf("vet -fix exits with %d and prints\n%s%s", code, stdout, stderr)
	}
	if stdout, stderr, code = asyncgen(t, "vet", "./loop"); code != exitOK || stdout+stderr != "" {
		t.Errorf("vet of the fixed package exits with %d and prints\n%s%s", code, stdout, stderr)
	}
}
