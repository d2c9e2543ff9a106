package tensorapi

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible is s as messages show it, on one line. Characters that do not print are written as in a
// string literal of Go: escape sequences of terminals, ends of lines, marks that turn the direction
// of text. Names of files may have such characters.
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
