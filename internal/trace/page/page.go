// Package page makes of traces one page for browsers, which opens as a file: lanes of slices over time, what each
// slice waited for, where the program was blocked, and what the tools say about those lines. It loads nothing, and runs
// nothing but its own script.
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
	"html"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/internal/trace"
)

var (
	//go:embed page.html
	markup string
	//go:embed page.css
	style string
	//go:embed page.js
	script string
)

// First is how each page begins.
const First = "<!doctype html>\n<!-- asyncgen trace -->\n"

// MaxSlices is how many slices a picture may have. With so many it takes some seconds until it can be used.
const MaxSlices = 4 << 20

// contextLines is how many lines of a source are shown before and after one.
const contextLines = 4

// A Page is what Write writes.
type Page struct {
	Title    string    // of the window; "": the name of the program
	Pictures []Picture // the reader chooses one of them
	// Source returns the lines of a file of the program; none if it can't be read.
	Source func(file string) []string
	// Findings are what the tools say about a line of the program; nil: they were not asked.
	Findings func(file string, line int) []Finding
	// Explain returns what a code means. It is asked for those of Findings.
	Explain func(code string) string
	// Below is markup that follows. It may use the classes of page.css, and nothing that the policy forbids.
	Below string
}

// A Picture shows one trace, or two forms of a program, one above the other, as if they had begun at the same time.
type Picture struct {
	Name  string // to choose it by
	Lead  string // what the verdict begins with
	Sides []Side // the first is the program as written
}

// A Side is a trace with its name in the picture, if it is not alone there.
type Side struct {
	Name  string
	Trace *trace.Trace
}

// A Finding is what a tool says about a line.
type Finding struct {
	Code string // "AT001"
	Text string
}

// Write writes the page.
func (p *Page) Write(w io.Writer) error {
	for _, pic := range p.Pictures {
		n := 0
		for _, side := range pic.Sides {
			n += len(side.Trace.Slices)
		}
		if n > maxSlices {
			return fmt.Errorf("the trace has %d operations and waits, and a page at most %d: trace a part of the program, with asyncrt.StartTrace", n, maxSlices)
		}
	}
	above, rest, ok := strings.Cut(markup, "BELOW")
	between, after, ok2 := strings.Cut(rest, "DATA")
	if !ok || !ok2 {
		return errors.New("page.html has no places for what a page is about")
	}
	frame := strings.NewReplacer("STYLE", style, "SCRIPT", script, "HASHES", fmt.Sprintf("style-src %s; script-src %s", hash(style), hash(script)))
	below := p.Below
	if below != "" {
		below = "<article>\n" + below + "</article>\n"
	}
	if _, err := io.WriteString(w, First+frame.Replace(above)+below+frame.Replace(between)); err != nil {
		return err
	}
	for i := range p.Pictures {
		if err := p.writeData(w, i); err != nil {
			return err
		}
	}
	_, err := frame.WriteString(w, after)
	return err
}

var maxSlices = MaxSlices // a variable for tests

// writeData writes the element with the data of a picture.
func (p *Page) writeData(w io.Writer, i int) error {
	if _, err := fmt.Fprintf(w, `<script type="application/octet-stream" id="data%d" data-name="%s">`, i, html.EscapeString(shown(p.Pictures[i].Name))); err != nil {
		return err
	}
	letters := base64.NewEncoder(base64.StdEncoding, w)
	packed, err := gzip.NewWriterLevel(letters, gzip.BestSpeed)
	if err != nil {
		return err
	}
	if err := p.encode(packed, &p.Pictures[i]); err != nil {
		return err
	}
	if err := errors.Join(packed.Close(), letters.Close()); err != nil {
		return err
	}
	_, err = io.WriteString(w, "</script>\n")
	return err
}

// hash names a text in the policy of a page.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// The data of a page: the length of a header as a varint, the header as JSON, then numbers in columns, as varints.

type header struct {
	Title, Verdict string
	Begin, End     int64
	Count          int // of slices
	Refs           int // of all slices
	Samples        int
	Sides          []side
	Names          []string // of kernels and calls, and of results
	Places         []place  // the first is none
	Lanes          []lane   // those of the first side first
	Blocked        []blocked
	Codes          []code
}

type side struct {
	Name, Program, Go string
	IsCut             bool
	Lost              int
	Begin, End        int64
	From, To          int // samples
}

type place struct {
	File, Full, Func string
	Line             int
	From             int       // the first line of Text
	Text             []string  // lines around Line
	Found            []finding // about Line
}

type finding struct {
	Code int // in header.Codes
	Text string
}

type code struct{ Name, Page string }

// A lane is a row with its tracks: slices in one don't overlap, and are in the order of time. Waits come first.
type lane struct {
	Name   string
	Side   int
	Kind   trace.RowKind
	Tracks []track
}

type track struct {
	From, To int // slices
	IsOps    bool
}

type blocked struct {
	Side, Place, Waits, Longest int
	Time                        int64
	Call                        string
}

// encode writes the data of a picture.
func (p *Page) encode(w io.Writer, pic *Picture) error {
	h := header{Title: shown(p.Title), Sides: []side{}, Lanes: []lane{}, Blocked: []blocked{}, Codes: []code{}}
	e := encoded{columns: make([][]byte, columnCount), names: newTable[string](), places: newTable[trace.Place]()}
	e.names.of("")
	e.places.of(trace.Place{})
	var traces []*trace.Trace
	var verdicts []trace.Verdict
	for i, s := range pic.Sides {
		t, v := s.Trace, s.Trace.Verdict()
		traces, verdicts = append(traces, t), append(verdicts, v)
		shift := time.Duration(0)
		if len(pic.Sides) > 1 {
			shift = -v.Begin
		}
		lanes, order := arrange(t)
		base, firstLane := h.Count, len(h.Lanes)
		for _, l := range lanes {
			l.Side = i
			for k := range l.Tracks {
				l.Tracks[k].From += base
				l.Tracks[k].To += base
			}
			h.Lanes = append(h.Lanes, l)
		}
		at := make([]int, len(order)) // where the slices of t are in the picture
		for k, s := range order {
			at[s] = base + k
		}
		e.add(t, order, at, firstLane, shift)
		for _, line := range v.Lines {
			h.Blocked = append(h.Blocked, blocked{i, e.place(line.At), line.Waits, at[line.Longest], int64(line.Time), shown(line.Call)})
		}
		h.Sides = append(h.Sides, side{Name: shown(s.Name), Program: shown(t.Program), Go: shown(t.Go), IsCut: t.IsCut, Lost: t.Lost,
			Begin: int64(v.Begin + shift), End: int64(v.End + shift), From: h.Samples, To: h.Samples + len(t.Memory)})
		h.Count += len(order)
		h.Samples += len(t.Memory)
		if i == 0 {
			h.Begin = int64(v.Begin + shift)
		}
		h.End = max(h.End, int64(v.End+shift))
	}
	h.Refs = e.refs
	n := trace.Naming{Short: trace.ShortFiles(traces...), Source: p.Source, Codes: p.codes}
	h.Verdict = shown(pic.Lead + verdict(traces, verdicts, n))
	for _, name := range e.names.list {
		h.Names = append(h.Names, shown(name))
	}
	codes := newTable[string]()
	for _, at := range e.places.list {
		h.Places = append(h.Places, p.place(at, n.Short, &codes))
	}
	for _, name := range codes.list {
		h.Codes = append(h.Codes, code{shown(name), tensorapi.VisibleLines(p.Explain(name))})
	}
	head, err := json.Marshal(h)
	if err != nil {
		return err
	}
	_, err = w.Write(slices.Concat(binary.AppendVarint(nil, int64(len(head))), head))
	for _, column := range e.columns {
		if err == nil {
			_, err = w.Write(column)
		}
	}
	return err
}

// verdict is that of a picture.
func verdict(traces []*trace.Trace, verdicts []trace.Verdict, n trace.Naming) string {
	switch len(traces) {
	case 0:
		return ""
	case 1:
		return traces[0].Sentence(verdicts[0], n)
	}
	return trace.Compared(verdicts[0], verdicts[1], n)
}

// codes are those of the findings about a line.
func (p *Page) codes(file string, line int) string {
	if p.Findings == nil {
		return ""
	}
	return Codes(p.Findings(file, line))
}

// Codes are those of findings, each once.
func Codes(findings []Finding) string {
	var codes []string
	for _, f := range findings {
		if !slices.Contains(codes, f.Code) {
			codes = append(codes, f.Code)
		}
	}
	return strings.Join(codes, ", ")
}

// place is a line with those around it, and what is found there.
func (p *Page) place(at trace.Place, short map[string]string, codes *table[string]) place {
	if at == (trace.Place{}) {
		return place{File: "an unknown place"}
	}
	out := place{File: shown(short[at.File]), Full: shown(at.File), Func: shown(at.Func), Line: at.Line}
	if p.Findings != nil {
		for _, f := range p.Findings(at.File, at.Line) {
			out.Found = append(out.Found, finding{codes.of(f.Code), shown(f.Text)})
		}
	}
	lines := p.Source(at.File)
	if at.Line < 1 || at.Line > len(lines) {
		return out
	}
	from, to := max(0, at.Line-1-contextLines), min(len(lines), at.Line+contextLines)
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

// encoded are the columns of a picture, and how many references to other slices they have.
type encoded struct {
	columns  [][]byte
	refs     int
	names    table[string]
	places   table[trace.Place]
	slice    trace.Slice // the one before
	sampleAt time.Duration
}

// place is the number of a line; 0 if it is not known.
func (e *encoded) place(p *trace.Place) int {
	if p == nil {
		return 0
	}
	return e.places.of(*p)
}

// The columns, in the order in which the script reads them. Begins, sequence numbers and times of samples are
// differences to the one before.
const (
	begins = iota
	durations
	enqueued // how long before the begin
	by       // one more than the lane that enqueued it; 0: unknown
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

// add encodes the slices of a trace in an order, in which each is at a place of the picture, and the bytes in flight.
// Its lanes come after those before firstLane, and all its times are shifted.
func (e *encoded) add(t *trace.Trace, order, at []int, firstLane int, shift time.Duration) {
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
	for _, of := range order {
		s, i := t.Slices[of], at[of]
		s.Begin, s.End, s.Enqueued = s.Begin+shift, s.End+shift, s.Enqueued+shift
		put(begins, int64(s.Begin-e.slice.Begin))
		put(durations, int64(s.End-s.Begin))
		queued := time.Duration(0)
		if s.Kind == trace.Op {
			queued = s.Begin - s.Enqueued
		}
		put(enqueued, int64(queued))
		if s.By > 0 {
			s.By += firstLane
		}
		put(by, int64(s.By))
		put(idles, int64(s.Idle))
		kind := int64(s.Kind)
		if s.Skipped {
			kind += 4
		}
		put(kinds, kind)
		put(name, int64(e.names.of(s.Name)))
		put(line, int64(e.place(s.At)))
		put(result, int64(e.names.of(s.Result)))
		put(size, s.Bytes)
		put(stream, int64(s.ID.Stream))
		put(seq, int64(s.ID.Seq)-int64(e.slice.ID.Seq))
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
		e.slice = s
	}
	samples := slices.Clone(t.Memory)
	slices.SortStableFunc(samples, func(a, b trace.Sample) int { return cmp.Compare(a.At, b.At) })
	for _, m := range samples {
		put(sampleTimes, int64(m.At+shift-e.sampleAt))
		put(sampleBytes, m.Bytes)
		e.sampleAt = m.At + shift
	}
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
