package cpu

import (
	"testing"

	"github.com/asyncgen/asyncgen/device/cpu/internal/vec"
	"github.com/asyncgen/asyncgen/device/devicetest"
)

func TestConformance(t *testing.T) {
	for _, a := range vec.Has() {
		t.Run(a.String(), func(t *testing.T) {
			withISA(t, a)
			devicetest.TestBackend(t, New(), devicetest.Options{})
		})
	}
}
