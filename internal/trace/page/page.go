// Package page makes of a trace one page for browsers, which opens as a file: lanes of slices over time, what each
// slice waited for, where the program was blocked. It loads nothing, and runs nothing but its own script.
//
// What a trace says is data in the page, compressed, in letters and digits. The script shows it as text. So names and
// lines of a program can't become markup or script, and a policy in the page forbids all other scripts.
package page

import (
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/internal/trace"
)

var (
	//go:embed page.html
	html string
	//go:embed page.css
	style string
	//go:embed page.js
	script string
)

// First is how each page begins.
const First = "<!doctype html>\n<!-- asyncgen trace -->\n"

// maxSlices is how many slices a page may have. With so many it takes some seconds until it can be used.
var maxSlices = 4 << 20 // a variable for tests

// contextLines is how many lines of a source are shown before and after one.
const contextLines = 4

// Write writes the page of a trace. source returns the lines of a file of the program; none if it can't be read.
func Write(w io.Writer, t *trace.Trace, source func(file string) []string) error {
	if n := len(t.Slices); n > maxSlices {
		return fmt.Errorf("the trace has %d operations and waits, and a page at most %d: trace a part of the program, with asyncrt.StartTrace", n, maxSlices)
	}
	before, after, ok := strings.Cut(html, "DATA")
	if !ok {
		return errors.New("page.html has no place for the data")
	}
	frame := strings.NewReplacer("STYLE", style, "SCRIPT", script, "HASHES", fmt.Sprintf("style-src %s; script-src %s", hash(style), hash(script)))
	if _, err := frame.WriteString(w, First+before); err != nil {
		return err
	}
	letters := base64.NewEncoder(base64.StdEncoding, w)
	packed, err := gzip.NewWriterLevel(letters, gzip.BestSpeed)
	if err != nil {
		return err
	}
	if err := encode(packed, t, source); err != nil {
		return err
	}
	if err := errors.Join(packed.Close(), letters.Close()); err != nil {
		return err
	}
	_, err = frame.WriteString(w, after)
	return err
}

// hash names a text in the policy of a page.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// The data of a page: the length of a header as a varint, the header as JSON, then numbers in columns, as varints.

type header struct {
	Program, Go string
	IsCut       bool
	Lost        int
	Begin, End  int64
	Verdict     string
	Count       int // of slices
	Refs        int // of all slices
	Samples     int
	Names       []string // of kernels and calls, and of results
	Places      []place  // the first is none
	Lanes       []lane
	Blocked     []blocked
}

type place struct {
	File, Full, Func string
	Line             int
	From             int      // the first line of Text
	Text             []string // lines around Line
}

// A lane is a row with its tracks: slices in one don't overlap, and are in the order of time. Waits come first.
type lane struct {
	Name   string
	Kind   trace.RowKind
	Tracks []track
}

type track struct {
	From, To int // slices
	IsOps    bool
}

type blocked struct {
	Place, Waits, Longest int
	Time                  int64
	Call                  string
}

// encode writes the data.
func encode(w io.Writer, t *trace.Trace, source func(file string) []string) error {
	lanes, order := arrange(t)
	at := make([]int, len(order)) // where the slices of t are in order
	for i, s := range order {
		at[s] = i
	}
	names, places := newTable[string](), newTable[*trace.Place]()
	names.of("")
	places.of(nil)
	b := columns(t, order, at, &names, &places)
	v, short := t.Verdict(), t.ShortFiles()
	h := header{
		Program: shown(t.Program), Go: shown(t.Go), IsCut: t.IsCut, Lost: t.Lost, Begin: int64(v.Begin), End: int64(v.End),
		Verdict: shown(t.Sentence(v, short, source)), Count: len(order), Refs: b.refs, Samples: len(t.Memory), Lanes: lanes,
		Blocked: []blocked{},
	}
	for _, line := range v.Lines {
		h.Blocked = append(h.Blocked, blocked{places.of(line.At), line.Waits, at[line.Longest], int64(line.Time), shown(line.Call)})
	}
	for _, name := range names.list {
		h.Names = append(h.Names, shown(name))
	}
	for _, p := range places.list {
		h.Places = append(h.Places, placeOf(p, short, source))
	}
	head, err := json.Marshal(h)
	if err != nil {
		return err
	}
	_, err = w.Write(slices.Concat(binary.AppendVarint(nil, int64(len(head))), head))
	for _, column := range b.columns {
		if err == nil {
			_, err = w.Write(column)
		}
	}
	return err
}

// placeOf is a line with those around it.
func placeOf(p *trace.Place, short map[string]string, source func(file string) []string) place {
	if p == nil {
		return place{File: "an unknown place"}
	}
	out := place{File: shown(short[p.File]), Full: shown(p.File), Func: shown(p.Func), Line: p.Line}
	lines := source(p.File)
	if p.Line < 1 || p.Line > len(lines) {
		return out
	}
	from, to := max(0, p.Line-1-contextLines), min(len(lines), p.Line+contextLines)
	out.From = from + 1
	for _, line := range lines[from:to] {
		out.Text = append(out.Text, shown(strings.ReplaceAll(line, "\t", "    ")))
	}
	return out
}

// arrange returns the lanes of a trace, and its slices in the order of lanes, tracks and time.
func arrange(t *trace.Trace) (lanes []lane, order []int) {
	order = make([]int, len(t.Slices))
	for i := range order {
		order[i] = i
	}
	isOp := func(s *trace.Slice) int {
		if s.Kind == trace.Op {
			return 1
		}
		return 0
	}
	slices.SortFunc(order, func(i, j int) int {
		a, b := &t.Slices[i], &t.Slices[j]
		return cmp.Or(a.Row-b.Row, isOp(a)-isOp(b), cmp.Compare(a.Begin, b.Begin), cmp.Compare(b.End, a.End), i-j)
	})
	sorted := make([]int, 0, len(order))
	lanes = []lane{} // the script has no null
	for _, row := range t.Rows {
		lanes = append(lanes, lane{Name: shown(row.Name), Kind: row.Kind, Tracks: []track{}})
	}
	for from := 0; from < len(order); {
		first := &t.Slices[order[from]]
		to := from + 1
		for to < len(order) && t.Slices[order[to]].Row == first.Row && isOp(&t.Slices[order[to]]) == isOp(first) {
			to++
		}
		for _, list := range stack(t, order[from:to]) {
			l := &lanes[first.Row]
			l.Tracks = append(l.Tracks, track{len(sorted), len(sorted) + len(list), isOp(first) == 1})
			sorted = append(sorted, list...)
		}
		from = to
	}
	return lanes, sorted
}

// maxTracks is how many tracks of one kind a lane has. Slices of traces that a Writer has written need one.
const maxTracks = 8

// stack spreads slices, in the order of time, over tracks in which they don't overlap, but in the last.
func stack(t *trace.Trace, order []int) (tracks [][]int) {
	for _, i := range order {
		s := &t.Slices[i]
		free := slices.IndexFunc(tracks, func(track []int) bool { return t.Slices[track[len(track)-1]].End <= s.Begin })
		switch {
		case free >= 0:
			tracks[free] = append(tracks[free], i)
		case len(tracks) < maxTracks:
			tracks = append(tracks, []int{i})
		default:
			tracks[maxTracks-1] = append(tracks[maxTracks-1], i)
		}
	}
	return tracks
}

// A table numbers values.
type table[T comparable] struct {
	list []T
	at   map[T]int
}

func newTable[T comparable]() table[T] { return table[T]{at: map[T]int{}} }

func (t *table[T]) of(x T) int {
	i, ok := t.at[x]
	if !ok {
		i = len(t.list)
		t.at[x] = i
		t.list = append(t.list, x)
	}
	return i
}

// encoded are the columns of a trace, and how many references to other slices they have.
type encoded struct {
	columns [][]byte
	refs    int
}

// The columns, in the order in which the script reads them. Begins, sequence numbers and times of samples are
// differences to the one before.
const (
	begins = iota
	durations
	enqueued // how long before the begin
	idles
	kinds // with 4 added if it was skipped
	name
	line
	result
	size
	stream
	seq
	refCounts
	refs // how far back the slice is, in time or not; 0: it is not in the trace
	sampleTimes
	sampleBytes
	columnCount
)

// columns encodes the slices in an order, and the bytes in flight.
func columns(t *trace.Trace, order, at []int, names *table[string], places *table[*trace.Place]) encoded {
	e := encoded{columns: make([][]byte, columnCount)}
	put := func(column int, x int64) { e.columns[column] = binary.AppendVarint(e.columns[column], x) }
	byID := make(map[trace.ID]int, len(order))
	for i := range t.Slices {
		if s := &t.Slices[i]; s.Kind == trace.Op {
			byID[s.ID] = at[i]
			if s.Gate != (trace.ID{}) {
				byID[s.Gate] = at[i]
			}
		}
	}
	ref := func(from int, id trace.ID) {
		e.refs++
		if to, ok := byID[id]; ok {
			put(refs, int64(from-to))
		} else {
			put(refs, 0)
		}
	}
	var last trace.Slice
	for i, of := range order {
		s := &t.Slices[of]
		put(begins, int64(s.Begin-last.Begin))
		put(durations, int64(s.End-s.Begin))
		queued := time.Duration(0)
		if s.Kind == trace.Op {
			queued = s.Begin - s.Enqueued
		}
		put(enqueued, int64(queued))
		put(idles, int64(s.Idle))
		kind := int64(s.Kind)
		if s.Skipped {
			kind += 4
		}
		put(kinds, kind)
		put(name, int64(names.of(s.Name)))
		put(line, int64(places.of(s.At)))
		put(result, int64(names.of(s.Result)))
		put(size, s.Bytes)
		put(stream, int64(s.ID.Stream))
		put(seq, int64(s.ID.Seq)-int64(last.ID.Seq))
		before := e.refs
		if s.Kind == trace.Op {
			for _, id := range s.Reads {
				if id != (trace.ID{}) {
					ref(i, id)
				}
			}
		} else if s.ID != (trace.ID{}) {
			ref(i, s.ID)
		}
		put(refCounts, int64(e.refs-before))
		last = *s
	}
	var before trace.Sample
	samples := slices.Clone(t.Memory)
	slices.SortStableFunc(samples, func(a, b trace.Sample) int { return cmp.Compare(a.At, b.At) })
	for _, m := range samples {
		put(sampleTimes, int64(m.At-before.At))
		put(sampleBytes, m.Bytes)
		before = m
	}
	return e
}

// maxText is how many bytes of a text are shown.
const maxText = 400

// shown is a text of a trace as the page shows it: on one line, with characters that don't print as escape sequences.
func shown(s string) string {
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "") + "…"
	}
	return tensorapi.Visible(s)
}
