package opencl

import (
	"runtime"
	"testing"
)

func TestNoDevice(t *testing.T) {
	t.Setenv("HOME", "/home/somebody")
	if got, want := errNoDevice("lib", 1).Error(), "lib was opened, but its driver has no device"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := errNoDevice("lib", 2).Error(), "lib was opened, but its 2 drivers have no device"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if runtime.GOOS == "windows" {
		return
	}
	t.Setenv("HOME", "")
	if got, want := errNoDevice("lib", 1).Error(), "lib was opened, but its driver has no device; HOME is not set, without which some drivers find none"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
