package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/internal/opgraph"
	"github.com/asyncgen/asyncgen/internal/trace"
	"github.com/asyncgen/asyncgen/internal/trace/page"
)

const traceAbout = `
Trace reads what a program has written with ASYNCGEN_TRACE=FILE, or with
asyncrt.StartTrace. It says how long the program was blocked, in which calls
on which lines, and writes a page for browsers that shows what ran when, and
what each operation and each wait waited for. The page needs no server and
no network.

Blocked is the time in which a call waited while its goroutine executed
nothing.

The page has the lines of the program around those that the trace names, if
their files are still there. It replaces an older page, and no other file.

Lines that waited come with what the linter finds about them, if they are in
the module of this folder. "asyncgen explain AT001" explains a finding.

With -dot or -svg it writes which operations read the results of which, of all
the trace or of the part that -span names, and no page:

	asyncgen trace -svg step.svg -span train.go:27-30 -span 4.2ms-4.4ms FILE
`

// maxLines is how many lines the table has.
const maxLines = 10

func traceCommand(ctx context.Context, e *env, args []string) int {
	fs := e.flags("trace", traceAbout)
	out := fs.String("o", "", "write the page to this `file` (default FILE.html)")
	dot := fs.String("dot", "", "write no page, but what depends on what to this `file`, for Graphviz")
	svg := fs.String("svg", "", "write no page, but a drawing of what depends on what to this `file`")
	var spans []trace.Span
	fs.Func("span", "with -dot or -svg, the `part` of the trace: 4.2ms-4.4ms, train.go:30 or train.go:27-30, for what ran at that time\nor was enqueued by these lines; may be repeated, for what is in all of them", func(text string) error {
		span, err := trace.ParseSpan(text)
		spans = append(spans, span)
		return err
	})
	findings := fs.Bool("vet", true, "name what the linter finds on the lines that waited")
	if code, ok := e.parse(fs, args); !ok {
		return code
	}
	if fs.NArg() != 1 {
		return e.trouble("trace: which file? ASYNCGEN_TRACE=FILE has a program write one; flags go before it")
	}
	name := fs.Arg(0)
	switch hasGraph := *dot != "" || *svg != ""; {
	case hasGraph && *out != "":
		return e.trouble("trace: -dot and -svg write no page; they go without -o")
	case !hasGraph && len(spans) > 0:
		return e.trouble("trace: -span is for -dot and -svg")
	case *out == "":
		*out = name + ".html"
	}
	t, err := readTrace(name)
	if err != nil {
		return e.trouble("trace: %s", tensorapi.Visible(err.Error())) // names of files may have several lines
	}
	if *dot != "" || *svg != "" {
		if err := writeGraphs(t, spans, *dot, *svg); err != nil {
			return e.trouble("trace: %s", tensorapi.Visible(err.Error()))
		}
		return exitOK
	}
	if err := trace.MayReplace(*out, page.First, "a page of a trace"); err != nil { // before vet, which takes long
		return e.trouble("trace: %s", tensorapi.Visible(err.Error()))
	}
	p := &page.Page{Pictures: []page.Picture{{Sides: []page.Side{{Trace: t}}}}, Source: sources(), Explain: explained}
	if *findings {
		p.Findings = e.findingsAt(ctx, "trace", t)
	}
	if err := writePage(*out, p); err != nil {
		return e.trouble("trace: %s", tensorapi.Visible(err.Error()))
	}
	writeVerdict(visible{e.stdout}, t, p)
	fmt.Fprintf(visible{e.stdout}, "\nThe page is %s\n", *out)
	return exitOK
}

func readTrace(name string) (*trace.Trace, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, err := trace.Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}

// writeGraphs writes the graph of spans to the files that have a name.
func writeGraphs(t *trace.Trace, spans []trace.Span, dot, svg string) error {
	g, err := t.Graph(spans...)
	if err != nil {
		return err
	}
	for i := range g {
		n := &g[i]
		n.Op, n.What, n.Where = tensorapi.Visible(n.Op), tensorapi.Visible(n.What), tensorapi.Visible(n.Where)
	}
	if dot != "" {
		if err := create(dot, opgraph.FirstDOT, "a graph of a trace", g.WriteDOT); err != nil {
			return err
		}
	}
	if svg != "" {
		return create(svg, opgraph.FirstSVG, "a graph of a trace", g.WriteSVG)
	}
	return nil
}

// writePage writes the page. A file that is no page of ours stays as it is.
func writePage(name string, p *page.Page) error {
	return create(name, page.First, "a page of a trace", p.Write)
}

// create writes a file that begins with first. One of the same name that does not stays as it is.
func create(name, first, what string, write func(io.Writer) error) error {
	if err := trace.MayReplace(name, first, what); err != nil {
		return err
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<16)
	return errors.Join(write(w), w.Flush(), f.Close())
}

// writeVerdict prints where the program was blocked, with the sources and findings of p.
func writeVerdict(out io.Writer, t *trace.Trace, p *page.Page) {
	v, short := t.Verdict(), shortNames(t)
	codes := func(file string, line int) string {
		if p.Findings == nil {
			return ""
		}
		return page.Codes(p.Findings(file, line))
	}
	fmt.Fprintln(out, t.Sentence(v, trace.Naming{Short: short, Source: p.Source, Codes: codes}))
	if t.IsCut {
		fmt.Fprintln(out, "The last moments may be missing: the program did not end the trace.")
	}
	if t.Lost > 0 {
		fmt.Fprintf(out, "%d events are lost: they came too fast to be written.\n", t.Lost)
	}
	if len(v.Lines) == 0 {
		return
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\n%9s\t%6s\t%8s\tcall\tfound\tline\tfunction\n", "blocked", "share", "waits")
	rows := v.Lines[:min(len(v.Lines), maxLines)]
	for _, line := range rows {
		at, fn, found := "an unknown place", "", ""
		if p := line.At; p != nil {
			at, fn, found = fmt.Sprintf("%s:%d", short[p.File], p.Line), p.Func, codes(p.File, p.Line)
		}
		fmt.Fprintf(w, "%9s\t%6s\t%8d\t%s\t%s\t%s\t%s\n", trace.Time(line.Time), trace.Percent(line.Time, v.Total), line.Waits, line.Call, cmp.Or(found, "-"), at, fn)
	}
	w.Flush()
	if n := len(v.Lines) - len(rows); n > 0 {
		fmt.Fprintf(out, "and %d more lines, which the page has\n", n)
	}
	if p.Findings == nil {
		return
	}
	said := map[page.Finding]bool{}
	for _, line := range rows {
		if line.At == nil {
			continue
		}
		for _, f := range p.Findings(line.At.File, line.At.Line) {
			if !said[f] {
				said[f] = true
				fmt.Fprintf(out, "\n%s: %s\n", f.Code, f.Text)
			}
		}
	}
}

// shortNames returns names of the files of a trace that are paths from here, if the files are below this folder.
func shortNames(t *trace.Trace) map[string]string {
	names := trace.ShortFiles(t)
	here, err := os.Getwd()
	if err != nil {
		return names
	}
	for file := range names {
		names[file] = file
		if rel, err := filepath.Rel(here, file); err == nil && filepath.IsLocal(rel) {
			names[file] = rel
		}
	}
	return names
}

// maxSource is how long a file may be whose lines are shown.
const maxSource = 4 << 20

// sources returns a function that reads the lines of files of Go; none of others, since the names come from the trace.
func sources() func(file string) []string {
	read := map[string][]string{}
	return func(file string) []string {
		lines, ok := read[file]
		if !ok {
			lines = sourceLines(file)
			read[file] = lines
		}
		return lines
	}
}

func sourceLines(file string) []string {
	info, err := os.Stat(file)
	if err != nil || !filepath.IsAbs(file) || filepath.Ext(file) != ".go" || !info.Mode().IsRegular() || info.Size() > maxSource {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	return strings.Split(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n")
}
