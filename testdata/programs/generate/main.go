// Command generate writes text with a small transformer, character by
// character: the likeliest next one is printed at once, and is what the model
// sees next, until it is the one that ends a text.
//
// The weights are random, so the text is no better than that. Results go to
// standard output, times to standard error.
//
//	go run ./testdata/programs/generate [-small]
package main

import (
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// alphabet is the characters that the model knows; the last one ends a text.
const alphabet = "abcdefghijklmnopqrstuvwxyz ,.'-\n"

const stop = int64(len(alphabet) - 1)

func main() {
	small := flag.Bool("small", false, "short texts")
	flag.Parse()
	length := 120
	if *small {
		length = 24
	}

	tensor.Seed(2)
	m := newModel(32, 160)
	start := time.Now()
	characters := 0
	for _, prompt := range []string{"once upon a time", "the quick brown fox", "call me ishmael", "it was a dark night", "to be or not"} {
		fmt.Printf("%s|", prompt)
		n, likelihood := m.generate(os.Stdout, encode(prompt), length)
		fmt.Printf("| %d characters, log-likelihood %.3f\n", n, likelihood)
		characters += n
	}
	fmt.Fprintf(os.Stderr, "%d characters in %v\n", characters, time.Since(start).Round(time.Microsecond))
}

// A model is a transformer with one block and one head, which normalises after
// each of its two steps.
type model struct {
	width     int
	tokens    *tensor.Tensor // a row for each character
	positions *tensor.Tensor // a row for each place in the text
	query     *tensor.Tensor
	key       *tensor.Tensor
	value     *tensor.Tensor
	mix       *tensor.Tensor
	up, down  *tensor.Tensor // the perceptron after the attention
	scores    *tensor.Tensor // a column for each character
}

func newModel(width, places int) *model {
	weights := func(rows, columns int) *tensor.Tensor {
		return tensor.Randn(rows, columns).MulScalar(1 / math.Sqrt(float64(rows)))
	}
	return &model{
		width:     width,
		tokens:    tensor.Randn(len(alphabet), width),
		positions: tensor.Randn(places, width),
		query:     weights(width, width),
		key:       weights(width, width),
		value:     weights(width, width),
		mix:       weights(width, width),
		up:        weights(width, 4*width),
		down:      weights(4*width, width),
		scores:    weights(width, len(alphabet)),
	}
}

// generate writes what follows the prompt to out, limit characters at most or until
// the model ends the text, and returns how many there are and the logarithm of the chance
// of what was chosen.
func (m *model) generate(out io.Writer, prompt []int64, limit int) (int, float64) {
	x := m.tokens.Take(0, tensor.From(prompt, len(prompt))).Add(m.positions.Slice(0, 0, len(prompt)))
	keys, values := x.MatMul(m.key), x.MatMul(m.value)
	last := x.Row(len(prompt) - 1)

	n, likelihood := 0, 0.0
	for ; n < limit; n++ {
		scores := m.next(last, keys, values)
		token := scores.ArgMax().ItemInt()
		likelihood += scores.LogSoftmax(0).Max().Item()
		if token == stop {
			break
		}
		fmt.Fprint(out, alphabet[token:token+1])

		last = m.tokens.Row(int(token)).Add(m.positions.Row(len(prompt) + n))
		keys = tensor.Concat(0, keys, last.MatMul(m.key).Unsqueeze(0))
		values = tensor.Concat(0, values, last.MatMul(m.value).Unsqueeze(0))
	}
	return n, likelihood
}

// next returns a score for each character that can follow the one that was embedded
// as x; keys and values have a row for each up to it.
func (m *model) next(x, keys, values *tensor.Tensor) *tensor.Tensor {
	attention := keys.MatMul(x.MatMul(m.query)).MulScalar(1 / math.Sqrt(float64(m.width))).Softmax(0)
	x = normalise(x.Add(attention.MatMul(values).MatMul(m.mix)))
	x = normalise(x.Add(x.MatMul(m.up).GELU().MatMul(m.down)))
	return x.MatMul(m.scores)
}

// normalise gives x mean 0 and variance 1.
func normalise(x *tensor.Tensor) *tensor.Tensor {
	centered := x.Sub(x.Mean())
	variance := centered.Square().Mean()
	return centered.Div(variance.AddScalar(1e-5).Sqrt())
}

// encode returns the numbers of the characters of text.
func encode(text string) []int64 {
	tokens := make([]int64, len(text))
	for i := range text {
		tokens[i] = int64(strings.IndexByte(alphabet, text[i]))
	}
	return tokens
}
