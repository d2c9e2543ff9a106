// Package jsonfile reads settings from JSON files. Each mistake is reported with its line
// and with what was probably meant.
package jsonfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// A Reader goes through a file token by token, so that it knows where each
// stands.
type Reader struct {
	name string
	text []byte
	d    *json.Decoder
	// Last is where the thing of interest begins that Errorf speaks of, behind the
	// token before it.
	Last int64
	errs []error
	dead bool // the text is not JSON from here on
}

// NewReader reads text; errors call the file name.
func NewReader(name string, text []byte) *Reader {
	return &Reader{name: name, text: text, d: json.NewDecoder(bytes.NewReader(text))}
}

// Errorf notes a mistake at Last.
func (r *Reader) Errorf(format string, args ...any) {
	r.ErrorAt(r.Last, format, args...)
}

// ErrorAt notes a mistake behind the token that ends at offset.
func (r *Reader) ErrorAt(offset int64, format string, args ...any) {
	if r.dead {
		return
	}
	at := int(offset)
	for at < len(r.text) && strings.IndexByte(" \t\r\n,:", r.text[at]) >= 0 {
		at++
	}
	line := 1 + bytes.Count(r.text[:at], []byte("\n"))
	column := at - bytes.LastIndexByte(r.text[:at], '\n')
	r.errs = append(r.errs, fmt.Errorf("%s:%d:%d: %s", r.name, line, column, fmt.Sprintf(format, args...)))
}

// Add notes the mistakes that another reader has found.
func (r *Reader) Add(err error) { r.errs = append(r.errs, err) }

// Err is what is wrong, with a line for each mistake, or nil.
func (r *Reader) Err() error { return errors.Join(r.errs...) }

// Offset is where the last token ends.
func (r *Reader) Offset() int64 { return r.d.InputOffset() }

// Point makes the next value the thing of interest.
func (r *Reader) Point() { r.Last = r.Offset() }

// Token returns the next token.
func (r *Reader) Token() json.Token {
	r.Point()
	tok, err := r.d.Token()
	if err != nil {
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
			r.Last = max(0, syntax.Offset-1)
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		r.Errorf("%s", strings.TrimPrefix(err.Error(), "json: "))
		r.dead = true
	}
	return tok
}

// Next is the first byte of the next value.
func (r *Reader) Next() byte {
	rest := bytes.TrimLeft(r.text[r.Offset():], " \t\r\n,:")
	if len(rest) == 0 {
		return 0
	}
	return rest[0]
}

// More reports whether there is another element of the list or object.
func (r *Reader) More() bool { return !r.dead && r.d.More() }

// Skip passes over a value.
func (r *Reader) Skip() {
	depth := 0
	for !r.dead {
		switch r.Token() {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return
		}
	}
}

// Object calls each for the keys of an object; each reads the value.
func (r *Reader) Object(what string, each func(key string)) {
	if r.Next() != '{' {
		at := r.Offset()
		r.Skip() // if it is not even JSON, that is the mistake
		r.ErrorAt(at, "%s is an object", what)
		return
	}
	r.Token()
	seen := make(map[string]bool)
	for r.More() {
		key, _ := r.Token().(string)
		if r.dead {
			return
		}
		if seen[key] {
			r.Errorf("%q is there twice", key)
		}
		seen[key] = true
		each(key)
	}
	if !r.dead {
		r.Token()
	}
}

// Array calls each for the elements of an array; each reads one.
func (r *Reader) Array(what string, each func()) {
	if r.Next() != '[' {
		at := r.Offset()
		r.Skip() // if it is not even JSON, that is the mistake
		r.ErrorAt(at, "%s is a list", what)
		return
	}
	r.Token()
	for r.More() {
		each()
	}
	if !r.dead {
		r.Token()
	}
}

// String reads a string; what it is, if it is one.
func (r *Reader) String(what string) (string, bool) {
	if r.Next() != '"' {
		r.Point()
		r.Errorf("want %s, a string", what)
		r.Skip()
		return "", false
	}
	s, ok := r.Token().(string)
	return s, ok
}

// Bool reads true or false, the value of a key.
func (r *Reader) Bool(key string) bool {
	if c := r.Next(); c != 't' && c != 'f' {
		r.Point()
		r.Errorf("%q is true or false", key)
		r.Skip()
		return false
	}
	v, _ := r.Token().(bool)
	return v
}

// End notes a mistake if there is more in the file.
func (r *Reader) End() {
	if r.dead {
		return
	}
	r.Point()
	if _, err := r.d.Token(); err != io.EOF {
		r.Errorf("there is something after the end")
	}
}

// DidYouMean proposes the known word nearest to one that is not, if one is near:
// "; did you mean "read"?".
func DidYouMean(word string, known []string) string {
	best, least := "", max(2, len(word)/2)+1
	for _, k := range known {
		n := distance(strings.ToLower(word), strings.ToLower(k))
		if len(word) > 2 && strings.HasPrefix(k, strings.ToLower(word)) {
			n = 1 // cut short
		}
		if n < least {
			best, least = k, n
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// distance is the edit distance of two words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal, row[j+1] = row[j+1], min(row[j]+1, row[j+1]+1, change)
		}
	}
	return row[len(b)]
}
