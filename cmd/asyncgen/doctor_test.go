package main

import (
	"strings"
	"testing"
)

// Doctor has every backend, though this command has none, and says why there is no GPU where there is none.
func TestDoctor(t *testing.T) {
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

// Where the go command can't build the program, doctor says what the go command says.
func TestDoctorOutsideOfAModule(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("GOPROXY", "off")
	_, stderr, code := asyncgen(t, "doctor")
	if code != exitTrouble || !strings.Contains(stderr, "go build: ") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	oneLine(t, exitTrouble, "doctor", "me")
}
