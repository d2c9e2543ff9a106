package data

import (
	"fmt"
	"slices"
	"strings"
)

// A TokenWindows is the [Dataset] of the windows of a text; see [Windows].
type TokenWindows[T uint8 | int32 | int64] struct {
	ids       []T
	n, stride int
}

// Windows returns the [Dataset] of windows of n tokens of a text, to train a model of language: an input is tokens, and
// its target is the tokens that follow each of them, both int64 of shape [n]. A window begins stride tokens after the
// one before; 0 stands for n. Tokens are numbers: bytes, or what a tokeniser makes, such as an [Alphabet]. Windows
// keeps ids, and the caller must not change them afterwards. It panics with a [tensor.Mistake] if n is less than 1, or
// stride negative.
//
//	set := data.Windows([]byte(text), 128, 0)
//
//asyncgen:api pure
func Windows[T uint8 | int32 | int64](ids []T, n, stride int) *TokenWindows[T] {
	if n < 1 || stride < 0 {
		wrong("Windows", "windows of %d tokens with a stride of %d", n, stride)
	}
	if stride == 0 {
		stride = n
	}
	return &TokenWindows[T]{ids, n, stride}
}

// Len returns the number of windows.
//
//asyncgen:api pure
func (w *TokenWindows[T]) Len() int {
	if len(w.ids) <= w.n {
		return 0
	}
	return (len(w.ids)-1-w.n)/w.stride + 1
}

// Shapes returns the shapes of one input and of one target.
//
//asyncgen:api pure
func (w *TokenWindows[T]) Shapes() (x, y []int) { return []int{w.n}, []int{w.n} }

// At writes window i to x, and to y the one a token later.
//
//asyncgen:api control
func (w *TokenWindows[T]) At(i int, x, y []int64) error {
	ids := w.ids[i*w.stride:]
	for j := range x {
		x[j], y[j] = int64(ids[j]), int64(ids[j+1])
	}
	return nil
}

// An Alphabet numbers characters.
type Alphabet struct {
	runes  []rune
	number map[rune]int64
}

// NewAlphabet returns the Alphabet of the characters in text, numbered in the order of Unicode.
//
//asyncgen:api pure
func NewAlphabet(text string) *Alphabet {
	a := &Alphabet{number: make(map[rune]int64)}
	for _, r := range text {
		if _, ok := a.number[r]; !ok {
			a.number[r] = 0
			a.runes = append(a.runes, r)
		}
	}
	slices.Sort(a.runes)
	for i, r := range a.runes {
		a.number[r] = int64(i)
	}
	return a
}

// Len returns the number of characters.
//
//asyncgen:api pure
func (a *Alphabet) Len() int { return len(a.runes) }

// Encode returns the numbers of the characters in text, or an error if one is not in the Alphabet. What is no UTF-8 is
// the character U+FFFD.
//
//asyncgen:api pure
func (a *Alphabet) Encode(text string) ([]int64, error) {
	ids := make([]int64, 0, len(text))
	for at, r := range text {
		id, ok := a.number[r]
		if !ok {
			return nil, fmt.Errorf("data: encode: %q at byte %d is not in the alphabet", r, at)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// Decode returns the characters that have the given numbers. It panics with a [tensor.Mistake] if there is none.
//
//asyncgen:api pure
func (a *Alphabet) Decode(ids []int64) string {
	var b strings.Builder
	for _, id := range ids {
		if id < 0 || id >= int64(len(a.runes)) {
			wrong("Decode", "there is no character %d: the alphabet has %d", id, len(a.runes))
		}
		b.WriteRune(a.runes[id])
	}
	return b.String()
}
