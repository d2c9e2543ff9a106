package gen_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/asyncgen/asyncgen/gen"
	"github.com/asyncgen/asyncgen/gen/internal/gentest"
	"github.com/asyncgen/asyncgen/internal/turns"
)

// newcomerShare is what part of the functions in testdata/newcomer is rewritten, without a wait that is left in a loop.
const newcomerShare = 0.8

// TestNewcomer rewrites functions that were written without a thought of the generator, runs them
// as written and as rewritten, and holds the share in whose loops nothing waits any more. It prints
// why the others do.
func TestNewcomer(t *testing.T) {
	turns.Take(t)
	const from = "testdata/newcomer"
	dir := gentest.NewModule(t)
	for _, file := range []string{"kernels.go", "trainers.go", "newcomer_test.go"} {
		text, err := os.ReadFile(filepath.Join(from, file))
		if err != nil {
			t.Fatal(err)
		}
		gentest.Write(t, filepath.Join(dir, file), text)
	}
	result, err := gen.Generate(context.Background(), gen.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := result.Commit(); err != nil {
		t.Fatal(err)
	}
	applied, refused := make(map[string]bool), make(map[string]bool)
	for _, r := range result.Remarks {
		switch r.Verdict {
		case gen.Applied:
			applied[r.Function] = true
		default:
			refused[r.Function] = true
			t.Logf("%s: %v", r.Function, r)
		}
	}
	rewritten := 0
	for f := range applied {
		if !refused[f] {
			rewritten++
		}
	}
	for f := range refused {
		applied[f] = true
	}
	t.Logf("%d of %d are rewritten", rewritten, len(applied))
	if share := float64(rewritten) / float64(len(applied)); !(share >= newcomerShare) {
		t.Errorf("%.0f %% are rewritten, want %.0f %% at least", 100*share, 100*newcomerShare)
	}
	gentest.RunTests(t, dir)
}
