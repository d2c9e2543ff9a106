package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
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
`

// maxLines is how many lines the table has.
const maxLines = 10

func traceCommand(ctx context.Context, e *env, args []string) int {
	fs := e.flags("trace", traceAbout)
	out := fs.String("o", "", "write the page to this `file` (default FILE.html)")
	if code, ok := e.parse(fs, args); !ok {
		return code
	}
	if fs.NArg() != 1 {
		return e.trouble("trace: which file? ASYNCGEN_TRACE=FILE has a program write one; flags go before it")
	}
	name := fs.Arg(0)
	if *out == "" {
		*out = name + ".html"
	}
	source := sources()
	t, err := readTrace(name)
	if err == nil {
		err = writeTracePage(*out, t, source)
	}
	if err != nil {
		return e.trouble("trace: %s", tensorapi.Visible(err.Error())) // names of files may have several lines
	}
	writeVerdict(visible{e.stdout}, t, source)
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

// writeTracePage writes the page. A file that is no such page stays as it is.
func writeTracePage(name string, t *trace.Trace, source func(file string) []string) error {
	if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		old, err := os.Open(name)
		if err != nil {
			return err
		}
		first := make([]byte, len(page.First))
		_, err = io.ReadFull(old, first)
		old.Close()
		if err != nil || string(first) != page.First {
			return fmt.Errorf("%s has something else in it than a page of a trace, and stays as it is", name)
		}
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<16)
	return errors.Join(page.Write(w, t, source), w.Flush(), f.Close())
}

// writeVerdict prints where the program was blocked.
func writeVerdict(out io.Writer, t *trace.Trace, source func(file string) []string) {
	v, short := t.Verdict(), shortNames(t)
	fmt.Fprintln(out, t.Sentence(v, short, source))
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
	fmt.Fprintf(w, "\n%9s\t%6s\t%8s\tcall\tline\tfunction\n", "blocked", "share", "waits")
	rows := v.Lines[:min(len(v.Lines), maxLines)]
	for _, line := range rows {
		at, fn := "an unknown place", ""
		if p := line.At; p != nil {
			at, fn = fmt.Sprintf("%s:%d", short[p.File], p.Line), p.Func
		}
		fmt.Fprintf(w, "%9s\t%6s\t%8d\t%s\t%s\t%s\n", trace.Time(line.Time), trace.Percent(line.Time, v.Total), line.Waits, line.Call, at, fn)
	}
	w.Flush()
	if n := len(v.Lines) - len(rows); n > 0 {
		fmt.Fprintf(out, "and %d more lines, which the page has\n", n)
	}
}

// shortNames returns names of the files of a trace that are paths from here, if the files are below this folder.
func shortNames(t *trace.Trace) map[string]string {
	names := t.ShortFiles()
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
