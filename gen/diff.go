package gen

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// around is how many unchanged lines a diff shows around changes.
const around = 3

// unified returns the difference between two texts in the format of diff -u,
// or nothing if they are equal.
func unified(name string, before, after []byte) []byte {
	if bytes.Equal(before, after) {
		return nil
	}
	x, y := lines(before), lines(after)
	ops := script(x, y)
	var b bytes.Buffer
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", from(name, before), from(name, after))
	for start := 0; start < len(ops); {
		if ops[start].kind == ' ' {
			start++
			continue
		}
		// A hunk goes on while changes are close to each other.
		end, quiet := start, 0
		for i := start; i < len(ops) && quiet <= 2*around; i++ {
			if ops[i].kind == ' ' {
				quiet++
			} else {
				end, quiet = i+1, 0
			}
		}
		lo, hi := max(0, start-around), min(len(ops), end+around)
		hunk(&b, ops[lo:hi])
		start = hi
	}
	return b.Bytes()
}

func from(name string, text []byte) string {
	if text == nil {
		return "/dev/null"
	}
	return tensorapi.Visible(name)
}

func lines(text []byte) []string {
	if len(text) == 0 {
		return nil
	}
	return strings.SplitAfter(strings.TrimSuffix(string(text), "\n"), "\n")
}

// An op is one line of a diff: kept, removed or added.
type op struct {
	kind byte // ' ', '-', '+'
	line string
	x, y int // line numbers before it, from 0
}

func hunk(b *bytes.Buffer, ops []op) {
	removed, added := 0, 0
	for _, o := range ops {
		if o.kind != '+' {
			removed++
		}
		if o.kind != '-' {
			added++
		}
	}
	fmt.Fprintf(b, "@@ -%s +%s @@\n", span(ops[0].x, removed), span(ops[0].y, added))
	for _, o := range ops {
		fmt.Fprintf(b, "%c%s\n", o.kind, strings.TrimSuffix(o.line, "\n"))
	}
}

func span(at, n int) string {
	if n == 0 {
		return fmt.Sprintf("%d,0", at)
	}
	return fmt.Sprintf("%d,%d", at+1, n)
}

// script returns a shortest way from x to y: Myers' algorithm, greedy, keeping
// the furthest points of every round.
func script(x, y []string) []op {
	n, m := len(x), len(y)
	at := func(v []int, k int) int { return v[k+n+m+1] }
	v := make([]int, 2*(n+m)+3)
	var rounds [][]int
search:
	for d := 0; ; d++ {
		rounds = append(rounds, append([]int(nil), v...))
		for k := -d; k <= d; k += 2 {
			i := 0
			if k == -d || k != d && at(v, k-1) < at(v, k+1) {
				i = at(v, k+1)
			} else {
				i = at(v, k-1) + 1
			}
			j := i - k
			for i < n && j < m && trimmed(x[i]) == trimmed(y[j]) {
				i, j = i+1, j+1
			}
			v[k+n+m+1] = i
			if i >= n && j >= m {
				break search
			}
		}
	}
	var back []op
	i, j := n, m
	for d := len(rounds) - 1; i > 0 || j > 0; d-- {
		v, k := rounds[d], i-j
		prev := k - 1
		if k == -d || k != d && at(v, k-1) < at(v, k+1) {
			prev = k + 1
		}
		pi := at(v, prev)
		pj := pi - prev
		if d == 0 {
			pi, pj = 0, 0
		}
		for i > pi && j > pj {
			i, j = i-1, j-1
			back = append(back, op{' ', x[i], i, j})
		}
		switch {
		case d == 0:
		case i > pi:
			i--
			back = append(back, op{'-', x[i], i, j})
		case j > pj:
			j--
			back = append(back, op{'+', y[j], i, j})
		}
	}
	for l, r := 0, len(back)-1; l < r; l, r = l+1, r-1 {
		back[l], back[r] = back[r], back[l]
	}
	return back
}

func trimmed(line string) string { return strings.TrimSuffix(line, "\n") }
