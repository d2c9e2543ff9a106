package overlay_test

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/gen/overlay"
)

// A killed go command left its temporary files behind, and what it had started running.
func TestInterruptedGoCommandCleansUp(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process can only be killed on Windows")
	}
	dir, temp := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module m\n\ngo 1.26\n",
		"m.go":   "package main\n\nimport (\n\t\"io\"\n\t\"os\"\n)\n\nfunc main() {\n\tprintln(\"here\")\n\tio.Copy(io.Discard, os.Stdin)\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := overlay.Command(ctx, "run", ".")
	cmd.WaitDelay = time.Minute
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOTMPDIR="+temp, "GOWORK=off")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	interrupt := cmd.Cancel
	cmd.Cancel = func() error {
		err := interrupt()
		stdin.Close() // now the program ends by itself
		return err
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	if !lines.Scan() || lines.Text() != "here" {
		t.Errorf("the program says %q", lines.Text())
	}
	cancel()
	for lines.Scan() {
	}
	cmd.Wait() // its error is that of ctx
	left, err := os.ReadDir(temp)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		t.Errorf("left behind: %s", e.Name())
	}
}
