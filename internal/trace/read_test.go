package trace

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

const start = "[\n" + `{"ph":"M","name":"asyncgen","pid":1,"args":{"version":1,"go":"go1.26"}}`

// small is a trace of two goroutines, a worker and a device.
const small = start + `,
{"ph":"M","name":"process_name","pid":1,"args":{"name":"/bin/train"}},
{"ph":"M","name":"thread_name","pid":1,"tid":1073741826,"args":{"name":"sim:0"}},
{"ph":"M","name":"thread_name","pid":1,"tid":22,"args":{"name":"worker of cpu"}},
{"ph":"M","name":"thread_name","pid":1,"tid":23,"args":{"name":"worker of cpu, which does nothing"}},
{"ph":"X","cat":"op","name":"MatMul","ts":10.5,"dur":20,"pid":1,"tid":1073741826,"args":{"id":"2.0","enqueued":2.001,"by":1,"result":"float32[64 10]","bytes":2560,"at":"/src/a/train.go:30","func":"main.train"}},
{"ph":"C","name":"bytes in flight","ts":30.5,"pid":1,"args":{"bytes":2560}},
{"ph":"X","cat":"op","name":"Sum","ts":31,"dur":1,"pid":1,"tid":1,"args":{"id":"1.7","enqueued":3,"by":4,"gate":"2.1","reads":["2.0","9.9"],"result":"float32[]","bytes":4,"skipped":true,"at":"/src/a/train.go:31","func":"main.train"}},
{"ph":"X","cat":"wait","name":"Item","ts":5,"dur":27,"pid":1,"tid":1,"args":{"for":"2.1","idle":25,"at":"/src/a/train.go:31","func":"main.train"}},
{"ph":"X","cat":"op","name":"Neg","ts":40,"dur":60,"pid":1,"tid":22,"args":{"id":"1.8","result":"float32[]","bytes":4}},
{"ph":"X","cat":"wait","name":"Item","ts":40,"dur":10,"pid":1,"tid":1,"args":{"for":"1.8","idle":10,"at":"/src/a/train.go:31","func":"main.train"}},
{"ph":"X","cat":"stall","name":"Add","ts":50,"dur":7,"pid":1,"tid":5,"args":{"idle":7,"at":"/src/b/train.go:9","func":"main.load"}},
{"ph":"X","cat":"flow","name":"of a later version","ts":50,"dur":7,"pid":1,"tid":5,"args":{"x":[1,{"y":null}]}}
]
`

func read(t *testing.T, text string) *Trace {
	t.Helper()
	tr, err := Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func TestRead(t *testing.T) {
	tr := read(t, small)
	if tr.Program != "/bin/train" || tr.Go != "go1.26" || tr.IsCut || tr.Lost != 0 {
		t.Errorf("%+v", tr)
	}
	if got, want := fmt.Sprint(tr.Rows), "[{1 0 goroutine 1} {4 0 goroutine 4} {5 0 goroutine 5} {22 1 worker of cpu} {1073741826 2 sim:0}]"; got != want {
		t.Errorf("rows %s, want %s", got, want)
	}
	if got := fmt.Sprint(tr.Memory); got != "[{30.5µs 2560}]" {
		t.Errorf("bytes in flight: %s", got)
	}
	if len(tr.Slices) != 6 {
		t.Fatalf("%d slices", len(tr.Slices))
	}
	at := &Place{"/src/a/train.go", "main.train", 31}
	sum := tr.Slices[1]
	if *sum.At != *at || sum.At != tr.Slices[2].At {
		t.Errorf("places %p %v and %p, want one that is %v", sum.At, sum.At, tr.Slices[2].At, at)
	}
	want := Slice{Kind: Op, Skipped: true, Row: 0, Begin: 31 * time.Microsecond, End: 32 * time.Microsecond, Name: "Sum", At: sum.At,
		ID: ID{1, 7}, Enqueued: 3 * time.Microsecond, By: 2, Bytes: 4, Reads: [MaxReads]ID{{2, 0}, {9, 9}}, Gate: ID{2, 1}, Result: "float32[]"}
	if sum != want {
		t.Errorf("got  %+v\nwant %+v", sum, want)
	}
	if m := tr.Slices[0]; m.Enqueued != 2001 || m.Begin != 10500 || m.By != 1 || m.Row != 4 || m.Result != "float32[64 10]" {
		t.Errorf("%+v", m)
	}
	if n := tr.Slices[3]; n.Enqueued != n.Begin || n.By != 0 || n.At != nil {
		t.Errorf("%+v", n)
	}
	if w := tr.Slices[2]; w.Kind != Wait || w.ID != (ID{2, 1}) || w.Idle != 25*time.Microsecond || tr.Slices[5].Kind != Stall {
		t.Errorf("%+v", w)
	}
}

// TestCut cuts a trace at each place: what is left reads as the lines that are whole.
func TestCut(t *testing.T) {
	whole := read(t, small)
	first := strings.Index(small, "1.26\"}}") + len("1.26\"}}")
	for n := first; n < len(small); n++ {
		tr, err := Read(strings.NewReader(small[:n]))
		if err != nil {
			t.Fatalf("the first %d bytes: %v", n, err)
		}
		want := 0
		for line := range strings.Lines(small[:n]) {
			line = strings.TrimSuffix(strings.TrimSpace(line), ",")
			if strings.Contains(line, `"X"`) && !strings.Contains(line, "flow") && strings.HasSuffix(line, "}}") {
				want++
			}
		}
		if ended := n >= len(small)-1; len(tr.Slices) != want || tr.IsCut == ended {
			t.Fatalf("the first %d bytes: %d slices, want %d; cut: %v", n, len(tr.Slices), want, tr.IsCut)
		}
		for i, s := range tr.Slices {
			if w := whole.Slices[i]; s.Name != w.Name || s.End != w.End || s.ID != w.ID {
				t.Fatalf("the first %d bytes: slice %d is %+v", n, i, s)
			}
		}
	}
}

func TestReadTrouble(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "empty"},
		{"#!/bin/sh\n", "no trace"},
		{`{"traceEvents":[]}`, "no trace"},
		{"[\n]\n", "no trace of asyncgen"},
		{"[\n" + `{"ph":"X","cat":"op","name":"a","ts":1,"dur":1}` + "\n]\n", "no trace of asyncgen"},
		{strings.Replace(start, `"version":1`, `"version":2`, 1) + "\n]\n", "version 2"},
		{start + ",\n" + `{"ph":"X"` + "\n]\n", "line 3: this is no event"},
		{start + ",\nHello,\n" + `{"ph":"X"}` + "\n", "line 3: this is no event"},
		{start + ",\n" + `{"ph":"X"} {}` + "\n]\n", "line 3: this is no event"},
		{start + ",\n" + `{"ph":"X","ts":1e300}` + "\n]\n", "line 3: this is no event"},
		{start + ",\n" + `{"ph":"X","ts":NaN}` + "\n]\n", "line 3: this is no event"},
		{start + ",\n" + `{"ph":"X","tid":-1}` + "\n]\n", "line 3: this is no event"},
		{start + ",\n" + `{"ph":"X","args":{"id":"1"}}` + "\n]\n", "line 3: this is no event"},
		{start + ",\n" + `{"ph":"X","cat":"op","dur":-1}` + "\n]\n", "ends before it begins"},
		{start + ",\n" + strings.Repeat("[", 100) + "\n]\n", "line 3: this is no event"},
		{start + ",\n" + `{"ph":"X","x":` + strings.Repeat("[", 100) + "\n]\n", "line 3: this is no event"},
		{start + ",\n" + strings.Repeat("x", maxLine) + "\n]\n", "line 3 is longer"},
		{start + "\n]\nmore\n", "after the end"},
	} {
		if tr, err := Read(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80q reads as %v, %v; want an error with %q", c.text, tr, err, c.want)
		}
	}
}

// TestReadChanged changes bytes of a trace at random: reading it does not panic.
func TestReadChanged(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	const strange = "\"\\{}[],:0-9.e \n\x00\xff"
	for range 2000 {
		text := []byte(small)
		for range 1 + rnd.IntN(4) {
			text[rnd.IntN(len(text))] = strange[rnd.IntN(len(strange))]
		}
		if tr, err := Read(bytes.NewReader(text)); err == nil {
			v := tr.Verdict()
			tr.Sentence(v, Naming{ShortFiles(tr), unread, nil})
		}
	}
}

// TestWritten reads what a Writer writes, with names that are hostile.
func TestWritten(t *testing.T) {
	for _, name := range []string{"MatMul", `"quoted" \ back`, "</script><b>", "a\x00\x1b[31m\a\vb", "\u202e\u2028é😀", "a,\n]"} {
		var b bytes.Buffer
		w := NewWriter(&b, func(pc uintptr) *Place { return &Place{"/src/" + name + ".go", "main." + name, int(pc)} })
		w.Name(1<<30, name)
		w.Add(&Event{Kind: Op, Name: name, Row: 1 << 30, Begin: 5, End: 7, Enqueued: 3, PC: 12, ID: ID{1, 2}, Reads: [MaxReads]ID{{}, {1, 1}}, Type: "bool"}, 100)
		w.Add(&Event{Kind: Wait, Name: name, Row: 3, Begin: 4, End: 20, Idle: 16, PC: 13, ID: ID{1, 2}}, 0)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		tr := read(t, b.String())
		if len(tr.Slices) != 2 || len(tr.Rows) != 2 || tr.Rows[1].Name != name || tr.IsCut {
			t.Fatalf("%q is written as\n%s\nand read as %+v", name, &b, tr)
		}
		op, wait := tr.Slices[0], tr.Slices[1]
		if op.Name != name || *op.At != (Place{"/src/" + name + ".go", "main." + name, 12}) || op.Begin != 2 || op.Enqueued != 0 || op.Reads[0] != (ID{1, 1}) {
			t.Errorf("%q is written as\n%s\nand read as %+v, %+v", name, &b, op, op.At)
		}
		if wait.Idle != 16 || wait.End != 17 || wait.ID != op.ID {
			t.Errorf("%+v", wait)
		}
	}
}

func TestVerdict(t *testing.T) {
	tr := read(t, small)
	v := tr.Verdict()
	us := time.Microsecond
	if v.Begin != 2001 || v.End != 100*us || v.Goroutines != 2 || v.Longest != 0 || v.LongestFor != 35*us || v.Total != 42*us {
		t.Errorf("%+v", v)
	}
	if len(v.Lines) != 2 || v.Lines[0].Waits != 2 || v.Lines[0].Time != 35*us || v.Lines[0].Longest != 2 || v.Lines[1].Call != "Add" || v.Lines[1].Time != 7*us {
		t.Errorf("%+v", v.Lines)
	}
	source := func(file string) []string {
		if file == "/src/a/train.go" {
			return append(make([]string, 30), "\ttotal += loss.Item() ")
		}
		return nil
	}
	codes := func(file string, line int) string {
		if file == "/src/a/train.go" && line == 31 {
			return "AT001"
		}
		return ""
	}
	if got, want := tr.Sentence(v, Naming{ShortFiles(tr), source, codes}), "goroutine 1: 36 % of 98.0 µs blocked, the most of 2 that waited; 83 % of all blocked time in a/train.go:31: total += loss.Item() (AT001)"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, c := range []struct{ events, want string }{
		{"", "Nothing happened while this trace was written."},
		{opAt(0, 50), "0 % of 50.0 µs blocked: no call waited."},
		{opAt(0, 50) + waitAt(10, 50, 0), "0 % of 50.0 µs blocked"},
		{opAt(0, 50) + waitAt(10, 50, 4), "8.0 % of 50.0 µs blocked; 100 % of that in a.go:9"},
	} {
		tr := read(t, start+c.events+"\n]\n")
		if got := tr.Sentence(tr.Verdict(), Naming{ShortFiles(tr), unread, nil}); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestCompared(t *testing.T) {
	was, is := read(t, start+opAt(0, 50)+waitAt(10, 50, 20)+"\n]\n"), read(t, start+opAt(0, 25)+"\n]\n")
	n := Naming{ShortFiles(was, is), unread, nil}
	const want = "Traced as written: 50.0 µs, 40 % blocked; 100 % of that in a.go:9. Rewritten: 25.0 µs, 0 % blocked."
	if got := Compared(was.Verdict(), is.Verdict(), n); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// unread is a source that can't be read.
func unread(string) []string { return nil }

func opAt(begin, end int) string {
	return fmt.Sprintf(`,`+"\n"+`{"ph":"X","cat":"op","name":"Add","ts":%d,"dur":%d,"tid":2,"args":{"id":"1.1"}}`, begin, end-begin)
}

func waitAt(begin, end, idle int) string {
	return fmt.Sprintf(`,`+"\n"+`{"ph":"X","cat":"wait","name":"Item","ts":%d,"dur":%d,"tid":1,"args":{"idle":%d,"at":"a.go:9"}}`, begin, end-begin, idle)
}

func TestShortFiles(t *testing.T) {
	names := []string{"/a/x/train.go", "/b/x/train.go", "/train.go", "train.go", "/a/only.go", "", "/", "//", "/1/2/3/4/5/6/7/8/9/d.go", "/0/2/3/4/5/6/7/8/9/d.go"}
	tr := &Trace{}
	for _, name := range names {
		tr.Slices = append(tr.Slices, Slice{At: &Place{File: name}})
	}
	short := ShortFiles(tr)
	seen := map[string]bool{}
	for _, name := range names {
		s, ok := short[name]
		if !ok || seen[s] || !strings.HasSuffix(name, s) {
			t.Errorf("%q is short for %q", s, name)
		}
		seen[s] = true
	}
	if short["/a/x/train.go"] != "a/x/train.go" || short["/a/only.go"] != "only.go" {
		t.Errorf("%q", short)
	}
}

func TestNumbers(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0 ns", 999: "999 ns", 1000: "1.00 µs", 999499: "999 µs", 999500: "1.00 ms", 12345678: "12.3 ms",
		3100 * time.Millisecond: "3.10 s", time.Hour: "3600 s", -1500: "-1.50 µs", 99949: "99.9 µs", 99951: "100 µs"} {
		if got := Time(d); got != want {
			t.Errorf("Time(%d) is %s, want %s", d, got, want)
		}
	}
	for _, c := range []struct {
		part time.Duration
		want string
	}{{0, "0 %"}, {1, "0.1 %"}, {99, "9.9 %"}, {100, "10 %"}, {1000, "100 %"}, {995, "100 %"}, {994, "99 %"}} {
		if got := Percent(c.part, 1000); got != c.want {
			t.Errorf("Percent(%d, 1000) is %s, want %s", c.part, got, c.want)
		}
	}
}

// BenchmarkRead reads a million operations.
func BenchmarkRead(b *testing.B) {
	var text bytes.Buffer
	w := NewWriter(&text, func(pc uintptr) *Place { return &Place{"/home/user/project/train/main.go", "main.train", int(pc)} })
	for i := range 1_000_000 {
		at := time.Duration(i) * 10_000
		w.Add(&Event{Kind: Op, Name: "MatMul", Row: 22, Begin: at + 1234, End: at + 9876, Enqueued: at, PC: uintptr(i % 100), ID: ID{1, uint64(i)},
			Reads: [MaxReads]ID{{1, uint64(i)}}, Type: "float32", Bytes: 1234}, 5678)
		if i%1000 == 0 {
			w.Flush()
		}
	}
	w.Close()
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		if tr, err := Read(bytes.NewReader(text.Bytes())); err != nil || len(tr.Slices) != 1_000_000 {
			b.Fatal(err)
		}
	}
}
