// Package ports has models of other people's examples for PyTorch, written anew with this library: what
// a user has to write who brings a model along. Its tests compare results, losses, gradients and a step
// of training with those of the originals.
//
// Twelve files were drawn: the first of those that call PyTorch six times or more, shuffled by Python's
// random with the seed 20261125, without what is about distributed training or sparse matrices. From
// lucidrains/vit-pytorch are vit_1d, vit_3d, simple_uvit, vit_detpool, look_vit, na_vit_nested_tensor_3d,
// vit_nd_pope, cct, cvt, simmim and simple_flash_attn_vit; mnist is from pytorch/examples. A port has the
// settings of its original, and parameters of the same names. It is no part of the library: models are
// for reading and copying.
package ports

import (
	"math"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// An Encoder has the settings of a transformer.
type Encoder struct {
	Width     int // of a position
	Depth     int // layers
	Heads     int
	HeadWidth int
	Hidden    int     // width between the two layers of a feed-forward block
	Dropout   float64 // of weights of attention and in feed-forward blocks
}

// A transformer consists of layers and of a norm, unless it is nil.
type transformer struct {
	layers []layer
	norm   nn.Module
}

type layer struct {
	attention   *attention   `nn:"0"`
	feedForward *feedForward `nn:"1"`
}

func newTransformer(e Encoder, norm nn.Module) *transformer {
	t := &transformer{norm: norm}
	for range e.Depth {
		t.layers = append(t.layers, layer{newAttention(e), newFeedForward(e)})
	}
	return t
}

func (t *transformer) Forward(x *tensor.Tensor) *tensor.Tensor { return t.look(x, nil) }
func (t *transformer) Params() []*nn.Param                     { return nn.Params(t) }

// look is Forward with a mask, see that of an attention.
func (t *transformer) look(x, mask *tensor.Tensor) *tensor.Tensor {
	for _, l := range t.layers {
		x = x.Add(l.attention.look(x, mask))
		x = x.Add(l.feedForward.Forward(x))
	}
	if t.norm != nil {
		x = t.norm.Forward(x)
	}
	return x
}

type feedForward struct{ net nn.Module }

func newFeedForward(e Encoder) *feedForward {
	return &feedForward{mlp(nn.LayerNorm(), e.Hidden, e.Width, e.Dropout)}
}

func mlp(norm nn.Module, hidden, width int, dropout float64) nn.Module {
	return nn.Sequential(norm, nn.Dense(hidden), nn.GELU(), nn.Dropout(dropout), nn.Dense(width), nn.Dropout(dropout))
}

func (f *feedForward) Forward(x *tensor.Tensor) *tensor.Tensor { return f.net.Forward(x) }
func (f *feedForward) Params() []*nn.Param                     { return nn.Params(f) }

// An attention normalises positions [N T C] and lets them look at each other. One layer makes queries, keys and values.
type attention struct {
	norm, toQKV, toOut, dropout nn.Module
	heads                       int
}

func newAttention(e Encoder) *attention {
	a := &attention{
		norm: nn.LayerNorm(), toQKV: bare(3 * e.Heads * e.HeadWidth), toOut: nn.Sequential(),
		dropout: nn.Dropout(e.Dropout), heads: e.Heads,
	}
	if e.Heads != 1 || e.HeadWidth != e.Width {
		a.toOut = nn.Sequential(nn.Dense(e.Width), nn.Dropout(e.Dropout))
	}
	return a
}

func (a *attention) Forward(x *tensor.Tensor) *tensor.Tensor { return a.look(x, nil) }
func (a *attention) Params() []*nn.Param                     { return nn.Params(a) }

// look is Forward where only positions that mask has may be looked at. Mask is broadcast to [N heads T T], or nil.
func (a *attention) look(x, mask *tensor.Tensor) *tensor.Tensor {
	qkv := a.toQKV.Forward(a.norm.Forward(x)).Chunk(-1, 3)
	q, k, v := apart(qkv[0], a.heads), apart(qkv[1], a.heads), apart(qkv[2], a.heads)
	return a.toOut.Forward(together(found(q, k, v, mask, a.dropout)))
}

// found returns what queries [N heads T D] find, with dropout of the weights unless it is nil.
func found(q, k, v, mask *tensor.Tensor, dropout nn.Module) *tensor.Tensor {
	if dropout == nil {
		return tensor.Attention(q, k, v, tensor.AttentionOptions{Mask: mask})
	}
	scores := products(q, k)
	if mask != nil {
		scores = scores.MaskedFill(mask.Not(), -1e30)
	}
	return dropout.Forward(scores.Softmax(-1)).MatMul(v)
}

// products returns those of queries and keys, as [N heads T S], divided by the root of their width.
func products(q, k *tensor.Tensor) *tensor.Tensor {
	return q.MatMul(k.Transpose(0, 1, 3, 2)).MulScalar(1 / math.Sqrt(float64(q.Dim(-1))))
}

// apart returns [N T heads·D] as [N heads T D], together is its inverse.
func apart(x *tensor.Tensor, heads int) *tensor.Tensor {
	return x.Reshape(x.Dim(0), x.Dim(1), heads, x.Dim(2)/heads).Transpose(0, 2, 1, 3)
}

func together(x *tensor.Tensor) *tensor.Tensor {
	return x.Transpose(0, 2, 1, 3).Reshape(x.Dim(0), x.Dim(2), x.Dim(1)*x.Dim(3))
}

// bare is a dense layer without bias.
func bare(out int) nn.Module { return nn.Dense(out, nn.Init{NoBias: true}) }

// weights returns a parameter drawn from the normal distribution.
func weights(deviation float64, shape ...int) *nn.Param {
	return nn.NewParam(tensor.Randn(shape...).MulScalar(deviation))
}

// patches cuts images [N C ...], of any number of axes, into patches with the given sizes: [N, patches
// along each axis, size·...·C].
func patches(x *tensor.Tensor, sizes []int) *tensor.Tensor {
	cut, order, shape := []int{x.Dim(0), x.Dim(1)}, []int{0}, []int{x.Dim(0)}
	for i, size := range sizes {
		cut = append(cut, x.Dim(2+i)/size, size)
		order = append(order, 2+2*i)
		shape = append(shape, x.Dim(2+i)/size)
	}
	width := x.Dim(1)
	for i, size := range sizes {
		order = append(order, 3+2*i)
		width *= size
	}
	return x.Reshape(cut...).Transpose(append(order, 1)...).Reshape(append(shape, width)...)
}

// sequence returns [N ... C] as [N T C].
func sequence(x *tensor.Tensor) *tensor.Tensor {
	return x.Reshape(x.Dim(0), x.Size()/(x.Dim(0)*x.Dim(-1)), x.Dim(-1))
}

// patchEmbedding cuts images into patches and makes vectors of the given width of them, of shape [N ... width].
func patchEmbedding(sizes []int, width int) nn.Module {
	cut := nn.Func("patches", func(x *tensor.Tensor) *tensor.Tensor { return patches(x, sizes) })
	return nn.Sequential(cut, nn.LayerNorm(), nn.Dense(width), nn.LayerNorm())
}

// in returns x in the type and on the device of y.
func in(x, y *tensor.Tensor) *tensor.Tensor { return x.As(y.DType()).To(y.Device()) }
