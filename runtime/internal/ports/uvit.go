package ports

import (
	"math"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// sincos returns positions on a plane as vectors (Vaswani et al. 2017, along two axes), of shape
// [rows·columns width], in the type of like: sines and cosines of the column, then of the row.
func sincos(rows, columns, width int, like *tensor.Tensor) *tensor.Tensor {
	n := width / 4
	data := make([]float64, 0, rows*columns*width)
	for i := range rows * columns {
		for _, f := range []struct {
			of func(float64) float64
			at int
		}{{math.Sin, i % columns}, {math.Cos, i % columns}, {math.Sin, i / columns}, {math.Cos, i / columns}} {
			for j := range n {
				data = append(data, f.of(float64(f.at)*math.Pow(10000, -float64(j)/float64(n-1))))
			}
		}
	}
	return in(tensor.From(data, rows*columns, width), like)
}

// A SimpleUViT is a vision transformer with skips from the first half of its layers to the last (Bao et
// al. 2023) and with register tokens (Darcet et al. 2024).
type SimpleUViT struct {
	toPatchEmbedding nn.Module
	registerTokens   *nn.Param
	transformer      struct {
		norm   nn.Module
		layers []uLayer
	}
	linearHead nn.Module
}

type uLayer struct {
	combine     nn.Module `nn:"0"` // of layers that a skip goes to
	attend      nn.Module `nn:"1"`
	feedForward nn.Module `nn:"2"`
}

// NewSimpleUViT returns the model of simple_uvit.
func NewSimpleUViT(e Encoder, patch, classes, registers int) *SimpleUViT {
	v := &SimpleUViT{
		toPatchEmbedding: patchEmbedding([]int{patch, patch}, e.Width),
		registerTokens:   weights(1, registers, e.Width),
		linearHead:       nn.Dense(classes),
	}
	v.transformer.norm = nn.LayerNorm()
	for i := range e.Depth {
		l := uLayer{attend: newPlainAttention(e), feedForward: plainFeedForward(e)}
		if 2*i >= e.Depth {
			l.combine = nn.Dense(e.Width)
		}
		v.transformer.layers = append(v.transformer.layers, l)
	}
	return v
}

// newPlainAttention is attention whose last layer has no bias, without dropout.
func newPlainAttention(e Encoder) *attention {
	a := newAttention(e)
	a.toOut, a.dropout = bare(e.Width), nil
	return a
}

func plainFeedForward(e Encoder) nn.Module {
	return nn.Sequential(nn.LayerNorm(), nn.Dense(e.Hidden), nn.GELU(), nn.Dense(e.Width))
}

// Forward returns scores [N classes] of images [N C H W].
func (v *SimpleUViT) Forward(x *tensor.Tensor) *tensor.Tensor {
	x = v.toPatchEmbedding.Forward(x)
	rows, columns, width := x.Dim(1), x.Dim(2), x.Dim(3)
	x = sequence(x).Add(sincos(rows, columns, width, x))
	registers := v.registerTokens.Value()
	x = tensor.Concat(1, x, registers.BroadcastTo(x.Dim(0), registers.Dim(0), width))

	var skips []*tensor.Tensor
	layers := v.transformer.layers
	for i, l := range layers {
		if 2*(i+1) <= len(layers) {
			skips = append(skips, x)
		}
		if l.combine != nil {
			last := len(skips) - 1
			x = l.combine.Forward(tensor.Concat(-1, skips[last], x))
			skips = skips[:last]
		}
		x = x.Add(l.attend.Forward(x))
		x = x.Add(l.feedForward.Forward(x))
	}
	x = v.transformer.norm.Forward(x).Slice(1, 0, rows*columns)
	return v.linearHead.Forward(x.Mean(1))
}

// Params implements [nn.Module].
func (v *SimpleUViT) Params() []*nn.Param { return nn.Params(v) }
