package turns_test

import (
	"fmt"
	"testing"

	"github.com/asyncgen/asyncgen/internal/turns"
)

// In four turns, each case has one.
func TestTurns(t *testing.T) {
	const cases = 1000
	times := make([]int, cases)
	for _, turn := range []string{"1", "2", "3", "4", "all"} {
		t.Setenv("ASYNCGEN_TEST_TURN", turn)
		n := 0
		for i := range times {
			if turns.Has(t, fmt.Sprint("case ", i)) {
				times[i]++
				n++
			}
		}
		if turn != "all" && (n < cases/5 || n > cases/3) {
			t.Errorf("turn %s has %d of %d cases", turn, n, cases)
		}
	}
	for i := range times {
		if times[i] != 2 {
			t.Fatalf("case %d has %d turns, want 2: its own and all", i, times[i])
		}
	}
}
