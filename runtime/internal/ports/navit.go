package ports

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A NaViT is a vision transformer of volumes of any sizes (Dehghani et al. 2023). The original packs
// volumes into tensors with rows of different lengths. Here each volume is a computation of its own,
// without padding, and the device runs several of them at the same time.
type NaViT struct {
	toPatchEmbedding                             nn.Module
	posEmbedFrame, posEmbedHeight, posEmbedWidth *nn.Param
	registerTokens                               *nn.Param
	dropout                                      nn.Module
	transformer                                  struct {
		layers []naLayer
		norm   nn.Module
	}
	attnPoolQueries *nn.Param
	attnPool        *naAttention
	mlpHead         nn.Module
	patches         []int
	tokenDropout    float64
	mode            nn.Mode
}

type naLayer struct {
	attend      *naAttention `nn:"0"`
	feedForward nn.Module    `nn:"1"`
}

// A NaViTConfig has the settings of a [NaViT].
type NaViTConfig struct {
	Encoder
	Frames, Size       int // of volumes at most
	FramePatch, Patch  int
	Classes, Registers int
	EmbeddingDropout   float64
	NoQueryNorm        bool
	TokenDropout       float64 // the part of the patches that are left out in training
}

// NewNaViT returns the model of na_vit_nested_tensor_3d.
func NewNaViT(c NaViTConfig) *NaViT {
	v := &NaViT{
		toPatchEmbedding: nn.Sequential(nn.LayerNorm(), nn.Dense(c.Width), nn.LayerNorm()),
		posEmbedFrame:    weights(0.02, c.Frames/c.FramePatch, c.Width),
		posEmbedHeight:   weights(0.02, c.Size/c.Patch, c.Width),
		posEmbedWidth:    weights(0.02, c.Size/c.Patch, c.Width),
		registerTokens:   weights(0.02, c.Registers, c.Width),
		dropout:          nn.Dropout(c.EmbeddingDropout),
		attnPoolQueries:  weights(1, c.Width),
		attnPool:         newNaAttention(Encoder{Width: c.Width, Heads: c.Heads, HeadWidth: c.HeadWidth}, true),
		mlpHead:          nn.Sequential(gainNorm(), bare(c.Classes)),
		patches:          []int{c.FramePatch, c.Patch, c.Patch},
		tokenDropout:     c.TokenDropout,
	}
	v.transformer.norm = gainNorm()
	for range c.Depth {
		v.transformer.layers = append(v.transformer.layers, naLayer{
			newNaAttention(c.Encoder, !c.NoQueryNorm),
			mlp(gainNorm(), c.Hidden, c.Width, c.Dropout),
		})
	}
	return v
}

// gainNorm is a LayerNorm without bias.
func gainNorm() nn.Module { return nn.LayerNorm(nn.Norm{NoBias: true}) }

// Forward returns scores [N classes] of N volumes [C frames H W].
func (v *NaViT) Forward(volumes []*tensor.Tensor) *tensor.Tensor {
	var pooled []*tensor.Tensor
	for _, x := range volumes {
		x = v.tokens(x)
		for _, l := range v.transformer.layers {
			x = l.attend.look(x, nil).Add(x)
			x = l.feedForward.Forward(x).Add(x)
		}
		query := v.attnPoolQueries.Value().Reshape(1, 1, x.Dim(2))
		pooled = append(pooled, v.attnPool.look(query, v.transformer.norm.Forward(x)).Squeeze(1))
	}
	return v.mlpHead.Forward(tensor.Concat(0, pooled...))
}

// tokens returns the registers and the patches of a volume that are kept, with their positions, as [1 T width].
func (v *NaViT) tokens(x *tensor.Tensor) *tensor.Tensor {
	channels := x.Dim(0)
	x = patches(x.Unsqueeze(0), v.patches)
	at := func(p *nn.Param, axis int) *tensor.Tensor { // the vectors of the positions along an axis
		shape := []int{1, 1, 1, p.Value().Dim(1)}
		shape[axis-1] = x.Dim(axis)
		return p.Value().Slice(0, 0, x.Dim(axis)).Reshape(shape...)
	}
	positions := at(v.posEmbedFrame, 1).Add(at(v.posEmbedHeight, 2)).Add(at(v.posEmbedWidth, 3))
	positions = positions.Reshape(positions.Size()/positions.Dim(3), positions.Dim(3))
	t, width := positions.Dim(0), x.Dim(4)
	x = x.Reshape(t, width/channels, channels).Transpose(0, 2, 1).Reshape(t, width) // channels come first here
	if v.mode.IsTraining() && v.tokenDropout > 0 {
		kept := tensor.Permutation(t).Slice(0, 0, max(1, int((1-v.tokenDropout)*float64(t)))).To(x.Device())
		x, positions = x.Take(0, kept), positions.Take(0, kept)
	}
	x = v.toPatchEmbedding.Forward(x).Add(positions)
	return v.dropout.Forward(tensor.Concat(0, v.registerTokens.Value(), x)).Unsqueeze(0)
}

// Params returns the parameters.
func (v *NaViT) Params() []*nn.Param { return nn.Params(v) }

// A naAttention normalises queries and keys (Henry et al. 2020), here by a LayerNorm.
type naAttention struct {
	norm, toQueries, toKeys, toValues nn.Module
	queryNorm, keyNorm                nn.Module
	dropout                           nn.Module
	toOut                             nn.Module
	heads                             int
}

func newNaAttention(e Encoder, isNormed bool) *naAttention {
	inner := e.Heads * e.HeadWidth
	a := &naAttention{
		norm: gainNorm(), toQueries: bare(inner), toKeys: bare(inner), toValues: bare(inner),
		queryNorm: nn.Sequential(), keyNorm: nn.Sequential(),
		dropout: nn.Dropout(e.Dropout), toOut: bare(e.Width), heads: e.Heads,
	}
	if isNormed {
		a.queryNorm, a.keyNorm = gainNorm(), gainNorm()
	}
	return a
}

// look returns what positions of x find in the context, which is not normalised, or in x if that is nil.
func (a *naAttention) look(x, context *tensor.Tensor) *tensor.Tensor {
	x = a.norm.Forward(x)
	if context == nil {
		context = x
	}
	q := a.queryNorm.Forward(apart(a.toQueries.Forward(x), a.heads))
	k := a.keyNorm.Forward(apart(a.toKeys.Forward(context), a.heads))
	v := apart(a.toValues.Forward(context), a.heads)
	return a.toOut.Forward(together(found(q, k, v, nil, a.dropout)))
}
