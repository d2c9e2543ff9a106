package fuzz

import (
	"strings"
	"testing"
)

// Enough programs call functions of another package, which look at values, and are told apart from
// those that stand beside the kernel.
func TestAway(t *testing.T) {
	away, looks, beside := 0, 0, 0
	for seed := range uint64(1500) {
		p := newProgram(seed, "K")
		text := p.away()
		if text != "" {
			away++
		}
		if strings.Contains(text, ".Item()") {
			looks++
		}
		if strings.Contains(p.source(""), "\nfunc kHelp") || strings.HasPrefix(p.source(""), "func kHelp") {
			beside++
		}
		for _, h := range p.helpers {
			if used := strings.Contains(p.source(""), "away.KHelp"); h.isAway && strings.Contains(p.source(""), "func K"+h.name) || text != "" && !used {
				t.Errorf("seed %d: %s\n%s", seed, h.name, p.listing())
			}
		}
	}
	if away < 50 || looks < 20 || beside < 50 {
		t.Errorf("of 1500 programs %d call functions of another package, %d those that read, and %d those of their own", away, looks, beside)
	}
}
