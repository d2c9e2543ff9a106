package compare

import (
	"bytes"
	"regexp"

	"github.com/asyncgen/asyncgen/device/report"
)

// A LineDiff is a line at which two outputs differ: the first of them has Want,
// the second Got. The text of an output that has ended before is nil.
type LineDiff struct {
	Line int     `json:"line"` // from 1
	Want *string `json:"want"`
	Got  *string `json:"got"`
}

// maskedBy is what stands for masked text, chosen so that it shows.
const maskedBy = "…"

// masked returns a copy of out with maskedBy in place of each match of a mask within a line.
func masked(out []byte, masks []*regexp.Regexp) []byte {
	if len(masks) == 0 {
		return out
	}
	var result []byte
	for line := range bytes.Lines(out) {
		text, hasNewline := bytes.CutSuffix(line, []byte{'\n'})
		for _, m := range masks {
			text = m.ReplaceAllLiteral(text, []byte(maskedBy))
		}
		result = append(result, text...)
		if hasNewline {
			result = append(result, '\n')
		}
	}
	return result
}

// diffLines compares two outputs line by line, and returns the first differences, at most
// limit of them, and how many there are. A missing newline at the end counts.
func diffLines(want, got []byte, limit int) (diffs []LineDiff, total int) {
	if bytes.Equal(want, got) {
		return nil, 0
	}
	w, g := bytes.SplitAfter(want, []byte{'\n'}), bytes.SplitAfter(got, []byte{'\n'})
	at := func(lines [][]byte, i int) *string {
		if i >= len(lines) || len(lines[i]) == 0 {
			return nil
		}
		s := string(lines[i])
		return &s
	}
	for i := range max(len(w), len(g)) {
		a, b := at(w, i), at(g, i)
		if a == nil && b == nil || a != nil && b != nil && *a == *b {
			continue
		}
		total++
		if len(diffs) < limit {
			diffs = append(diffs, LineDiff{i + 1, a, b})
		}
	}
	return diffs, total
}

// failure returns the line of a program's standard error that says why the Go
// runtime ended it, or "". Addresses in it, where an operation failed, and the goroutines that follow
// it, differ between two programs by nature and are left out.
func failure(stderr []byte) string {
	for line := range bytes.Lines(stderr) {
		if bytes.HasPrefix(line, []byte("panic: ")) || bytes.HasPrefix(line, []byte("fatal error: ")) {
			line = bytes.TrimSuffix(line, []byte{'\n'})
			line = where.ReplaceAll(line, []byte(maskedBy))
			return string(address.ReplaceAll(line, []byte("0x"+maskedBy)))
		}
	}
	return ""
}

// where matches the part of an error that names the operation and the line that enqueued it. These
// differ: the two programs have lines of their own, and one may compute in one operation what the
// other does in several.
var where = regexp.MustCompile(report.Where)

var address = regexp.MustCompile("0x[0-9a-f]+")
