package ports

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A DetPool is a vision transformer that attends to an object and pools its patches only.
type DetPool struct {
	toPatchEmbedding       nn.Module
	clsToken, posEmbedding *nn.Param // clsToken is nil if there is none
	dropout                nn.Module
	transformer            *transformer
	mlpHead                nn.Module // nil: the result is that of the transformer
	patch                  int
	find                   func(x *tensor.Tensor) *tensor.Tensor
}

// A DetPoolConfig has the settings of a [DetPool].
type DetPoolConfig struct {
	Encoder
	Size, Patch      int // of images and patches, which are squares
	Classes          int
	NoClassToken     bool
	EmbeddingDropout float64
	Find             func(x *tensor.Tensor) *tensor.Tensor // finds the object where none is given, nil: there is none
}

// NewDetPool returns the model of vit_detpool.
func NewDetPool(c DetPoolConfig) *DetPool {
	patches := c.Size / c.Patch * (c.Size / c.Patch)
	v := &DetPool{
		toPatchEmbedding: patchEmbedding([]int{c.Patch, c.Patch}, c.Width),
		posEmbedding:     weights(0.01, patches, c.Width),
		dropout:          nn.Dropout(c.EmbeddingDropout),
		transformer:      newTransformer(c.Encoder, nn.LayerNorm()),
		patch:            c.Patch, find: c.Find,
	}
	if !c.NoClassToken {
		v.clsToken = weights(0.01, c.Width)
	}
	if c.Classes > 0 {
		v.mlpHead = nn.Dense(c.Classes)
	}
	return v
}

// Forward returns scores [N classes] of images [N C H W]. Object is a bool tensor, [N H W] for each element
// or [N T] for each patch. Without it, nil, all patches count.
func (v *DetPool) Forward(x, object *tensor.Tensor) *tensor.Tensor {
	if object == nil && v.find != nil {
		object = v.find(x).Detach()
	}
	if object != nil && object.Rank() == 3 {
		object = patches(object.Unsqueeze(1), []int{v.patch, v.patch}).Any(-1)
	}
	x = sequence(v.toPatchEmbedding.Forward(x))
	n, t := x.Dim(0), x.Dim(1)
	x = x.Add(v.posEmbedding.Value().Slice(0, 0, t))
	if v.clsToken != nil {
		x = tensor.Concat(1, v.clsToken.Value().BroadcastTo(n, 1, x.Dim(2)), x)
	}
	var mask *tensor.Tensor
	if object != nil {
		object = object.Reshape(n, t)
		seen := object
		if v.clsToken != nil {
			seen = tensor.Concat(1, tensor.On(object.Device()).As(tensor.Bool).Ones(n, 1), object)
		}
		mask = seen.Reshape(n, 1, 1, x.Dim(1))
	}
	x = v.transformer.look(v.dropout.Forward(x), mask)
	if v.mlpHead == nil {
		return x
	}
	x = x.Slice(1, x.Dim(1)-t, x.Dim(1))
	if object == nil {
		return v.mlpHead.Forward(x.Mean(1))
	}
	counts := in(object, x).SumKeep(1)
	sum := x.MaskedFill(object.Unsqueeze(2).Not(), 0).Sum(1)
	return v.mlpHead.Forward(sum.Div(counts.Maximum(tensor.FullLike(counts, 1e-5))))
}

// Params returns the parameters.
func (v *DetPool) Params() []*nn.Param { return nn.Params(v) }
