package trace

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Verdict says how long the program was blocked, and where. Blocked is the idle part of waits and stalls: the time in
// which a goroutine neither went on nor executed operations itself.
type Verdict struct {
	Begin, End time.Duration // of the trace
	Goroutines int           // those that waited
	Longest    int           // the row of the one that was blocked the longest
	LongestFor time.Duration // how long it was
	Total      time.Duration // of all goroutines
	Lines      []Blocked     // the longest first
}

// Blocked are the waits of one call on one line.
type Blocked struct {
	At      *Place // nil: unknown
	Call    string
	Time    time.Duration
	Waits   int
	Longest int // of Trace.Slices, the one that was idle the longest
}

// Verdict adds up the waits of a trace.
func (t *Trace) Verdict() Verdict {
	v := Verdict{Begin: math.MaxInt64, End: math.MinInt64}
	type line struct {
		at   *Place
		call string
	}
	lines := map[line]*Blocked{}
	rows := make([]time.Duration, len(t.Rows))
	waited := make([]bool, len(t.Rows))
	for i := range t.Slices {
		s := &t.Slices[i]
		v.Begin, v.End = min(v.Begin, s.Begin), max(v.End, s.End)
		if s.Kind == Op {
			v.Begin = min(v.Begin, s.Enqueued)
			continue
		}
		b := lines[line{s.At, s.Name}]
		if b == nil {
			b = &Blocked{At: s.At, Call: s.Name, Longest: i}
			lines[line{s.At, s.Name}] = b
		}
		b.Waits++
		b.Time += s.Idle
		if s.Idle > t.Slices[b.Longest].Idle {
			b.Longest = i
		}
		rows[s.Row] += s.Idle
		waited[s.Row] = true
		v.Total += s.Idle
	}
	if len(t.Slices) == 0 {
		v.Begin, v.End = 0, 0
	}
	for row, d := range rows {
		if waited[row] {
			v.Goroutines++
		}
		if d > v.LongestFor {
			v.Longest, v.LongestFor = row, d
		}
	}
	for _, b := range lines {
		v.Lines = append(v.Lines, *b)
	}
	slices.SortFunc(v.Lines, func(a, b Blocked) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Longest, b.Longest))
	})
	return v
}

// A Naming says how lines of the program are shown.
type Naming struct {
	Short  map[string]string                  // names of files
	Source func(file string) []string         // the lines of one; none: unknown
	Codes  func(file string, line int) string // of what the tools say about a line: "AT001"; nil: they were not asked
}

// Sentence is the verdict in words.
func (t *Trace) Sentence(v Verdict, n Naming) string {
	span := v.End - v.Begin
	switch {
	case len(t.Slices) == 0:
		return "Nothing happened while this trace was written."
	case v.Goroutines == 0:
		return fmt.Sprintf("0 %% of %s blocked: no call waited.", Time(span))
	}
	text := fmt.Sprintf("%s of %s blocked", Percent(v.LongestFor, span), Time(span))
	if v.Goroutines > 1 {
		text = fmt.Sprintf("%s: %s, the most of %d that waited", t.Rows[v.Longest].Name, text, v.Goroutines)
	}
	return text + v.top(n)
}

// top says which line the program was blocked at the longest; "" if none.
func (v Verdict) top(n Naming) string {
	if v.Total == 0 {
		return ""
	}
	that := "that"
	if v.Goroutines > 1 {
		that = "all blocked time"
	}
	return fmt.Sprintf("; %s of %s in %s", Percent(v.Lines[0].Time, v.Total), that, n.show(v.Lines[0].At))
}

// Compared is the verdict on two forms of a program, in words: as it was written, and rewritten.
func Compared(written, rewritten Verdict, n Naming) string {
	brief := Naming{Short: n.Short, Source: func(string) []string { return nil }}
	was, is := written.End-written.Begin, rewritten.End-rewritten.Begin
	return fmt.Sprintf("Traced as written: %s, %s blocked%s. Rewritten: %s, %s blocked%s.", Time(was), Percent(written.LongestFor, was), written.top(n),
		Time(is), Percent(rewritten.LongestFor, is), rewritten.top(brief))
}

// show names a line of the program, with its text and what the tools say about it, if that is known.
func (n Naming) show(p *Place) string {
	if p == nil {
		return "an unknown place"
	}
	text := n.Short[p.File] + ":" + strconv.Itoa(p.Line)
	if lines := n.Source(p.File); 0 < p.Line && p.Line <= len(lines) {
		text += ": " + strings.TrimSpace(lines[p.Line-1])
	}
	if n.Codes != nil {
		if codes := n.Codes(p.File, p.Line); codes != "" {
			text += " (" + codes + ")"
		}
	}
	return text
}

// Percent is the share of part in whole.
func Percent(part, whole time.Duration) string {
	x := 100 * float64(part) / float64(max(whole, 1))
	digits := 0
	if x < 9.95 && x != 0 {
		digits = 1
	}
	return strconv.FormatFloat(x, 'f', digits, 64) + " %"
}

// Time is d with three digits and a unit.
func Time(d time.Duration) string {
	x, unit := float64(d), "ns"
	for _, u := range []string{"µs", "ms", "s"} {
		if math.Abs(x) < 999.5 {
			break
		}
		x, unit = x/1000, u
	}
	digits := 2
	if x == math.Trunc(x) && unit == "ns" || math.Abs(x) >= 99.95 {
		digits = 0
	} else if math.Abs(x) >= 9.995 {
		digits = 1
	}
	return strconv.FormatFloat(x, 'f', digits, 64) + " " + unit
}

// ShortFiles returns a short name for each file of some traces: as many of the last elements of its path as tell it
// from the others.
func ShortFiles(traces ...*Trace) map[string]string {
	full := map[string]bool{}
	for _, t := range traces {
		for i := range t.Slices {
			if at := t.Slices[i].At; at != nil {
				full[at.File] = true
			}
		}
	}
	short := map[string]string{}
	for n := 1; len(full) > 0; n++ {
		named := map[string][]string{}
		for file := range full {
			name := lastElements(file, n)
			named[name] = append(named[name], file)
		}
		for name, files := range named {
			if len(files) == 1 {
				short[files[0]] = name
				delete(full, files[0])
			}
		}
	}
	return short
}

// lastElements returns the last n elements of a path; all of it if it has few or n is large.
func lastElements(file string, n int) string {
	at := len(file)
	for range n {
		if at = strings.LastIndexByte(file[:max(at, 0)], '/'); at < 0 || n > 8 {
			return file
		}
	}
	return file[at+1:]
}
