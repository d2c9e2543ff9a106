package ports

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A SimpleViT is a vision transformer without dropout and without a token for the class (Beyer et al. 2022).
// Its attention never has all weights in memory (Dao et al. 2022).
type SimpleViT struct {
	toPatchEmbedding nn.Module
	transformer      *transformer
	linearHead       nn.Module
}

// NewSimpleViT returns the model of simple_flash_attn_vit.
func NewSimpleViT(e Encoder, patch, classes int) *SimpleViT {
	v := &SimpleViT{
		toPatchEmbedding: patchEmbedding([]int{patch, patch}, e.Width),
		transformer:      &transformer{},
		linearHead:       nn.Sequential(nn.LayerNorm(), nn.Dense(classes)),
	}
	for range e.Depth {
		v.transformer.layers = append(v.transformer.layers, layer{newPlainAttention(e), &feedForward{plainFeedForward(e)}})
	}
	return v
}

// Forward returns scores [N classes] of images [N C H W].
func (v *SimpleViT) Forward(x *tensor.Tensor) *tensor.Tensor {
	x = v.toPatchEmbedding.Forward(x)
	x = sequence(x).Add(sincos(x.Dim(1), x.Dim(2), x.Dim(3), x))
	return v.linearHead.Forward(v.transformer.Forward(x).Mean(1))
}

// Params implements [nn.Module].
func (v *SimpleViT) Params() []*nn.Param { return nn.Params(v) }
