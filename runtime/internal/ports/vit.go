package ports

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A ViT is a vision transformer (Dosovitskiy et al. 2021) of images with any number of axes: a vector for
// the class goes before those of the patches.
type ViT struct {
	toPatchEmbedding       nn.Module
	posEmbedding, clsToken *nn.Param
	dropout                nn.Module
	transformer            *transformer
	mlpHead                nn.Module
	isMean                 bool
}

// A ViTConfig has the settings of a [ViT].
type ViTConfig struct {
	Encoder
	Sizes, Patches   []int // of images and patches along each axis
	Classes          int
	EmbeddingDropout float64
	Mean             bool // the class is read off the mean of all positions, not off the first
}

// NewViT returns the model of vit_3d and, with one axis, of vit_1d.
func NewViT(c ViTConfig) *ViT {
	positions := 1
	for i, size := range c.Sizes {
		positions *= size / c.Patches[i]
	}
	return &ViT{
		toPatchEmbedding: patchEmbedding(c.Patches, c.Width),
		posEmbedding:     weights(1, 1, positions+1, c.Width),
		clsToken:         weights(1, 1, 1, c.Width),
		dropout:          nn.Dropout(c.EmbeddingDropout),
		transformer:      newTransformer(c.Encoder, nil),
		mlpHead:          nn.Sequential(nn.LayerNorm(), nn.Dense(c.Classes)),
		isMean:           c.Mean,
	}
}

// NewEncoder returns the model of vit, which simmim trains.
func NewEncoder(c ViTConfig) *ViT {
	v := NewViT(c)
	v.clsToken = weights(1, 1, c.Width)
	v.transformer.norm = nn.LayerNorm()
	v.mlpHead = nn.Dense(c.Classes)
	return v
}

// Forward returns scores [N classes] of images [N C ...].
func (v *ViT) Forward(x *tensor.Tensor) *tensor.Tensor {
	x = sequence(v.toPatchEmbedding.Forward(x))
	x = tensor.Concat(1, v.clsToken.Value().BroadcastTo(x.Dim(0), 1, x.Dim(2)), x)
	x = v.dropout.Forward(x.Add(v.posEmbedding.Value().Slice(-2, 0, x.Dim(1))))
	x = v.transformer.Forward(x)
	if v.isMean {
		return v.mlpHead.Forward(x.Mean(1))
	}
	return v.mlpHead.Forward(x.Index(tensor.All(), tensor.At(0)))
}

// Params implements [nn.Module].
func (v *ViT) Params() []*nn.Param { return nn.Params(v) }
