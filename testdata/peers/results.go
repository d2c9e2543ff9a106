package main

import (
	"errors"
	"fmt"
	"html"
	"math"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// results are all answers.
type results struct {
	options
	machine  string
	peers    []string // in the order of the table
	versions []string
	missing  []string // peers, with the reason
	rows     []row
}

// A row is what all peers answered to one question.
type row struct {
	workload
	threads int
	answers map[string]answer
	limit   answer // FLOP or bytes a second
}

func (r *results) miss(name string, err error) {
	text := fmt.Sprintf("%s: %v", name, err)
	r.missing = append(r.missing, text)
	fmt.Fprintln(os.Stderr, "left out:", text)
}

// machine says what is measured on.
func machine() string {
	text := fmt.Sprintf("%s/%s, %d CPUs, %s, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), time.Now().Format(time.DateOnly))
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return text
	}
	for _, key := range []string{"model name", "cpu family", "model"} {
		for line := range strings.Lines(string(info)) {
			if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == key {
				text += ", " + strings.TrimPrefix(key+" ", "model name ") + strings.TrimSpace(v)
				break
			}
		}
	}
	return text
}

// summary is the row in one line.
func (r *row) summary(peers []string) string {
	var words []string
	for _, p := range peers {
		if a := r.answers[p]; a.Seconds > 0 {
			words = append(words, p+" "+duration(a.Seconds))
		}
	}
	return strings.Join(words, ", ")
}

// duration has three digits.
func duration(seconds float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}} {
		if seconds >= unit.size*0.9995 {
			return digits(seconds/unit.size) + " " + unit.name
		}
	}
	return digits(seconds*1e9) + " ns"
}

// digits is v with three digits.
func digits(v float64) string {
	return fmt.Sprintf("%.*f", max(0, 2-int(math.Floor(math.Log10(max(v, 1e-9)*1.0005)))), v)
}

// share is which part of the machine's limit our answer reaches.
func (r *row) share() string {
	a := r.answers[ours]
	if r.limit.Seconds == 0 || a.Seconds == 0 {
		return ""
	}
	work, name := r.Flops, "FMA peak"
	if r.workload.limit() == "triad" {
		work, name = r.Bytes, "triad"
	}
	return fmt.Sprintf("%.0f %% of %s", 100*work/a.Seconds/r.limit.Seconds, name)
}

// rate is what our answer amounts to.
func (r *row) rate() string {
	switch s := r.answers[ours].Seconds; {
	case s == 0:
		return ""
	case r.Flops > 0:
		return fmt.Sprintf("%.0f GFLOP/s", r.Flops/s/1e9)
	case r.Bytes > 0:
		return fmt.Sprintf("%.0f GB/s", r.Bytes/s/1e9)
	}
	return ""
}

// markdown is the table.
func (r *results) markdown() string {
	var b strings.Builder
	how := "the limits are the best that was seen in the same run"
	if r.isGPU() {
		how = "the executions of a window are enqueued and waited for together"
	}
	fmt.Fprintf(&b, "Measured on %s. Times are medians; %s.\n\n", r.machine, how)
	r.markdownPeers(&b)
	fmt.Fprintf(&b, "\n| float32 | threads | %s | %s reaches | of the limit |\n| --- | ---: |%s --- | --- |\n", strings.Join(r.peers, " | "), ours, strings.Repeat(" ---: |", len(r.peers)))
	for i := range r.rows {
		row := &r.rows[i]
		fmt.Fprintf(&b, "| %s | %d |", row.Name, row.threads)
		for _, p := range r.peers {
			fmt.Fprintf(&b, " %s |", row.cell(p))
		}
		fmt.Fprintf(&b, " %s | %s |\n", row.rate(), row.share())
	}
	return b.String()
}

func (r *results) markdownPeers(b *strings.Builder) {
	for i, p := range r.peers {
		fmt.Fprintf(b, "- %s: %s\n", p, r.versions[i])
	}
	for _, m := range r.missing {
		fmt.Fprintf(b, "- left out: %s\n", m)
	}
}

// readMarkdown reads the table that markdown has written. What it needs for a chart is there; limits are not.
func readMarkdown(text string, only *regexp.Regexp) (*results, error) {
	r := &results{}
	text, _, _ = strings.Cut(text, stepsHeading)
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "Measured on "); ok {
			r.machine, _, _ = strings.Cut(rest, ". Times are medians")
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case len(cells) < 5 || strings.HasPrefix(cells[0], "---"):
			continue
		case r.peers == nil:
			r.peers = cells[2 : len(cells)-2]
			continue
		case !only.MatchString(cells[0]):
			continue
		}
		threads, err := strconv.Atoi(cells[1])
		if err != nil || len(cells) != len(r.peers)+4 {
			return nil, fmt.Errorf("not a row of the table: %s", line)
		}
		if !slices.Contains(r.threads, threads) {
			r.threads = append(r.threads, threads)
		}
		row := row{workload: workload{Name: cells[0]}, threads: threads, answers: map[string]answer{}}
		for i, p := range r.peers {
			if cells[2+i] == "" {
				continue
			}
			if row.answers[p], err = readDuration(cells[2+i]); err != nil {
				return nil, fmt.Errorf("%s: %w", cells[0], err)
			}
		}
		r.rows = append(r.rows, row)
	}
	if len(r.rows) == 0 {
		return nil, errors.New("no rows")
	}
	return r, nil
}

// readDuration reads what cell has written: "**99.4 µs**" or "665 µs, 6.69×".
func readDuration(cell string) (answer, error) {
	text, _, _ := strings.Cut(cell, ",")
	number, unit, _ := strings.Cut(strings.Trim(text, "*"), " ")
	v, err := strconv.ParseFloat(number, 64)
	size := map[string]float64{"s": 1, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}[unit]
	if err != nil || size == 0 {
		return answer{}, fmt.Errorf("%q is no time", cell)
	}
	return answer{Seconds: v * size}, nil
}

// cell is a peer's time, and for others than us how many times ours it is. The shortest is in bold.
func (r *row) cell(p string) string {
	a, mine := r.answers[p], r.answers[ours]
	if a.Seconds == 0 {
		return ""
	}
	text := duration(a.Seconds)
	if r.isBest(p) {
		text = "**" + text + "**"
	}
	if p != ours && mine.Seconds > 0 {
		text += fmt.Sprintf(", %s×", digits(a.Seconds/mine.Seconds))
	}
	return text
}

func (r *row) isBest(p string) bool {
	for _, a := range r.answers {
		if a.Seconds > 0 && a.Seconds < r.answers[p].Seconds {
			return false
		}
	}
	return true
}

// The chart has a line for each row, and on it a dot for each peer: to the right those that are faster than we are.
const (
	labelWidth = 380
	plotWidth  = 520
	lineHeight = 18
	top        = 74
	margin     = 24
)

var colours = map[string]string{ours: "#0b6fb8", "PyTorch": "#d9480f", "NumPy": "#2b8a3e", "GoMLX": "#862e9c", "gonum": "#868e96"}

// chart draws, for the largest number of threads, how fast the peers are, ours being 1.
func (r *results) chart() string {
	rows := slices.DeleteFunc(slices.Clone(r.rows), func(row row) bool {
		return row.threads != r.threads[len(r.threads)-1] || row.answers[ours].Seconds == 0
	})
	low, high := -1, 1 // powers of ten
	for _, row := range rows {
		for _, a := range row.answers {
			if a.Seconds > 0 {
				speed := math.Log10(row.answers[ours].Seconds / a.Seconds)
				low, high = min(low, int(math.Floor(speed))), max(high, int(math.Ceil(speed)))
			}
		}
	}
	x := func(speed float64) float64 {
		return labelWidth + plotWidth*(math.Log10(speed)-float64(low))/float64(high-low)
	}
	width, bottom := labelWidth+plotWidth+margin, top+lineHeight*len(rows)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="sans-serif" font-size="12">`+"\n", width, bottom+46)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/>`+"\n")
	fmt.Fprintf(&b, `<text x="%d" y="22" font-size="15" font-weight="bold">Speed, that of %s = 1: farther right is faster (threads: %d)</text>`+"\n", margin, ours, r.threads[len(r.threads)-1])
	at := margin
	for _, p := range r.peers {
		fmt.Fprintf(&b, `<circle cx="%d" cy="42" r="5" fill="%s"/><text x="%d" y="46">%s</text>`+"\n", at+5, colours[p], at+15, p)
		at += 40 + 8*len(p)
	}
	for p := low; p <= high; p++ {
		stroke := "#dee2e6"
		if p == 0 {
			stroke = "#495057"
		}
		fmt.Fprintf(&b, `<line x1="%[1]d" x2="%[1]d" y1="%[2]d" y2="%[3]d" stroke="%[4]s"/><text x="%[1]d" y="%[5]d" text-anchor="middle" fill="#495057">%[6]g×</text>`+"\n",
			int(x(math.Pow10(p))), top-8, bottom, stroke, bottom+16, math.Pow10(p))
	}
	for i, row := range rows {
		y := top + lineHeight*i + lineHeight/2
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`, labelWidth-12, y+4, row.Name)
		for _, p := range slices.Backward(r.peers) {
			if a := row.answers[p]; a.Seconds > 0 {
				speed := row.answers[ours].Seconds / a.Seconds
				fmt.Fprintf(&b, `<circle cx="%.1f" cy="%d" r="5" fill="%s" fill-opacity="0.85"><title>%s: %s</title></circle>`, x(speed), y, colours[p], p, duration(a.Seconds))
			}
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" fill="#868e96" font-size="11">%s</text>`+"\n</svg>\n", margin, bottom+36, html.EscapeString(r.machine))
	return b.String()
}
