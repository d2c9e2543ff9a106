package compare

import (
	"regexp"
	"strings"
	"testing"
)

func TestDiffLines(t *testing.T) {
	for _, c := range []struct {
		want, got string
		total     int
		first     string // of the differences, as printed
	}{
		{"", "", 0, ""},
		{"a\nb\n", "a\nb\n", 0, ""},
		{"a\nb\n", "a\nc\n", 1, "line 2: \"b\\n\"\n    not \"c\\n\""},
		{"a\n", "a\nb\nc\n", 2, "line 2: (the output has ended)\n    not \"b\\n\""},
		{"a\nb\n", "a\n", 1, "line 2: \"b\\n\"\n    not (the output has ended)"},
		{"a\n", "a", 1, "line 1: \"a\\n\"\n    not \"a\""},
		{"x\na\n", "a\nx\n", 2, "line 1: \"x\\n\"\n    not \"a\\n\""},
	} {
		diffs, total := diffLines([]byte(c.want), []byte(c.got), 1)
		if total != c.total || len(diffs) != min(total, 1) {
			t.Errorf("diffLines(%q, %q) = %v, %d; want %d", c.want, c.got, diffs, total, c.total)
			continue
		}
		if total > 0 && strings.Replace(diffs[0].String(), "        not", "    not", 1) != c.first {
			t.Errorf("diffLines(%q, %q): first is\n%s\nwant\n%s", c.want, c.got, diffs[0], c.first)
		}
	}
}

func TestMasked(t *testing.T) {
	masks := []*regexp.Regexp{regexp.MustCompile(`[0-9.]+ ms`), regexp.MustCompile(`^at .*`)}
	got := masked([]byte("took 1.5 ms, then 20 ms\nat noon\nkept\nlast 3 ms"), masks)
	if want := "took …, then …\n…\nkept\nlast …"; string(got) != want {
		t.Errorf("masked: got %q, want %q", got, want)
	}
}

func TestFailure(t *testing.T) {
	for stderr, want := range map[string]string{
		"":          "",
		"loading\n": "",
		"note\npanic: boom\n\ngoroutine 1 [running]:\n":                                                "panic: boom",
		"fatal error: all goroutines are asleep - deadlock!":                                           "fatal error: all goroutines are asleep - deadlock!",
		"panic: (*main.T) 0xc000012345\n":                                                              "panic: (*main.T) 0x…",
		"panic: asyncgen: Fill float32[2] on cpu, enqueued at /src/a b.go:7: out of memory: 5 bytes\n": "panic: asyncgen: …out of memory: 5 bytes",
	} {
		if got := failure([]byte(stderr)); got != want {
			t.Errorf("failure(%q) = %q, want %q", stderr, got, want)
		}
	}
}
