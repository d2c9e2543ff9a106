package ports

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A LookViT is a vision transformer with few tokens and many tokens of high resolution (Koner et al.
// 2024). The few look at the many, and the many look back by the same scores.
type LookViT struct {
	toPatches    nn.Module
	posEmbedding *nn.Param // not used, as in the original
	layers       []lookLayer
	norm         nn.Module
	highresNorm  nn.Module
	toLogits     nn.Module
	patch        int
}

type lookLayer struct {
	attend      *lookAttention `nn:"0"`
	mlp         nn.Module      `nn:"1"`
	lookUp      *lookAttention `nn:"2"`
	lookBack    *lookAttention `nn:"3"`
	highresNorm nn.Module      `nn:"4"`
	highresMLP  nn.Module      `nn:"5"`
}

// A LookViTConfig has the settings of a [LookViT].
type LookViTConfig struct {
	Encoder                         // Hidden is of the few tokens
	Size, Patch, Classes        int // of images and patches, which are squares
	HighresPatch, HighresHidden int
	CrossHeads, CrossHeadWidth  int
	Kernel                      int // of the convolution of patches, odd
}

// NewLookViT returns the model of look_vit.
func NewLookViT(c LookViTConfig) *LookViT {
	sizes := []int{c.HighresPatch, c.HighresPatch}
	across := c.Size / c.HighresPatch
	v := &LookViT{
		toPatches: nn.Sequential(
			nn.Func("patches", func(x *tensor.Tensor) *tensor.Tensor { return patches(x, sizes).Transpose(0, 3, 1, 2) }),
			nn.Conv2D(c.Width, tensor.Both(c.Kernel), tensor.Conv{Padding: tensor.Both(c.Kernel / 2)}),
			nn.Func("Transpose(0, 2, 3, 1)", func(x *tensor.Tensor) *tensor.Tensor { return x.Transpose(0, 2, 3, 1) }),
			newUnitNorm(c.Width)),
		posEmbedding: weights(1, across*across, c.Width),
		norm:         newUnitNorm(c.Width),
		highresNorm:  newUnitNorm(c.Width),
		toLogits:     bare(c.Classes),
		patch:        c.Patch,
	}
	for range c.Depth {
		v.layers = append(v.layers, lookLayer{
			attend:      newLookAttention(c.Width, c.Heads, c.HeadWidth, c.Dropout, false, false),
			mlp:         mlp(newUnitNorm(c.Width), c.Hidden, c.Width, c.Dropout),
			lookUp:      newLookAttention(c.Width, c.CrossHeads, c.CrossHeadWidth, c.Dropout, true, false),
			lookBack:    newLookAttention(c.Width, c.CrossHeads, c.CrossHeadWidth, c.Dropout, true, true),
			highresNorm: newUnitNorm(c.Width),
			highresMLP:  mlp(newUnitNorm(c.Width), c.HighresHidden, c.Width, c.Dropout),
		})
	}
	return v
}

// Forward returns scores [N classes] of images [N C size size].
func (v *LookViT) Forward(x *tensor.Tensor) *tensor.Tensor {
	few := x.Dim(-1) / v.patch
	fine := v.toPatches.Forward(x)
	rows, columns, width := fine.Dim(1), fine.Dim(2), fine.Dim(3)
	fine = fine.Add(sincos(rows, columns, width, fine).Reshape(rows, columns, width))
	tokens := sequence(fine.Transpose(0, 3, 1, 2).Interpolate(tensor.Bilinear, few, few).Transpose(0, 2, 3, 1))
	fine = sequence(fine)
	for _, l := range v.layers {
		found, scores := l.lookUp.look(tokens, fine, nil)
		tokens = found.Add(tokens)
		found, _ = l.attend.look(tokens, nil, nil)
		tokens = found.Add(tokens)
		tokens = l.mlp.Forward(tokens).Add(tokens)

		found, _ = l.lookBack.look(fine, tokens, scores.Transpose(0, 1, 3, 2))
		fine = l.highresNorm.Forward(found.Add(fine))
		fine = l.highresMLP.Forward(fine).Add(fine)
	}
	return v.toLogits.Forward(v.norm.Forward(tokens).Mean(1).Add(v.highresNorm.Forward(fine).Mean(1)))
}

// Params implements [nn.Module].
func (v *LookViT) Params() []*nn.Param { return nn.Params(v) }

// A unitNorm is a LayerNorm without bias whose gain is 1 more than its parameter.
type unitNorm struct{ gamma *nn.Param }

func newUnitNorm(width int) nn.Module { return &unitNorm{nn.NewParam(tensor.Zeros(width))} }

func (n *unitNorm) Forward(x *tensor.Tensor) *tensor.Tensor {
	return x.LayerNorm(-1, 1e-5, n.gamma.Value().AddScalar(1))
}
func (n *unitNorm) Params() []*nn.Param { return nn.Params(n) }

// A lookAttention may take its scores from another, and then has neither a norm nor queries and keys.
type lookAttention struct {
	norm, normContext, toQ, toK nn.Module // nil where there is none
	toV, toOut, dropout         nn.Module
	heads                       int
}

func newLookAttention(width, heads, headWidth int, dropout float64, isCross, isReused bool) *lookAttention {
	a := &lookAttention{toV: bare(heads * headWidth), dropout: nn.Dropout(dropout), heads: heads}
	a.toOut = nn.Sequential(nn.Func("together", together), bare(width), nn.Dropout(dropout))
	if isCross {
		a.normContext = newUnitNorm(width)
	}
	if !isReused {
		a.norm, a.toQ, a.toK = newUnitNorm(width), bare(heads*headWidth), bare(heads*headWidth)
	}
	return a
}

// look returns what positions of x find in the context, in x itself if that is nil, and the scores.
func (a *lookAttention) look(x, context, scores *tensor.Tensor) (y, used *tensor.Tensor) {
	if a.norm != nil {
		x = a.norm.Forward(x)
	}
	if context == nil {
		context = x
	} else {
		context = a.normContext.Forward(context)
	}
	if scores == nil {
		q, k := apart(a.toQ.Forward(x), a.heads), apart(a.toK.Forward(context), a.heads)
		scores = products(q, k)
	}
	v := apart(a.toV.Forward(context), a.heads)
	return a.toOut.Forward(a.dropout.Forward(scores.Softmax(-1)).MatMul(v)), scores
}
