package page

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/internal/trace"
)

// unread is the source of files that can't be read.
func unread(string) []string { return nil }

func write(t testing.TB, tr *trace.Trace, source func(string) []string) string {
	t.Helper()
	return writePage(t, one(tr, source))
}

// one is a page of one trace.
func one(tr *trace.Trace, source func(string) []string) *Page {
	return &Page{Pictures: []Picture{{Sides: []Side{{Trace: tr}}}}, Source: source}
}

func writePage(t testing.TB, p *Page) string {
	t.Helper()
	var b strings.Builder
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

const us = time.Microsecond

// example is a program of one goroutine and a device: a product, a sum that reads it, a wait for the sum, and a product
// that is enqueued after the wait.
func example() *trace.Trace {
	id := func(stream uint16, seq uint64) trace.ID { return trace.ID{Stream: stream, Seq: seq} }
	read, compute := &trace.Place{File: "/src/train.go", Func: "main.train", Line: 3}, &trace.Place{File: "/src/train.go", Func: "main.train", Line: 2}
	return &trace.Trace{
		Program: "/bin/train", Go: "go1.26",
		Rows: []trace.Row{{ID: 1, Name: "goroutine 1"}, {ID: 1 << 30, Kind: trace.Device, Name: "sim:0"}},
		Slices: []trace.Slice{
			{Kind: trace.Op, Row: 1, Begin: 10 * us, End: 30 * us, Enqueued: 5 * us, Name: "MatMul", At: compute, ID: id(1, 0),
				Result: "float32[8 8]", Bytes: 256},
			{Kind: trace.Op, Row: 1, Begin: 40 * us, End: 60 * us, Enqueued: 6 * us, By: 1, Name: "Sum", At: read, ID: id(1, 1),
				Reads: [trace.MaxReads]trace.ID{id(1, 0), id(7, 7)}, Gate: id(2, 0), Result: "float32[]", Bytes: 4},
			{Kind: trace.Wait, Row: 0, Begin: 8 * us, End: 70 * us, Idle: 62 * us, Name: "Item", At: read, ID: id(2, 0)},
			{Kind: trace.Op, Row: 1, Begin: 90 * us, End: 100 * us, Enqueued: 80 * us, Name: "MatMul", ID: id(1, 2), Result: "float32[8 8]", Skipped: true},
		},
		Memory: []trace.Sample{{At: 30 * us, Bytes: 260}, {At: 60 * us, Bytes: 4}},
	}
}

func exampleSource(file string) []string {
	if file == "/src/train.go" {
		return []string{"package main", "\tx := a.MatMul(b)", "\ttotal += x.Sum().Item() // </script>", ""}
	}
	return nil
}

var dataOf = regexp.MustCompile(`(?s)^(.*id="data0" data-name="">)([A-Za-z0-9+/=]*)(</script>.*)$`)

// decode reads the data of a page.
func decode(t *testing.T, page string) (h header, columns [columnCount][]int64) {
	t.Helper()
	m := dataOf.FindStringSubmatch(page)
	if m == nil {
		t.Fatal("the page has no data")
	}
	unzip, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(m[2])))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(unzip)
	if err != nil {
		t.Fatal(err)
	}
	r := bytes.NewReader(data)
	number := func() int64 {
		x, err := binary.ReadVarint(r)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	head := make([]byte, number())
	io.ReadFull(r, head)
	if err := json.Unmarshal(head, &h); err != nil {
		t.Fatal(err)
	}
	for c := range columns {
		n := h.Count
		switch {
		case c == refs:
			n = h.Refs
		case c >= sampleTimes:
			n = h.Samples
		}
		for range n {
			columns[c] = append(columns[c], number())
		}
		if c == begins || c == seq || c == sampleTimes {
			for i := 1; i < n; i++ {
				columns[c][i] += columns[c][i-1]
			}
		}
	}
	if r.Len() > 0 {
		t.Fatalf("%d bytes of data are left", r.Len())
	}
	return h, columns
}

// TestExactly makes traces at random: the page has all of each slice, and what it refers to.
func TestExactly(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 20 {
		tr := &trace.Trace{}
		for row := range 1 + rnd.IntN(4) {
			tr.Rows = append(tr.Rows, trace.Row{ID: uint64(row), Name: fmt.Sprint("row ", row), Kind: trace.RowKind(rnd.IntN(3))})
		}
		places := []*trace.Place{nil, {File: "/a.go", Func: "f", Line: 1}, {File: "/b.go", Func: "g", Line: 20}}
		for i := range rnd.IntN(200) {
			begin := time.Duration(rnd.Int64N(1e12))
			s := trace.Slice{Kind: trace.Kind(1 + rnd.IntN(3)), Row: rnd.IntN(len(tr.Rows)), Begin: begin, End: begin + time.Duration(rnd.Int64N(1e10)), Enqueued: begin,
				Name: fmt.Sprint("name", rnd.IntN(5)), At: places[rnd.IntN(3)], Bytes: rnd.Int64N(1e15)}
			if s.Kind == trace.Op {
				s.Enqueued -= time.Duration(rnd.Int64N(1e9))
				s.By = rnd.IntN(len(tr.Rows) + 1)
				s.ID, s.Result, s.Skipped = trace.ID{Stream: 1, Seq: uint64(i)}, "bool[]", rnd.IntN(2) == 0
				for k := range rnd.IntN(4) {
					s.Reads[k] = trace.ID{Stream: 1, Seq: uint64(rnd.IntN(i + 1))}
				}
			} else {
				s.ID, s.Idle = trace.ID{Stream: 1, Seq: uint64(rnd.IntN(i + 1))}, time.Duration(rnd.Int64N(1e9))
			}
			tr.Slices = append(tr.Slices, s)
			tr.Memory = append(tr.Memory, trace.Sample{At: begin, Bytes: rnd.Int64N(1e15)})
		}
		h, c := decode(t, write(t, tr, unread))
		var got, want []string
		for _, s := range tr.Slices {
			at := "an unknown place"
			if s.At != nil {
				at = strings.TrimPrefix(s.At.File, "/") + s.At.Func
			}
			want = append(want, fmt.Sprint(s.Row, s.Begin, s.End, s.Begin-s.Enqueued, s.Idle, s.Kind, s.Skipped, s.Name, at, s.Result, s.Bytes, s.ID, s.By))
		}
		for l, lane := range h.Lanes {
			for n, track := range lane.Tracks {
				for i := track.From; i < track.To; i++ {
					if end := i + 1; n < maxTracks-1 && end < track.To && c[begins][end] < c[begins][i]+c[durations][i] {
						t.Errorf("slices %d and %d overlap in one track", i, end)
					}
					if track.IsOps != (c[kinds][i]&3 == int64(trace.Op)) {
						t.Errorf("slice %d is in a track of another kind", i)
					}
					p := h.Places[c[line][i]]
					at := func(column int) time.Duration { return time.Duration(c[column][i]) }
					got = append(got, fmt.Sprint(l, at(begins), at(begins)+at(durations), at(enqueued), at(idles), trace.Kind(c[kinds][i]&3),
						c[kinds][i] > 3, h.Names[c[name][i]], p.File+p.Func, h.Names[c[result][i]], c[size][i], trace.ID{Stream: uint16(c[stream][i]), Seq: uint64(c[seq][i])}, c[by][i]))
				}
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("the page has\n%s\nof\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		testReferences(t, tr, c)
		memory := map[trace.Sample]int{}
		for i := range c[sampleTimes] {
			memory[trace.Sample{At: time.Duration(c[sampleTimes][i]), Bytes: c[sampleBytes][i]}]++
		}
		for _, m := range tr.Memory {
			memory[m]--
		}
		for m, n := range memory {
			if n != 0 {
				t.Errorf("%v is there %d times too often", m, n)
			}
		}
	}
}

// testReferences checks what the slices of a page refer to. It knows a slice by its times and its ID.
func testReferences(t *testing.T, tr *trace.Trace, c [columnCount][]int64) {
	type key struct{ begin, end, seq int64 }
	want := map[key][]uint64{}
	ops := map[uint64]bool{}
	for _, s := range tr.Slices {
		if s.Kind == trace.Op {
			ops[s.ID.Seq] = true
		}
	}
	for _, s := range tr.Slices {
		k := key{int64(s.Begin), int64(s.End), int64(s.ID.Seq)}
		if s.Kind != trace.Op {
			want[k] = []uint64{s.ID.Seq}
			continue
		}
		for _, id := range s.Reads {
			if id != (trace.ID{}) {
				want[k] = append(want[k], id.Seq)
			}
		}
	}
	at := 0
	for i := range c[begins] {
		list := want[key{c[begins][i], c[begins][i] + c[durations][i], c[seq][i]}]
		if len(list) != int(c[refCounts][i]) {
			t.Errorf("slice %d refers to %d others, want %d", i, c[refCounts][i], len(list))
		}
		for _, seqOf := range list {
			back := c[refs][at]
			at++
			isOwn := c[kinds][i]&3 == int64(trace.Op) && c[seq][i] == int64(seqOf)
			if back == 0 && ops[seqOf] && !isOwn || back != 0 && (!ops[seqOf] || c[seq][i-int(back)] != int64(seqOf) || c[kinds][i-int(back)]&3 != int64(trace.Op)) {
				t.Errorf("slice %d refers to %d back, want operation %d", i, back, seqOf)
			}
		}
	}
}

// hostile is a trace whose names want to be markup.
func hostile() *trace.Trace {
	const bad = `</script><img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'"&<!--` + "\x00\x1b]0;\a\u202e\u2028"
	tr := example()
	tr.Program, tr.Go = bad, bad
	for i := range tr.Rows {
		tr.Rows[i].Name = bad
	}
	for i := range tr.Slices {
		s := &tr.Slices[i]
		s.Name, s.Result, s.At = bad, bad, &trace.Place{File: "/" + bad + ".go", Func: bad, Line: 1}
	}
	return tr
}

func hostileSource(string) []string { return []string{"</pre></script><b>" + "\x00\x1b\u202e"} }

// TestMarkup compares pages of all sorts of traces: but for the letters of the data they are the same, byte for byte.
func TestMarkup(t *testing.T) {
	frame := func(page string) string {
		m := dataOf.FindStringSubmatch(page)
		if m == nil {
			t.Fatalf("the page has something else in its data than letters:\n%.2000s", page)
		}
		return m[1] + m[3]
	}
	want := frame(write(t, &trace.Trace{}, unread))
	for _, page := range []string{write(t, example(), exampleSource), write(t, hostile(), hostileSource)} {
		if frame(page) != want {
			t.Error("what a trace says changes the markup")
		}
	}
	if !strings.HasPrefix(want, First) {
		t.Errorf("a page begins with %q", want[:40])
	}
	h, _ := decode(t, write(t, hostile(), hostileSource))
	text, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []string{`\u0000`, `\u001b`, "\u202e", `\u202e`, `\u2028`, "\u2028"} {
		if bytes.Contains(text, []byte(r)) && !bytes.Contains(text, []byte(`\`+r)) {
			t.Errorf("%q is in the page as it is: %s", r, text)
		}
	}
}

// TestPolicy checks that the page allows its own style and script only, and that the script makes no markup of texts.
func TestPolicy(t *testing.T) {
	page := write(t, example(), exampleSource)
	policy := regexp.MustCompile(`Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(page)
	if policy == nil || !strings.HasPrefix(policy[1], "default-src 'none'; ") || strings.Contains(policy[1], "unsafe") || strings.Contains(policy[1], "http") {
		t.Fatalf("the policy is %q", policy)
	}
	for tag, text := range map[string]string{"style": style, "script": script} {
		if !strings.Contains(page, "<"+tag+">"+text+"</"+tag+">") || !strings.Contains(policy[1], tag+"-src "+hash(text)) {
			t.Errorf("the policy does not allow the %s", tag)
		}
	}
	for _, word := range []string{"innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "Function(", "fetch(", "XMLHttp", "import(", "http:", "https:", "</script"} {
		if strings.Contains(script, word) {
			t.Errorf("page.js has %s", word)
		}
	}
	if strings.Contains(page, "src=") || strings.Contains(page, "href=") {
		t.Error("the page loads something")
	}
}

func TestTooMany(t *testing.T) {
	defer func(n int) { maxSlices = n }(maxSlices)
	maxSlices = 3
	if err := one(example(), unread).Write(io.Discard); err == nil || !strings.Contains(err.Error(), "4 operations and waits, and a page at most 3") {
		t.Error(err)
	}
}

// TestCode checks the lines around one that a page shows.
func TestCode(t *testing.T) {
	lines := strings.Split("1 2 3 4 5 6 7 8 9 10 11 12", " ")
	for _, c := range []struct {
		line int
		want string
	}{{1, "1 [1 2 3 4 5]"}, {7, "3 [3 4 5 6 7 8 9 10 11]"}, {12, "8 [8 9 10 11 12]"}, {0, "0 []"}, {13, "0 []"}, {-1, "0 []"}} {
		page := Page{Source: func(string) []string { return lines }}
		p := page.place(trace.Place{File: "f", Line: c.line}, nil, nil)
		if got := fmt.Sprint(p.From, p.Text); got != c.want {
			t.Errorf("around line %d there are %s, want %s", c.line, got, c.want)
		}
	}
}

// TestLong checks that what is shown of a long text ends.
func TestLong(t *testing.T) {
	tr := example()
	tr.Slices[0].Name = "a" + strings.Repeat("é", 1<<20)
	h, _ := decode(t, write(t, tr, unread))
	want := "a" + strings.Repeat("é", maxText/2-1) + "…"
	if !slices.Contains(h.Names, want) {
		t.Errorf("the names are %.500q, without %q", h.Names, want)
	}
}

// TestBrowser uses the page as people do.
func TestBrowser(t *testing.T) {
	b := start(t)
	b.open(example(), exampleSource)
	has := b.has
	selection, totals := `$("selection").innerText`, `$("totals").innerText`
	has("verdict", `$("verdict").textContent`, "65 % of 95.0 µs blocked; 100 % of that in train.go:3: total += x.Sum().Item() // </script>")
	has("about", `$("about").textContent + document.title`, "train, go1.26: 95.0 µs, 3 operations, 1 waits", "Trace of train")
	has("slices", `JSON.stringify([[...B], [...D], [...Q], [...REFS], H.Lanes.map(l => l.Tracks.length)])`,
		"[8000,10000,40000,90000],[62000,20000,20000,10000],[0,5000,34000,10000],[2,1,-1],[1,1]")
	has("lines", `$("lines").innerText`, "62.0 µs\t100 %\t1\tItem\ttrain.go:3")
	has("totals", totals, "30.0 µs\t60 %\t2\tMatMul", "20.0 µs\t40 %\t1\tSum", "50.0 µs\t53 %\tsim:0")

	// Where a slice, or a gap, is on the screen.
	clickAt := func(us, lane int) {
		t.Helper()
		var at [2]float64
		if err := json.Unmarshal([]byte(b.eval(fmt.Sprintf(`[xOf(%d000), canvas.getBoundingClientRect().top + RULER + H.Lanes[%d].y + TRACK/2]`, us, lane))), &at); err != nil {
			t.Fatal(err)
		}
		b.click(int(at[0]), int(at[1]))
	}
	clickAt(50, 1)
	has("a click", selection, "Sum 1.1", "20.0 µs, from 35 µs to 55 µs", "float32[], 4 B", "34.0 µs before it began", "train.go:3 in main.train", "2      x := a.MatMul(b)",
		"24.0 µs: an input was not ready: MatMul 1.0", "10.0 µs: nothing that the trace knows held it up", "sim:0 did nothing for 10.0 µs before it",
		"MatMul 1.0 at train.go:2 (float32[8 8]), ready 10.0 µs before, the last",
		"something outside of this trace", "What waits for it: 1\nItem")
	b.eval(`[...document.querySelectorAll("#selection button.link")].find(e => e.textContent === "Item").click()`)
	has("a link", selection, "wait for a value", "62.0 µs (100 %)", "Waited for\nSum 1.1 at train.go:3 (float32[]), ready 10.0 µs before the end")
	clickAt(75, 1)
	has("a click in a gap", selection, "MatMul 1.2", "did not run", "sim:0 did nothing for 30.0 µs before it",
		"20.0 µs: the program had not enqueued it yet; meanwhile it waited in Item at train.go:3",
		"10.0 µs: nothing that the trace knows held it up")
	clickAt(3, 0)
	has("a click on nothing", selection, "Select a slice")
	for _, c := range []struct{ key, want string }{{".", "Item"}, {"g", "Sum 1.1"}, {",", "MatMul 1.0"}, {"k", "wait for a value"}, {"j", "Sum 1.1"}} {
		b.key(c.key)
		has("key "+c.key, selection, c.want)
	}
	has("keys", `JSON.stringify(view)`, "{")
	before := b.eval(`view.to - view.from`)
	for _, c := range []struct{ key, holds string }{
		{"w", "view.to - view.from < was.to - was.from"}, {"+", "view.to - view.from < was.to - was.from"}, {"d", "view.from > was.from"}, {"ArrowLeft", "view.from < was.from"},
		{"s", "view.to - view.from > was.to - was.from"}, {"f", "view.from < B[picked] && view.to > end(picked)"}, {"0", "view.to - view.from >= was.to - was.from"},
	} {
		b.eval(`globalThis.was = view, 1`)
		b.key(c.key)
		if b.eval(c.holds) != "true" {
			t.Errorf("key %s: not %s", c.key, c.holds)
		}
	}
	if after := b.eval(`view.to - view.from`); after != before {
		t.Errorf("key 0 shows %s ns, want %s", after, before)
	}
	b.key("/")
	for _, r := range "matmul" {
		b.key(string(r))
	}
	has("search", `$("found").textContent`, "2 found")
	b.key("Enter")
	has("the match after", selection, "MatMul 1.2")
	b.key("Enter")
	has("after the last the first", selection, "MatMul 1.0")
	b.key("Escape")
	has("escape", `String(hits) + $("search").value`, "null")

	top := b.eval(`Math.round(canvas.getBoundingClientRect().top)`)
	var y int
	fmt.Sscan(top, &y)
	var from, to float64
	fmt.Sscan(b.eval(`xOf(20000)`), &from)
	fmt.Sscan(b.eval(`xOf(50000)`), &to)
	b.mouse("mousePressed", int(from), y+belowRuler, 8)
	b.mouse("mouseMoved", int(to), y+belowRuler, 8)
	b.mouse("mouseReleased", int(to), y+belowRuler, 8)
	b.frame()
	has("a range", totals, "Range: ", "50 %\t1\tSum", "by line")
	b.eval(`setRange(20000, 50000)`)
	has("a range", totals, "Range: 30.0 µs from 15 µs", "10.0 µs\t50 %\t1\tMatMul\n10.0 µs\t50 %\t1\tSum", "20.0 µs\t67 %\tsim:0")
	helps := example()
	helps.Slices = []trace.Slice{
		{Kind: trace.Op, Begin: 2 * us, End: 4 * us, Enqueued: 1 * us, Name: "Early", ID: trace.ID{Stream: 1, Seq: 1}},
		{Kind: trace.Wait, Begin: 10 * us, End: 50 * us, Idle: 30 * us, Name: "Item"},
		{Kind: trace.Op, Begin: 30 * us, End: 40 * us, Enqueued: 2 * us, Name: "Late", ID: trace.ID{Stream: 1, Seq: 3}},
	}
	b.open(helps, unread)
	has("tracks", `JSON.stringify(H.Lanes.map(l => [l.Tracks.length, l.note]))`, `[[2,"61 % blocked"],[0,"0 % busy"]]`)
	b.eval(`pick(1)`)
	if got := b.eval(selection); !strings.Contains(got, "Early 1.1") || strings.Contains(got, "did nothing") {
		t.Errorf("what a goroutine executes while it does not wait says\n%s", got)
	}
	b.eval(`pick(2)`)
	has("an operation in a wait", selection, "Late 1.3", "goroutine 1 did nothing for 20.0 µs before it",
		"20.0 µs: nothing that the trace knows held it up", "28.0 µs before it began")
	b.eval(`pick(0)`)
	has("a wait for nothing that has a name", selection, "30.0 µs (75 %); in the rest it executed operations itself", "for more than one operation, or for one that is not named")
	was := b.eval(`theme.back`)
	b.eval(`$("theme").click()`)
	if b.eval(`theme.back`) == was {
		t.Errorf("the theme stays as it is, with %s", was)
	}
	has("union", `union([[5, 9], [1, 3], [2, 4], [6, 7]])`, "7")
	b.quiet()
}

// belowRuler is how far below the top of the timeline there are lanes, in pixels.
const belowRuler = 40

// pair is a page of two pictures: the example beside what became of it, and the example alone. Something is found on
// line 3.
func pair() *Page {
	rewritten := example()
	rewritten.Rows = append(rewritten.Rows, trace.Row{ID: 9, Name: "goroutine 9"})
	rewritten.Slices[0].By = 3
	for i := range rewritten.Slices {
		s := &rewritten.Slices[i]
		s.Begin, s.End, s.Enqueued, s.Idle = s.Begin/2+us, s.End/2+us, s.Enqueued/2+us, s.Idle/4
	}
	return &Page{
		Title:    "both",
		Pictures: []Picture{{Name: "sim:0", Lead: "Identical. ", Sides: []Side{{"as written", example()}, {"rewritten", rewritten}}}, {Name: "<cpu>", Sides: []Side{{"", example()}}}},
		Source:   exampleSource,
		Findings: func(file string, line int) []Finding {
			if file == "/src/train.go" && line == 3 {
				return []Finding{{"AT001", "x.Sum().Item() waits"}, {"AG102", "applied"}, {"AT001", "again"}}
			}
			return nil
		},
		Explain: func(code string) string { return "What " + code + " means.\n\tx.Item()" },
		Below:   "<p id=\"more\">More.</p>",
	}
}

// TestBoth checks the data of two forms of a program: both begin at 0, and refer to their own operations.
func TestBoth(t *testing.T) {
	page := writePage(t, pair())
	m := regexp.MustCompile(`(?s)^(.*id="data)0" data-name="sim:0(">[A-Za-z0-9+/=]*</script>)\n<script [^>]*id="data1" data-name="&lt;cpu&gt;">[A-Za-z0-9+/=]*</script>(.*)$`).FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("the page has other data than that of two pictures:\n%.3000s", page)
	}
	h, c := decode(t, m[1]+`0" data-name="`+m[2]+m[3])
	if want := "Identical. Traced as written: 95.0 µs, 65 % blocked; 100 % of that in train.go:3: total += x.Sum().Item() // </script> (AT001, AG102). " +
		"Rewritten: 47.5 µs, 33 % blocked; 100 % of that in train.go:3."; h.Verdict != want {
		t.Errorf("the verdict is\n%s\nwant\n%s", h.Verdict, want)
	}
	if got := fmt.Sprint(c[by]); got != "[0 0 1 0 0 5 3 0]" {
		t.Errorf("the operations were enqueued by %s", got)
	}
	for side, want := range []string{
		"[3000 5000 35000 85000] [62000 20000 20000 10000] [-2 1 0]",
		"[1500 2500 17500 42500] [31000 10000 10000 5000] [-2 1 0]",
	} {
		if got := fmt.Sprint(c[begins][4*side:4*side+4], c[durations][4*side:4*side+4], c[refs][3*side:3*side+3]); got != want {
			t.Errorf("side %d has %s, want %s", side, got, want)
		}
	}
	if len(h.Places) != 3 || len(h.Lanes) != 5 || h.Lanes[2].Side != 1 || h.Sides[1].From != 2 || h.Sides[1].To != 4 || h.Blocked[1].Longest != 4 || h.End != 95000 {
		t.Errorf("%+v", h)
	}
	if !strings.Contains(page, "<article>\n<p id=\"more\">More.</p></article>") {
		t.Error("what stands below is missing")
	}
}

// TestBrowserBoth uses the page of two forms of a program.
func TestBrowserBoth(t *testing.T) {
	b := start(t)
	b.openText(writePage(t, pair()))
	has := b.has
	has("verdict", `$("verdict").textContent + document.title`, "Identical. Traced as written: 95.0 µs", "both")
	has("about", `$("about").textContent`, "as written, go1.26: 95.0 µs, 3 operations, 1 waits. rewritten, go1.26: 47.5 µs, 3 operations, 1 waits.")
	has("headings", `H.Sides.map(side => side.title).join()`, "as written: 95.0 µs, 65 % blocked,rewritten: 47.5 µs, 33 % blocked")
	has("lines", `$("lines").innerText`, "62.0 µs\t100 %\t1\tas written\tItem\ttrain.go:3\tAT001, AG102", "15.5 µs\t100 %\t1\trewritten\tItem\ttrain.go:3\tAT001, AG102")
	has("totals", `$("totals").innerText`, "as written\tcount\trewritten\tcount\toperation", "30.0 µs\t2\t15.0 µs\t2\tMatMul", "5.0 µs\t53 %\trewritten\tsim:0")
	has("the article", `$("more").textContent`, "More.")
	// A click on the wait of the rewritten program, and on what is found there.
	var top, x, y float64
	fmt.Sscan(b.eval(`canvas.getBoundingClientRect().top`), &top)
	fmt.Sscan(b.eval(`xOf(B[4] + D[4] / 2)`), &x)
	fmt.Sscan(b.eval(`RULER + trackOf(4).y + TRACK / 2`), &y)
	b.click(int(x), int(top+y))
	has("a click", `$("selection").innerText`, "Item", "program\trewritten", "found\tAT001: x.Sum().Item() waits", "found\tAG102: applied", "Sum 1.1")
	has("a goroutine that enqueues", `JSON.stringify(H.Lanes.map(l => [l.enqueued.length, l.tall, l.note]))`,
		`[[1,27,"65 % blocked"],[0,20,"53 % busy"],[1,27,"33 % blocked"],[0,20,"53 % busy"],[1,20,"1 enqueued"]]`)
	b.eval(`pick(5)`)
	has("who enqueued it", `$("selection").innerText`, "enqueued\t2.50 µs before it began, at 0 ns, by goroutine 9")
	b.eval(`pick(4)`)
	b.eval(`[...document.querySelectorAll("#selection button.link")].find(e => e.textContent === "AG102").click()`)
	has("an explanation", `$("selection").innerText`, "asyncgen explain AG102\nWhat AG102 means.\n\tx.Item()")
	b.eval(`[...document.querySelectorAll("#lines button.link")].find(e => e.textContent === "AT001").click()`)
	has("an explanation from the table", `$("selection").innerText`, "asyncgen explain AT001")
	b.eval(`[...document.querySelectorAll("#lines button.link")].find(e => e.textContent === "train.go:3").click()`)
	has("the longest wait", `$("selection").innerText`, "program\tas written", "62.0 µs (100 %)")
	b.eval(`$("pictures").value = "1", $("pictures").dispatchEvent(new Event("change"))`)
	b.eval(`new Promise(function wait(done) { H.Sides.length === 1 && picked < 0 ? done(1) : setTimeout(wait, 1, done); })`)
	b.frame()
	has("the other picture", `$("pictures").innerText + $("verdict").textContent + H.Lanes.length`, "<cpu>", "65 % of 95.0 µs blocked", "(AT001, AG102)2")
	b.quiet()
}

// TestHostile opens a page of hostile names, which are text, and pages of traces in which there is next to nothing.
func TestHostile(t *testing.T) {
	b := start(t)
	b.open(hostile(), hostileSource)
	b.eval(`pick(1, true); search("script"); setRange(20000, 50000)`)
	b.frame()
	done := `[typeof hacked, document.querySelectorAll("img, b, footer script").length, $("selection").innerText.includes("<img src=x onerror=")]`
	if got := b.eval(done); got != `["undefined",0,true]` {
		t.Errorf("hostile names have done something: %s", got)
	}
	b.quiet()
	for _, tr := range []*trace.Trace{{}, {Rows: []trace.Row{{}}, Slices: []trace.Slice{{Kind: trace.Op}}}, {Rows: []trace.Row{{}, {}}, Slices: []trace.Slice{{Kind: trace.Wait}}}} {
		b.open(tr, unread)
		b.eval(`Object.values(KEYS).forEach(press => { press(); draw(); })`)
		b.click(700, 200)
		b.quiet()
	}
}

// million is a trace of a million operations of four workers.
func million() *trace.Trace {
	const n = 1_000_000
	tr := &trace.Trace{Program: "million"}
	for row := range 4 {
		tr.Rows = append(tr.Rows, trace.Row{ID: uint64(row), Name: fmt.Sprint("worker ", row), Kind: trace.Worker})
	}
	tr.Rows = append(tr.Rows, trace.Row{ID: 4, Name: "goroutine 4"})
	rnd := rand.New(rand.NewPCG(1, 2))
	var places []*trace.Place
	for i := range 100 {
		places = append(places, &trace.Place{File: fmt.Sprintf("/src/file%d.go", i%7), Func: "main.f", Line: i})
	}
	for i := range n {
		begin := time.Duration(i)*2500 + time.Duration(rnd.IntN(1000))
		tr.Slices = append(tr.Slices, trace.Slice{
			Kind: trace.Op, Row: i % 4, Begin: begin, End: begin + time.Duration(1000+rnd.IntN(7000)), Enqueued: begin - time.Duration(rnd.IntN(100000)),
			By: 5, Name: fmt.Sprint("operation ", rnd.IntN(40)), At: places[rnd.IntN(100)], ID: trace.ID{Stream: 1, Seq: uint64(i + 1)},
			Reads:  [trace.MaxReads]trace.ID{{Stream: 1, Seq: uint64(max(1, i-rnd.IntN(8)))}},
			Result: fmt.Sprintf("float32[%d 10]", rnd.IntN(64)), Bytes: rnd.Int64N(1e6)})
		if i%8 == 0 {
			tr.Memory = append(tr.Memory, trace.Sample{At: begin, Bytes: rnd.Int64N(1e7)})
		}
	}
	return tr
}

// BenchmarkMillion opens a page of a million operations, then zooms and pans. It reports when the page could be used,
// and how many frames a second it shows.
func BenchmarkMillion(b *testing.B) {
	tr := million()
	began := time.Now()
	text := write(b, tr, unread)
	writing := time.Since(began)
	for b.Loop() {
		br := start(b)
		br.open(tr, unread)
		report := func(expression, unit string) {
			var x float64
			fmt.Sscan(br.eval(expression), &x)
			b.ReportMetric(x, unit)
		}
		b.ReportMetric(writing.Seconds(), "s/writing")
		b.ReportMetric(float64(len(text))/1e6, "MB/page")
		report(`performance.getEntriesByName("ready")[0].startTime`, "ms/open")
		const frames = `(async (step) => { const start = performance.now(); let drawing = 0;
			for (let i = 0; i < 60; i++) { step(i); const t = performance.now(); draw(); drawing += performance.now() - t; await new Promise(done => requestAnimationFrame(done)); }
			return (WHAT); })`
		perSecond, slowest := strings.ReplaceAll(frames, "WHAT", "60000 / (performance.now() - start)"), strings.ReplaceAll(frames, "WHAT", "drawing / 60")
		report(perSecond+`(i => zoom(i < 30 ? 1 / 1.3 : 1.3))`, "zooms/s")
		report(slowest+`(i => zoom(i < 30 ? 1 / 1.3 : 1.3))`, "ms/zoom")
		report(`whole(), `+perSecond+`(i => pan(i % 2 ? 0.1 : -0.1))`, "pans/s")
		report(`(() => { const t = performance.now(); search("operation 7"); draw(); return performance.now() - t })()`, "ms/search")
		report(`(() => { const t = performance.now(); pick(500000, true); return performance.now() - t })()`, "ms/select")
		br.quiet()
	}
}
