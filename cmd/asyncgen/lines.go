package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/asyncgen/asyncgen/analysis"
	"github.com/asyncgen/asyncgen/device/report"
	"github.com/asyncgen/asyncgen/gen"
	"github.com/asyncgen/asyncgen/internal/trace"
	"github.com/asyncgen/asyncgen/internal/trace/page"
)

// What the tools say about lines of programs that were traced, and what traces say to the linter.

// findingsAt asks vet for its findings in the packages that waited, as far as they are in the module of this folder. It
// returns what there is about a line: the finding that a wait there belongs to. What can't be analysed has no findings,
// and a message says why.
func (e *env) findingsAt(ctx context.Context, name string, traces ...*trace.Trace) func(file string, line int) []page.Finding {
	none := func(string, int) []page.Finding { return nil }
	patterns := waitingPackages(traces)
	if len(patterns) == 0 {
		return none
	}
	findings, err := analysis.Vet(ctx, analysis.Config{Patterns: patterns, Info: true, Tests: true})
	if err != nil {
		e.message("%s: some findings may be missing: %v", name, err)
	}
	at := analysis.ByLine(findings)
	return func(file string, line int) []page.Finding {
		i := at(filepath.FromSlash(file), line)
		if i < 0 {
			return nil
		}
		where, first, _ := analysis.SplitPosn(findings[i].Posn)
		text := fmt.Sprintf("%s:%d: %s", filepath.Base(where), first, strings.TrimSuffix(findings[i].Message, " ["+findings[i].Rule+"]"))
		return []page.Finding{{Code: findings[i].Rule, Text: text}}
	}
}

// waitingPackages are patterns for the folders of files in which something waited, of the module around this folder.
func waitingPackages(traces []*trace.Trace) []string {
	here, err := os.Getwd()
	if err != nil {
		return nil
	}
	module := moduleAround(here)
	if module == "" {
		return nil
	}
	dirs := map[string]bool{}
	for _, t := range traces {
		for _, line := range t.Verdict().Lines {
			if line.At == nil || !filepath.IsAbs(line.At.File) {
				continue
			}
			dir := filepath.Dir(filepath.FromSlash(line.At.File))
			if info, err := os.Stat(dir); err != nil || !info.IsDir() || moduleAround(dir) != module {
				continue
			}
			if rel, err := filepath.Rel(here, dir); err == nil && gen.NoPackage("./"+rel) == "" {
				dirs["./"+filepath.ToSlash(rel)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(dirs))
}

// moduleAround is the nearest folder around dir with a go.mod, or "".
func moduleAround(dir string) string {
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}

// readReport reads a report, or a trace, which has the same about waits.
func readReport(name string) (*report.Report, error) {
	if !trace.IsTrace(name) {
		return report.ReadFile(name)
	}
	t, err := readTrace(name)
	if err != nil {
		return nil, err
	}
	return reportOf(t), nil
}

// reportOf says of the waits of a trace what a report would.
func reportOf(t *trace.Trace) *report.Report {
	r := &report.Report{}
	at := map[report.Place]int{}
	ran := make([][]time.Duration, len(t.Rows)) // when operations in each row began
	for i := range t.Slices {
		if s := &t.Slices[i]; s.Kind == trace.Op {
			ran[s.Row] = append(ran[s.Row], s.Begin)
		}
	}
	for _, begins := range ran {
		slices.Sort(begins)
	}
	for i := range t.Slices {
		s := &t.Slices[i]
		if s.Kind == trace.Op {
			continue
		}
		p := report.Place{Op: s.Name}
		if s.At != nil {
			p.File, p.Line, p.Func = filepath.FromSlash(s.At.File), s.At.Line, s.At.Func
		}
		first, _ := slices.BinarySearch(ran[s.Row], s.Begin)
		end, _ := slices.BinarySearch(ran[s.Row], s.End)
		c := report.Counts{Helps: int64(max(end-first, 0)), HelpNS: int64(s.End - s.Begin - s.Idle)}
		if s.Kind == trace.Wait {
			c.Waits, c.WaitNS = 1, int64(s.Idle)
		} else {
			c.Stalls, c.StallNS = 1, int64(s.Idle)
		}
		k, ok := at[p]
		if !ok {
			k = len(r.Records)
			at[p] = k
			r.Records = append(r.Records, report.Record{Place: p})
		}
		r.Records[k].Add(c)
		r.Total.Add(c)
	}
	return r
}
