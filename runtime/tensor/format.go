package tensor

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"

	"github.com/asyncgen/asyncgen/device/kernel"
)

// How tensors print: as arrays do in NumPy, but NaN and infinities as in Go.
const (
	elideAbove = 1000 // in larger tensors, the middle of long axes is elided
	edge       = 3    // how many elements are shown at either end of an elided axis
	lineWidth  = 75   // in bytes; longer rows are wrapped
)

// String returns the elements in nested brackets, aligned. If there are more than 1,000, it leaves out the middle
// of long axes. A tensor without axes is printed as Go prints its element. String waits. If t failed, it returns
// "<failed: ...>" with the error.
//
//asyncgen:api print
//go:noinline
func (t *Tensor) String() string { return t.text("String", element{}) }

// Format implements [fmt.Formatter]. It waits, except for %i. It never panics: a tensor that failed prints as its
// String.
//
//	%v %s   as String; with a width or a precision, each element has it
//	%.3f    each element formatted so, aligned; the same for other verbs, flags and precisions
//	%i      what is known without waiting: float32[2 3] on cpu
//
//asyncgen:api print
//go:noinline
func (t *Tensor) Format(s fmt.State, verb rune) {
	if verb == 'i' {
		fmt.Fprintf(s, "%v%v on %v", t.dtype, t.shape, t.Device())
		return
	}
	var e element
	_, hasWidth := s.Width()
	_, hasPrecision := s.Precision()
	if verb == 's' {
		verb = 'v' // numbers have no %s
	}
	if verb != 'v' || hasWidth || hasPrecision {
		e.format = fmt.FormatString(s, verb)
	}
	fmt.Fprint(s, t.text("Format", e))
}

// LogValue implements [slog.LogValuer]: the element of a tensor without axes
// as a number, others as String, nil as nil. It waits.
//
//asyncgen:api print
//go:noinline
func (t *Tensor) LogValue() slog.Value {
	if t == nil {
		return slog.Value{} // otherwise slog would log a panic
	}
	if len(t.shape) > 0 {
		return slog.StringValue(t.text("LogValue", element{}))
	}
	bits, err := t.load(context.Background(), "LogValue", t.off)
	if err != nil {
		return slog.StringValue(failure(err))
	}
	return slog.AnyValue(value(bits, t.dtype))
}

// An element says how to print one element.
type element struct {
	format string // for package fmt; empty: as short as possible
}

// failure returns what a tensor with the given error prints as.
func failure(err error) string {
	return "<failed: " + strings.TrimPrefix(err.Error(), "asyncgen: ") + ">"
}

// text returns what t prints as. name is the method that prints, for mistakes.
func (t *Tensor) text(name string, e element) string {
	h, err := t.onHost(context.Background(), name)
	defer t.doneWith(h)
	if err != nil {
		return failure(err)
	}
	p := printer{t: h, elided: t.size > elideAbove}
	p.strides = h.strides
	if p.strides == nil {
		p.strides = h.shape.Strides()
	}
	p.visit(0, h.off, func(at int) { p.bits = append(p.bits, h.element(at)) }, nil)
	switch {
	case e.format != "":
		p.words = alignRight(p.each(e.format))
	case len(t.shape) == 0:
		p.words = p.each("%v")
	case t.dtype.IsFloat():
		p.words = p.floats()
	default:
		p.words = alignRight(p.each("%v"))
	}
	return p.print()
}

// A printer prints one tensor.
type printer struct {
	t       *Tensor // ready, in host memory
	strides []int
	elided  bool
	bits    []uint64 // of the elements that are shown
	words   []string // what they print as
}

// visit calls each with the offset of every element that is shown. It calls between before every part of an axis
// but the first; skipped says that parts are left out there.
func (p *printer) visit(axis, at int, each func(at int), between func(axis int, skipped bool)) {
	if axis == len(p.t.shape) {
		each(at)
		return
	}
	n := p.t.shape[axis]
	isElided := p.elided && n > 2*edge
	for i := 0; i < n; i++ {
		skipped := isElided && i == edge
		if skipped {
			i = n - edge
		}
		if between != nil && i > 0 {
			between(axis, skipped)
		}
		p.visit(axis+1, at+i*p.strides[axis], each, between)
	}
}

// print puts the words between brackets.
func (p *printer) print() string {
	rank := len(p.t.shape)
	if p.t.size == 0 {
		return "[]"
	}
	var b strings.Builder
	b.WriteString(strings.Repeat("[", rank))
	column, next := rank, 0
	write := func(word string) {
		if column+1+len(word) > lineWidth-rank && column > rank { // leave room for the brackets
			b.WriteString("\n" + strings.Repeat(" ", rank))
			column = rank
		} else if column > rank {
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	p.visit(0, 0, func(int) {
		write(p.words[next])
		next++
	}, func(axis int, skipped bool) {
		closed := rank - 1 - axis // how many brackets close here and open again
		switch {
		case closed == 0 && skipped:
			write("...")
		case closed > 0:
			lines := strings.Repeat("\n", closed) + strings.Repeat(" ", axis+1)
			b.WriteString(strings.Repeat("]", closed) + lines)
			if skipped {
				b.WriteString("..." + lines)
			}
			b.WriteString(strings.Repeat("[", closed))
			column = rank
		}
	})
	b.WriteString(strings.Repeat("]", rank))
	return b.String()
}

// each formats the elements one by one.
func (p *printer) each(format string) []string {
	words := make([]string, len(p.bits))
	for i, bits := range p.bits {
		v := value(bits, p.t.dtype)
		if format == "%v" && p.t.dtype.IsFloat() && p.t.dtype.IsStorage() {
			v = p.decimal(bits)
		}
		words[i] = fmt.Sprintf(format, v)
	}
	return words
}

// decimal returns an element as a number to be printed. Package strconv knows the fewest digits that tell a float32 or
// a float64 from others of its type. Those of a float16 or bfloat16 are found here, and the result is the float64 that
// has the same digits.
func (p *printer) decimal(bits uint64) float64 {
	dt := p.t.dtype
	v := number(bits, dt)
	if !dt.IsStorage() || math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	for digits := 0; ; digits++ {
		if d, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', digits, 64), 64); err == nil && kernel.BitsOf(d, dt) == bits {
			return d
		}
	}
}

// size is that of the float that decimal returns, in bits.
func (p *printer) size() int {
	if p.t.dtype == Float32 {
		return 32
	}
	return 64
}

func alignRight(words []string) []string {
	width := 0
	for _, w := range words {
		width = max(width, len(w))
	}
	for i, w := range words {
		words[i] = strings.Repeat(" ", width-len(w)) + w
	}
	return words
}

// maxDigits is the greatest number of digits after the point.
const maxDigits = 8

// floats formats floating-point elements. All have an exponent if one is very large or small, or if they differ
// much in size; the limits are NumPy's. Otherwise their points are in one column, and each has only the digits that
// tell it from other numbers of its type.
func (p *printer) floats() []string {
	size := p.size()
	least, greatest := math.Inf(1), 0.0
	for _, bits := range p.bits {
		if v := math.Abs(number(bits, p.t.dtype)); v > 0 && !math.IsInf(v, 0) {
			least, greatest = min(least, v), max(greatest, v)
		}
	}
	if greatest >= 1e8 || greatest > 0 && (least < 1e-4 || greatest/least > 1000) {
		return alignRight(p.scientific(size))
	}
	words, fractions := make([]string, len(p.bits)), make([]int, len(p.bits))
	widest := 0
	for i, bits := range p.bits {
		v := p.decimal(bits)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			words[i], fractions[i] = fmt.Sprint(v), -1
			continue
		}
		words[i] = fixed(v, size)
		fractions[i] = len(words[i]) - 1 - strings.IndexByte(words[i], '.')
		widest = max(widest, fractions[i])
	}
	for i, n := range fractions {
		if n >= 0 {
			words[i] += strings.Repeat(" ", widest-n)
		}
	}
	return alignRight(words)
}

// fixed formats v with a point and the fewest digits after it that identify v, at most maxDigits. size is 32 or 64
// bits.
func fixed(v float64, size int) string {
	s := strconv.FormatFloat(v, 'f', -1, size)
	point := strings.IndexByte(s, '.')
	if point < 0 {
		return s + "."
	}
	if len(s)-1-point > maxDigits {
		s = strings.TrimRight(strconv.FormatFloat(v, 'f', maxDigits, size), "0")
	}
	return s
}

// scientific formats the elements with an exponent, all with equally many digits.
func (p *printer) scientific(size int) []string {
	digits := 0
	for _, bits := range p.bits {
		s := strconv.FormatFloat(p.decimal(bits), 'e', -1, size)
		if point, exponent := strings.IndexByte(s, '.'), strings.IndexByte(s, 'e'); point >= 0 && exponent > point {
			digits = max(digits, exponent-point-1)
		}
	}
	digits = min(digits, maxDigits)
	words := make([]string, len(p.bits))
	for i, bits := range p.bits {
		words[i] = strconv.FormatFloat(p.decimal(bits), 'e', digits, size)
		if digits == 0 {
			words[i] = strings.Replace(words[i], "e", ".e", 1)
		}
	}
	return words
}
