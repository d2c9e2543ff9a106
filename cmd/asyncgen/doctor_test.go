package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/internal/turns"
)

// Doctor has every backend, though this command has none, and says why there is no GPU where there is none.
func TestDoctor(t *testing.T) {
	t.Setenv("ASYNCGEN_OPENCL", "")
	t.Setenv("ASYNCGEN_LIBOPENCL", "libnosuchthing.so.7")
	out, stderr, code := asyncgen(t, "doctor")
	if code != exitOK || stderr != "" {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for _, want := range []string{"\ncpu: used\n", "\nopencl: not used\n", "libnosuchthing.so.7: ", "\nsim: used when named"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
}

// Where the go command can't build the program, doctor says why, what the go command says, and what to do.
func TestDoctorOutsideOfAModule(t *testing.T) {
	folder := t.TempDir()
	readOnly(t, folder)
	t.Chdir(folder)
	t.Setenv("GOFLAGS", "")
	t.Setenv("GOPROXY", "off")
	_, stderr, code := asyncgen(t, "doctor")
	if code != exitTrouble || !strings.HasPrefix(stderr, "asyncgen: doctor: ") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	for _, want := range []string{"call it where a go.mod requires github.com/asyncgen/asyncgen\n", "go build: ", "go.mod file not found"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("it does not say %q: %s", want, stderr)
		}
	}
	oneLine(t, exitTrouble, "doctor", "me")
}

func TestDoctorWithoutGo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if got := oneLine(t, exitTrouble, "doctor"); !strings.Contains(got, "needs the go command") {
		t.Errorf("it says %q", got)
	}
}

var purego = regexp.MustCompile("(?m)^github.com/ebitengine/purego .*\n")

// A user's module may know no checksums of what GPU backends import, and its folder can't be written to.
func TestDoctorInAModuleThatIsReadOnly(t *testing.T) {
	turns.Take(t)
	t.Setenv("ASYNCGEN_OPENCL", "off")
	t.Setenv("GOPROXY", "off") // it is all here
	t.Setenv("GONOSUMDB", "*")
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(root, "testdata", "quickstart", name))
		if err == nil {
			text = bytes.ReplaceAll(text, []byte("=> ../..\n"), []byte("=> "+root+"\n"))
			text = purego.ReplaceAll(text, nil)
			err = os.WriteFile(filepath.Join(folder, name), text, 0o444)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	readOnly(t, folder)
	t.Chdir(folder)
	out, stderr, code := asyncgen(t, "doctor")
	if code != exitOK || stderr != "" || !strings.Contains(out, "why: turned off by ASYNCGEN_OPENCL=off\n") {
		t.Errorf("exit code %d: %s%s", code, out, stderr)
	}
	sums, err := os.ReadFile("go.sum")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(sums, []byte("purego v0.11.3 h1:")) {
		t.Error("the module knows the checksums already, so that this tests nothing")
	}
}

// readOnly makes a folder read-only until the test has ended.
func readOnly(t *testing.T, folder string) {
	t.Helper()
	if err := os.Chmod(folder, 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(folder, 0o755) })
}
