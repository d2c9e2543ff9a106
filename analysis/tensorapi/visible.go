package tensorapi

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible is s as messages show it, on one line: what does not print, such as an escape sequence
// for terminals, the end of a line or a mark that turns the direction of text, is written as in a
// string literal of Go. Names of files may have such characters.
func Visible(s string) string { return visible(s, "") }

// VisibleLines is [Visible] for a text of several lines, which may have tabs.
func VisibleLines(s string) string { return visible(s, "\n\t") }

func visible(s, keep string) string {
	shows := func(r rune, size int) bool {
		return (r != utf8.RuneError || size > 1) && unicode.IsPrint(r) || strings.ContainsRune(keep, r)
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if shows(r, size) {
			b.WriteString(s[:size])
		} else {
			quoted := strconv.Quote(s[:size])
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		s = s[size:]
	}
	return b.String()
}
