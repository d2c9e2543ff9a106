// Package turns has the cases of long tests take turns. go test runs a quarter of them, the same ones each time.
// ASYNCGEN_TEST_TURN chooses: 1 is that quarter, 2 to 4 are the others, and "all" runs all. .ci/run takes the quarter
// that the commit's number chooses, and all if it is told so.
package turns

import (
	"fmt"
	"hash/fnv"
	"os"
	"testing"
)

const number = 4

// turn returns the number of the quarter to run, or 0 for all.
func turn(t testing.TB) int {
	t.Helper()
	switch v := os.Getenv("ASYNCGEN_TEST_TURN"); v {
	case "", "1":
		return 1
	case "2":
		return 2
	case "3":
		return 3
	case "4":
		return 4
	case "all":
		return 0
	default:
		t.Fatal(fmt.Errorf("ASYNCGEN_TEST_TURN is %q: want 1 to 4 or all", v))
		return 0
	}
}

// Has reports whether it is a case's turn. Which quarter a case belongs to depends on its name alone.
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
