package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/gen/compare"
	"github.com/asyncgen/asyncgen/internal/trace"
	"github.com/asyncgen/asyncgen/internal/trace/page"
)

const compareAbout = `
Compare builds a main package as it is written and with every function
rewritten that can be, runs both, and says whether they do the same, and what
is gained: the same standard output and the same end, time, waits, stalls and
memory. Standard error is shown, not compared. Nothing is read from
standard input.

With -bench it does so with the benchmarks of a package, of any package, that
the pattern names, as go test -bench does: each runs its body the same number of times
in both forms.

The devices that -device names are values of ASYNCGEN_DEVICE; of opencl:0 both
forms import the backend, whether the program does or not. If the program as
written prints something else on one of them than on the first, a note says so: that
is no difference of what was rewritten.

A program that calls a generated function itself, and not what that was generated from, is not
compared: both forms would do the same.

The program as written runs twice first: what its output has that differs from
run to run (a time, an address) has to be left out with -mask.

Exit codes: 0 the same, 1 different or failing in both forms, 2 trouble: the
program does not build, hangs, is not the same twice.
`

func compareCommand(ctx context.Context, e *env, args []string) int {
	cfg := compare.Config{Progress: e.progress()}
	fs := e.flags("compare", compareAbout)
	devices := fs.String("device", "cpu,sim:0", "compare on these `devices`")
	fs.IntVar(&cfg.Count, "count", 5, "how often each program is timed on each device")
	fs.DurationVar(&cfg.Timeout, "timeout", 0, "kill a run, and what it has started, that takes longer (default 1m)")
	fs.Func("mask", "leave what matches this `regexp` out of the comparison of output, line by line; may be repeated", func(s string) error {
		re, err := regexp.Compile(s)
		cfg.Masks = append(cfg.Masks, re)
		return err
	})
	fs.StringVar(&cfg.Bench, "bench", "", "compare the benchmarks of the package that match this `regexp`")
	fs.IntVar(&cfg.Times, "times", 20, "with -bench, how often each benchmark runs its body in a process")
	asJSON := fs.Bool("json", false, "print the result as JSON")
	html := fs.String("html", "", "write the result to this `file`, too, as a page for browsers that shows what ran when: each program is run\nonce more on each device, traced. It replaces an older page, and no other file")
	if code, ok := e.parse(fs, args); !ok {
		return code
	}
	words := fs.Args()
	if len(words) == 0 {
		return e.trouble("compare: which package? for example: asyncgen compare ./cmd/train")
	}
	cfg.Package, words = words[0], words[1:]
	if len(words) > 0 {
		if words[0] != "--" {
			return e.trouble("compare: one package at a time, flags before it; the program's own arguments follow \"--\"")
		}
		cfg.Args = words[1:]
	}
	switch {
	case cfg.Count < 1:
		return e.trouble("compare: -count is %d, want at least 1", cfg.Count)
	case cfg.Times < 1:
		return e.trouble("compare: -times is %d, want at least 1", cfg.Times)
	case cfg.Timeout < 0:
		return e.trouble("compare: -timeout is %v, want a time that is not negative", cfg.Timeout)
	}
	cfg.Devices = strings.Split(*devices, ",")
	if cfg.Trace = *html != ""; cfg.Trace {
		if err := trace.MayReplace(*html, page.First, "a page of a trace"); err != nil {
			return e.trouble("compare: %v", err)
		}
	}

	result, err := compare.Run(ctx, cfg)
	cfg.Progress("")
	if err != nil {
		if ctx.Err() != nil {
			return e.trouble("compare: interrupted")
		}
		return e.trouble("compare: %v", err)
	}
	if *asJSON {
		enc := json.NewEncoder(e.stdout)
		enc.SetIndent("", "  ")
		err = enc.Encode(result)
	} else {
		err = result.WriteText(e.stdout)
	}
	if err == nil && *html != "" {
		err = e.writeComparison(ctx, *html, result)
	}
	waits := func(d *compare.Device) bool { return d.Original.Sync.Waits > 0 }
	if len(result.Rewritten)+len(result.Refused) == 0 && !slices.ContainsFunc(result.Devices, waits) {
		e.message("compare: the program does not wait for a tensor of asyncgen; compare does not look at other libraries")
	}
	switch {
	case err != nil:
		return e.trouble("compare: %v", err)
	case !result.Same():
		return exitFindings
	case result.Failure() != "":
		e.trouble("compare: the program fails in both forms, which leaves the rest of it untried: %s", result.Failure())
		return exitFindings
	}
	return exitOK
}

// writeComparison writes the page of a comparison, with sources, and what the linter finds beside the remarks of the
// generator.
func (e *env) writeComparison(ctx context.Context, name string, result *compare.Result) error {
	p, err := result.Page()
	if err != nil {
		return err
	}
	var traces []*trace.Trace
	for _, pic := range p.Pictures {
		for _, side := range pic.Sides {
			traces = append(traces, side.Trace)
		}
	}
	remarks, findings := p.Findings, e.findingsAt(ctx, "compare", traces...)
	p.Source, p.Explain = sources(), explained
	p.Findings = func(file string, line int) []page.Finding {
		return slices.Concat(findings(file, line), remarks(file, line))
	}
	return writePage(name, p)
}

// progress returns a function that shows what happens now on one line of the
// terminal, and clears the line for "". Without a terminal it does nothing.
func (e *env) progress() func(step string) {
	f, ok := e.stderr.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return func(string) {}
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return func(string) {}
	}
	return func(step string) { fmt.Fprintf(f, "\r\033[K%s", step) }
}
