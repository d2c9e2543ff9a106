package gentest

import (
	"testing"

	"github.com/asyncgen/asyncgen/runtime/asynctest"
)

func TestOrder(t *testing.T) {
	const maxCalls = 13 // of asynctest.Same, for one seed
	for calls := 1; calls <= maxCalls; calls++ {
		for n := range calls {
			windows := make(map[byte]bool)
			for seed := range asynctest.Runs {
				windows[order[seed*calls+n]] = true
			}
			if len(windows) != 3 {
				t.Errorf("call %d of %d has %d windows in all seeds, want 3", n, calls, len(windows))
			}
		}
	}
}
