package fuzz

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Format prints the elements as the library documents it for tensors of up to 1,000 elements:
// numbers in columns, points below each other, no more digits
// than it takes; see tensor.Tensor.Format.
func (v *value) Format(s fmt.State, verb rune) {
	if v == nil {
		panic("value method Format called using nil *Tensor pointer")
	}
	if v.failed != "" {
		fmt.Fprintf(s, "<failed: %s>", v.failed)
		return
	}
	_, hasPrecision := s.Precision()
	_, hasWidth := s.Width()
	words := make([]string, size(v.shape))
	switch {
	case verb != 'v' && verb != 's' || hasPrecision || hasWidth:
		if verb == 's' {
			verb = 'v'
		}
		for i := range words {
			words[i] = fmt.Sprintf(fmt.FormatString(s, verb), v.element(i))
		}
	case len(v.shape) == 0 || !v.dtype.isFloat():
		for i := range words {
			words[i] = fmt.Sprint(v.element(i))
		}
	default:
		words = v.columns()
	}
	width := 0
	for _, w := range words {
		width = max(width, len(w))
	}
	for i, w := range words {
		words[i] = fmt.Sprintf("%*s", width, w)
	}
	fmt.Fprint(s, bracketed(words, v.shape, 1))
}

// bracketed puts words into nested brackets, as NumPy does.
func bracketed(words []string, shape []int, indent int) string {
	if len(shape) == 0 {
		return words[0]
	}
	if len(shape) == 1 {
		return "[" + folded(words, indent) + "]"
	}
	var rows []string
	each := len(words) / shape[0]
	for i := range shape[0] {
		rows = append(rows, bracketed(words[i*each:(i+1)*each], shape[1:], indent+1))
	}
	return "[" + strings.Join(rows, "\n"+strings.Repeat(" ", indent)) + "]"
}

// folded puts words into lines of 75 bytes, of which all brackets around them take one each at both ends.
func folded(words []string, brackets int) string {
	if len(words) == 0 {
		return ""
	}
	text, line := words[0], brackets+len(words[0])
	for _, w := range words[1:] {
		if line+1+len(w) > 75-brackets {
			text, line = text+"\n"+strings.Repeat(" ", brackets)+w, brackets+len(w)
			continue
		}
		text, line = text+" "+w, line+1+len(w)
	}
	return text
}

// element is the i-th element as the Go value that it is.
func (v *value) element(i int) any {
	switch v.dtype {
	case f32:
		return float32(v.floats[i])
	case f64:
		return v.floats[i]
	case i64:
		return v.ints[i]
	}
	return v.floats[i] != 0
}

// columns formats floats: with exponents if one is at least 1e8 or
// some are small (below 1e-4) or they are more than a thousandfold apart, and
// with as many digits as tell each apart, eight at most.
func (v *value) columns() []string {
	bits := 64
	if v.dtype == f32 {
		bits = 32
	}
	low, high := math.MaxFloat64, 0.0
	for _, x := range v.floats {
		if x = math.Abs(x); x != 0 && x <= math.MaxFloat64 {
			low, high = math.Min(low, x), math.Max(high, x)
		}
	}
	words := make([]string, len(v.floats))
	if high >= 1e8 || high > 0 && (low < 1e-4 || high/low > 1000) {
		digits := 0
		for _, x := range v.floats {
			mantissa, _, ok := strings.Cut(strconv.FormatFloat(x, 'e', -1, bits), "e")
			if _, behind, found := strings.Cut(mantissa, "."); ok && found {
				digits = max(digits, min(len(behind), 8))
			}
		}
		for i, x := range v.floats {
			words[i] = strconv.FormatFloat(x, 'e', digits, bits)
			if digits == 0 && x-x == 0 {
				words[i] = strings.Replace(words[i], "e", ".e", 1)
			}
		}
		return words
	}
	behind := 0
	for i, x := range v.floats {
		if x-x != 0 {
			words[i] = fmt.Sprint(x)
			continue
		}
		words[i] = strconv.FormatFloat(x, 'f', -1, bits)
		if whole, fraction, ok := strings.Cut(words[i], "."); !ok {
			words[i] = whole + "."
		} else if len(fraction) > 8 {
			words[i] = strings.TrimRight(strconv.FormatFloat(x, 'f', 8, bits), "0")
		}
		behind = max(behind, len(words[i])-1-strings.Index(words[i], "."))
	}
	for i, w := range words {
		if at := strings.Index(w, "."); at >= 0 {
			words[i] = w + strings.Repeat(" ", behind-(len(w)-1-at))
		}
	}
	return words
}
