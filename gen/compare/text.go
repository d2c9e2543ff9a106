package compare

import (
	"bufio"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// shownStderr is how many lines of each program's standard error are shown.
const shownStderr = 12

// shownResults is from how many bytes on the memory of results is told, which is a part of the rest
// where the device has none of its own.
const shownResults = 32 << 20

// WriteText writes the result for people: what was rewritten, and for each device a table with
// absolute figures, the ratios beside them. What does not print, in names or in what the programs
// print, is shown as in string literals of Go.
func (r *Result) WriteText(w io.Writer) error {
	var text strings.Builder
	b := bufio.NewWriter(&text)
	fmt.Fprintln(b, r.program())
	fmt.Fprintf(b, "%s; median time of %s\n", r.Machine, plural(r.Count, "run"))
	writeList(b, "\nrewritten:", r.Rewritten)
	writeList(b, "\nnot rewritten:", r.Refused)
	for _, d := range r.Devices {
		d.writeText(b)
	}
	fmt.Fprintf(b, "\n%s\n", r.verdict())
	b.Flush() // a Builder takes all
	_, err := io.WriteString(w, tensorapi.VisibleLines(text.String()))
	return err
}

func (r *Result) verdict() string {
	if r.Same() {
		return "identical: same output and same end, as written and rewritten"
	}
	return "DIFFERENT: the rewritten program does not do the same"
}

// program is the package and the program's arguments.
func (r *Result) program() string {
	name := r.Package
	if r.Bench != "" {
		name += " -bench " + r.Bench
	}
	return strings.Join(append([]string{name}, r.Args...), " ")
}

func writeList(b *bufio.Writer, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintln(b, title)
	for _, line := range lines {
		fmt.Fprintf(b, "  %s\n", strings.ReplaceAll(line, "\n", "\n  "))
	}
}

func (d *Device) writeText(b *bufio.Writer) {
	fmt.Fprintf(b, "\n%s\n", d.title())
	rows := d.rows()
	width := 12
	for _, r := range rows {
		width = max(width, len(r.Label))
	}
	for _, r := range rows {
		line := fmt.Sprintf("  %-*s %20s %20s   %s", width, r.Label, r.Original, r.Rewritten, r.Remark)
		fmt.Fprintln(b, strings.TrimRight(line, " "))
	}
	for _, diff := range d.Differences {
		diff.writeText(b)
	}
	for _, note := range d.Notes {
		fmt.Fprintf(b, "  %s\n", note)
	}
	writeStderr(b, "stderr, as written:", d.Original.Stderr)
	writeStderr(b, "stderr, rewritten:", d.Rewritten.Stderr)
}

func (d *Device) title() string {
	switch {
	case d.Virtual:
		return d.Name + " (simulated, in virtual time)"
	case d.Simulated:
		return d.Name + " (simulated)"
	}
	return d.Name
}

// A row is a line of the table of a device.
type row struct{ Label, Original, Rewritten, Remark string }

// rows is the table of d. There is none if the programs differ: then their
// times have nothing to do with each other.
func (d *Device) rows() []row {
	if len(d.Differences) > 0 {
		return nil
	}
	o, w := &d.Original, &d.Rewritten
	rows := []row{
		{"", "as written", "rewritten", ""},
		{"time", duration(o.Time()), duration(w.Time()), speed(o.Time(), w.Time())},
		{"waits", events(o.Sync.Waits, o.Sync.WaitNS), events(w.Sync.Waits, w.Sync.WaitNS), fewer(o.Sync.Waits, w.Sync.Waits)},
		{"stalls", events(o.Sync.Stalls, o.Sync.StallNS), events(w.Sync.Stalls, w.Sync.StallNS), ""},
		{"helping", events(o.Sync.Helps, o.Sync.HelpNS), events(w.Sync.Helps, w.Sync.HelpNS), "operations executed meanwhile"},
		{"blocked", duration(o.blocked()), duration(w.blocked()), "all of these"},
	}
	if o.Sync.IdleNS > 0 || w.Sync.IdleNS > 0 {
		rows = append(rows, row{"idle", d.share(o.Sync.IdleNS, o.Time()), d.share(w.Sync.IdleNS, w.Time()), "the device had nothing to compute while the program waited"})
	}
	for _, b := range d.Benchmarks {
		was, is := median(b.Original), median(b.Rewritten)
		rows = append(rows, row{b.Name, duration(was), duration(is), speed(was, is)})
	}
	if o.Peak > 0 {
		rows = append(rows, row{"peak memory", megabytes(o.Peak), megabytes(w.Peak), ""})
	}
	if most := max(o.Sync.PeakBytes, w.Sync.PeakBytes); most >= shownResults {
		rows = append(rows, row{"of results", megabytes(o.Sync.PeakBytes), megabytes(w.Sync.PeakBytes), "on all devices"})
	}
	return append(rows,
		row{"stdout", plural(d.Lines, "line"), "identical", ""},
		row{"end", o.Status, "identical", ""})
}

func (diff *Difference) writeText(b *bufio.Writer) {
	if diff.What != "stdout" {
		fmt.Fprintf(b, "  %s differs:\n    as written: %s\n    rewritten:  %s\n", diff.What, orNone(diff.Want), orNone(diff.Got))
		return
	}
	fmt.Fprintf(b, "  stdout differs in %s:\n", plural(diff.Total, "line"))
	for _, l := range diff.Lines {
		fmt.Fprintf(b, "    %s\n", strings.ReplaceAll(l.String(), "\n", "\n    "))
	}
	if more := diff.Total - len(diff.Lines); more > 0 {
		fmt.Fprintf(b, "    … and %d more\n", more)
	}
}

// String shows both sides of the line.
func (l LineDiff) String() string {
	side := func(s *string) string {
		if s == nil {
			return "(the output has ended)"
		}
		return strconv.Quote(*s)
	}
	return fmt.Sprintf("line %d: %s\n%*s %s", l.Line, side(l.Want), len(fmt.Sprintf("line %d:", l.Line)), "not", side(l.Got))
}

func writeStderr(b *bufio.Writer, title, text string) {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return
	}
	fmt.Fprintf(b, "  %s\n", title)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if i == shownStderr {
			fmt.Fprintf(b, "    … and %d more lines\n", len(lines)-i)
			return
		}
		fmt.Fprintf(b, "    %s\n", line)
	}
}

func orNone(s string) string {
	if s == "" {
		return "(nothing)"
	}
	return s
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return grouped(int64(n)) + " " + what + "s"
}

// events is how often something happened, and how long it took in all.
func events(n, ns int64) string {
	if n == 0 {
		return "0"
	}
	return grouped(n) + " in " + duration(time.Duration(ns))
}

// share is how long something took, and how much of all that is, if both are by one clock.
func (d *Device) share(ns int64, all time.Duration) string {
	if all == 0 || ns == 0 || d.Virtual {
		return duration(time.Duration(ns))
	}
	return fmt.Sprintf("%s, %.0f %%", duration(time.Duration(ns)), 100*float64(ns)/float64(all))
}

// grouped is n with a comma every three digits.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// duration is d with three digits or so.
func duration(d time.Duration) string {
	switch {
	case d == 0:
		return "0 s"
	case d < time.Millisecond:
		return fmt.Sprintf("%.3g µs", float64(d)/1e3)
	case d < time.Second:
		return fmt.Sprintf("%.3g ms", float64(d)/1e6)
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// speed says how the time of the rewritten program relates to the original's.
func speed(original, rewritten time.Duration) string {
	if original == 0 || rewritten == 0 {
		return ""
	}
	if rewritten <= original {
		return fmt.Sprintf("%.2fx as fast", float64(original)/float64(rewritten))
	}
	return fmt.Sprintf("%.2fx as long", float64(rewritten)/float64(original))
}

func fewer(original, rewritten int64) string {
	if original <= rewritten || rewritten == 0 {
		return ""
	}
	return fmt.Sprintf("%.1fx fewer", float64(original)/float64(rewritten))
}

// machine names where the figures were measured.
func machine() string {
	return fmt.Sprintf("%s/%s, %s, %s", runtime.GOOS, runtime.GOARCH, plural(runtime.NumCPU(), "CPU"), runtime.Version())
}
