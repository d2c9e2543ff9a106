package e2e_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/asyncgen/asyncgen/internal/turns"
)

// overRanks are the programs that train over the ranks of a job with -ranks, and what they print then, at their small
// size and on any number of ranks.
var overRanks = map[string]string{
	"chargpt":  "testdata/programs/chargpt/ranks.golden",
	"parallel": "testdata/programs/parallel/small.golden",
}

// TestProgramsOfOneRank runs the programs of overRanks without a launcher, as written and rewritten. TestMachines runs
// them on several ranks.
func TestProgramsOfOneRank(t *testing.T) {
	all := buildPrograms(t)
	for name, golden := range overRanks {
		if !*update && !turns.Has(t, name) {
			continue
		}
		for _, form := range formsOf(all, name) {
			for _, device := range []string{"cpu", "sim:0"} {
				got := runProgram(t, []string{all.bin, form, "-small", "-ranks"}, "ASYNCGEN_DEVICE="+device)
				if *update && form == name && device == "cpu" && filepath.Base(golden) == "ranks.golden" {
					if err := os.WriteFile(golden, got, 0o644); err != nil {
						t.Fatal(err)
					}
				}
				if want := readText(t, golden); !bytes.Equal(got, []byte(want)) {
					t.Errorf("%s -small -ranks on %s prints\n%s\nwant, as in %s,\n%s", form, device, got, golden, want)
				}
			}
		}
	}
}

// formsOf returns the names of a program in all programs: as written and, if there is anything to rewrite, rewritten.
func formsOf(all everyProgram, name string) []string {
	if rewritten := name + rewrittenSuffix; slices.Contains(all.names, rewritten) {
		return []string{name, rewritten}
	}
	return []string{name}
}
