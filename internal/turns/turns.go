// Package turns has the cases of long tests take turns. go test runs a third of them, the same ones each time.
// ASYNCGEN_TEST_TURN chooses: 1 is that third, 2 and 3 are the others, and "all" runs all. .ci/run takes the next third
// with each commit, and all if it is told so.
package turns

import (
	"fmt"
	"hash/fnv"
	"os"
	"testing"
)

const number = 3

// turn returns the number of the third to run, or 0 for all.
func turn(t testing.TB) int {
	t.Helper()
	switch v := os.Getenv("ASYNCGEN_TEST_TURN"); v {
	case "", "1":
		return 1
	case "2":
		return 2
	case "3":
		return 3
	case "all":
		return 0
	default:
		t.Fatal(fmt.Errorf("ASYNCGEN_TEST_TURN is %q: want 1, 2, 3 or all", v))
		return 0
	}
}

// Has reports whether it is a case's turn. Which third a case belongs to depends on its name alone.
func Has(t testing.TB, name string) bool {
	t.Helper()
	n := turn(t)
	if n == 0 {
		return true
	}
	h := fnv.New32a()
	h.Write([]byte(name))
	return int(h.Sum32()%number)+1 == n
}

// Take skips the test unless it is its turn.
func Take(t testing.TB) {
	t.Helper()
	if !Has(t, t.Name()) {
		t.Skip("it has not its turn: see ASYNCGEN_TEST_TURN in package internal/turns")
	}
}
