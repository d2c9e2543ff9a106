package compare

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/device/report"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestFigures(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{duration(0), "0 s"},
		{duration(1500 * time.Nanosecond), "1.5 µs"},
		{duration(52_340 * time.Microsecond), "52.3 ms"},
		{duration(61 * time.Second), "61.00 s"},
		{grouped(0), "0"},
		{grouped(999), "999"},
		{grouped(1234567), "1,234,567"},
		{grouped(-1000), "-1,000"},
		{grouped(-100), "-100"},
		{plural(1, "run"), "1 run"},
		{plural(2048, "line"), "2,048 lines"},
		{events(0, 7), "0"},
		{events(2000, 7000), "2,000 in 7 µs"},
		{speed(3*time.Second, time.Second), "3.00x as fast"},
		{speed(time.Second, 2*time.Second), "2.00x as long"},
		{fewer(2048, 64), "32.0x fewer"},
		{fewer(5, 5), ""},
		{fewer(5, 0), ""},
		{megabytes(12_345_678), "12.3 MB"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// side returns a program that took these times, in milliseconds, and waited so often, 10 µs each time.
func side(waits int64, times ...int) Side {
	s := Side{Status: "exit status 0", Peak: 20e6, Sync: report.Counts{PeakBytes: 34e6 + waits, Waits: waits, WaitNS: waits * 10_000}}
	for _, ms := range times {
		s.Times = append(s.Times, time.Duration(ms)*time.Millisecond)
	}
	return s
}

// idle returns s on a device that had nothing to do for so many milliseconds while the program waited.
func idle(s Side, ms int64) Side {
	s.Sync.IdleNS = ms * 1e6
	return s
}

func TestMedian(t *testing.T) {
	odd, even := side(0, 9, 1, 5), side(0, 9, 1, 5, 6)
	if odd.Time() != 5*time.Millisecond || even.Time() != 5500*time.Microsecond {
		t.Errorf("medians %v and %v, want 5ms and 5.5ms", odd.Time(), even.Time())
	}
}

func TestNotes(t *testing.T) {
	some := &programs{applied: []string{"train"}}
	for _, c := range []struct {
		name                string
		original, rewritten Side
		programs            *programs
		want                string // the beginning; "" for no note
	}{
		{"nothing rewritten", side(9, 5), side(9, 5), &programs{}, "nothing was rewritten"},
		{"no waits", side(0, 5), side(0, 5), some, "the program as written never waits"},
		{"faster", side(1000, 50, 52), side(10, 20, 22), some, ""},
		{"faster, but for a run that was held up", side(1000, 50, 52, 51, 50, 51), side(10, 20, 22, 21, 20, 99), some, ""},
		{"same waits", side(10, 50, 52), side(10, 51, 53), some, "1.02x as long, which is within what runs differ by: 50 ms to 52 ms as written, 51 ms to 53 ms rewritten; the rewritten program waits as often"},
		{"compute-bound", side(4000, 50, 52), Side{Times: []time.Duration{51e6}, Sync: report.Counts{Waits: 30, HelpNS: 39_000_000}}, some,
			"1.00x as fast, which is within what runs differ by: 50 ms to 52 ms as written, 51 ms to 51 ms rewritten; it waits 30 times instead of 4,000, but the device is busy most of that time"},
		{"bound by waits that are left", idle(side(4000, 50, 52), 30), idle(side(3900, 50, 52), 31), some,
			"1.00x as fast, which is within what runs differ by: 50 ms to 52 ms as written, 50 ms to 52 ms rewritten; it waits 3,900 times instead of 4,000, and is blocked for 39 ms instead of 40 ms, for most of which the device has nothing to do"},
		{"compute-bound, hardly ever idle", idle(side(4000, 50, 52), 30), idle(side(3900, 50, 52), 1), some,
			"1.00x as fast, which is within what runs differ by: 50 ms to 52 ms as written, 50 ms to 52 ms rewritten; it waits 3,900 times instead of 4,000, but the device is busy most of that time"},
		{"elsewhere", side(100, 50, 52), side(2, 51, 51), some, "1.00x as fast, which is within what runs differ by: 50 ms to 52 ms as written, 51 ms to 51 ms rewritten; waiting is not where the time goes: as written, it is 1 ms of 51 ms"},
		{"host-bound", side(4000, 50, 52), side(30, 51, 51), some, "1.00x as fast, which is within what runs differ by: 50 ms to 52 ms as written, 51 ms to 51 ms rewritten; it is blocked for 300 µs instead of 40 ms"},
		{"slower", side(10, 50, 52), side(10, 61, 63), some, "slower: "},
	} {
		got := strings.Join(notes(&Device{Original: c.original, Rewritten: c.rewritten}, c.programs), "\n")
		if !strings.HasPrefix(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	different := &Device{Original: side(9, 5), Rewritten: side(9, 5), Differences: []Difference{{What: "end"}}}
	if got := notes(different, &programs{}); got != nil {
		t.Errorf("different programs: %q, want no note about gains", got)
	}
}

// In virtual time, waits may be longer than the program ran.
func TestVirtualTime(t *testing.T) {
	for settings, want := range map[string]bool{"": false, "n=2,launch=5us": false, "clock=virtual": true, "n=2, clock=virtual": true, "clock=virtually": false} {
		if got := virtualClock(settings); got != want {
			t.Errorf("ASYNCGEN_SIM=%s: %v, want %v", settings, got, want)
		}
	}
	original, rewritten := side(2048, 29), side(64, 10)
	original.Sync.IdleNS, rewritten.Sync.IdleNS = 108e6, 90e3
	d := &Device{Name: "sim:0", Simulated: true, Virtual: true, Original: original, Rewritten: rewritten}
	var idle row
	for _, r := range d.rows() {
		if r.Label == "idle" {
			idle = r
		}
	}
	if idle.Original != "108 ms" || idle.Rewritten != "90 µs" {
		t.Errorf("the device is idle for %q and %q, which are no shares of the machine's time", idle.Original, idle.Rewritten)
	}
	if got := notes(d, &programs{}); len(got) != 1 || !strings.Contains(got[0], "by the clock of the model") {
		t.Errorf("notes %q", got)
	}
	if got, want := d.title(), "sim:0 (simulated, in virtual time)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// madeUp is a result with something of everything.
func madeUp() *Result {
	text := func(s string) *string { return &s }
	original, rewritten := side(2048, 52, 50, 51), side(64, 20, 22, 21)
	original.Stderr = strings.Repeat("a line\n", 20)
	original.Sync.IdleNS, rewritten.Sync.IdleNS = 30e6, 150e3
	bad := side(2048, 52)
	bad.Status = "exit status 1"
	return &Result{
		Package:   "./train",
		Args:      []string{"-small"},
		Machine:   "plan9/mips, 3 CPUs, go1.99",
		Count:     3,
		Rewritten: []string{"train.go:12: train: defer-read defer-sum"},
		Refused:   []string{"train.go:40:3: AG203 refused\n  because"},
		Devices: []*Device{
			{Name: "cpu", Original: original, Rewritten: rewritten, Lines: 12, Notes: []string{"a note"}},
			{Name: "sim:0", Simulated: true, Original: original, Rewritten: bad, Lines: 12, Differences: []Difference{
				{What: "stdout", Total: 9, Lines: []LineDiff{{3, text("loss 1\n"), text("loss 2\n")}, {12, text("end\n"), nil}}},
				{What: "end", Want: "exit status 0", Got: "exit status 1"},
				{What: "failure", Got: "panic: boom"},
			}},
		},
	}
}

// TestText compares the text for a made-up result with a golden file.
func TestBesides(t *testing.T) {
	for _, c := range []struct{ want, got, note string }{
		{"a\nb\n", "a\nb\n", ""},
		{"a\nb\nc\n", "a\nB\nC\n", `as written, stdout differs from that on cpu in 2 lines: line 2 is "b\n" there, "B\n" here`},
		{"a\n", "a\nb\n", `as written, stdout differs from that on cpu in 1 line: line 2 is nothing there, "b\n" here`},
	} {
		if got := strings.Join(besides([]byte(c.want), []byte(c.got), "cpu"), "; "); got != c.note {
			t.Errorf("%q and %q: %q, want %q", c.want, c.got, got, c.note)
		}
	}
}

func TestText(t *testing.T) {
	r := madeUp()
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/text.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("got:\n%s\nwant:\n%s\n(go test ./gen/compare -run TestText -update rewrites it)", b.String(), want)
	}
	if r.Same() {
		t.Error("Same reports true for programs that differ")
	}
}

// TestHTML checks that the page has what the text has, escaped.
func TestHTML(t *testing.T) {
	r := madeUp()
	r.Refused = []string{"a <b> & c"}
	p, err := r.Page()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"./train -small", "plan9/mips", "DIFFERENT", "sim:0 (simulated)",
		"2.43x as fast", "<td>64 in 640 µs</td>", "median 51 ms, 50 ms to 52 ms", `<rect width="98.1%"`,
		"stdout differs in 9 lines", "line 3: &#34;loss 1", "rewritten:  panic: boom", "a note", "a line", "a &lt;b&gt; &amp; c",
	} {
		if !strings.Contains(p.Below, want) {
			t.Errorf("the page does not have %q:\n%s", want, p.Below)
		}
	}
}
