package ports

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A SimMIM trains a vision transformer to tell the elements of patches that it does not see (Xie et al. 2022).
type SimMIM struct {
	encoder   *ViT
	maskToken *nn.Param
	toPixels  nn.Module
	sizes     []int
	masked    float64
}

// NewSimMIM returns a SimMIM. encoder was made with the settings c, for images with the given number of
// channels. masked is the share of the patches that the encoder does not see.
func NewSimMIM(encoder *ViT, c ViTConfig, channels int, masked float64) *SimMIM {
	pixels := channels
	for _, size := range c.Patches {
		pixels *= size
	}
	return &SimMIM{encoder, weights(1, c.Width), nn.Dense(pixels), c.Patches, masked}
}

// Loss returns the loss of images [N C H W] with random patches masked.
func (m *SimMIM) Loss(x *tensor.Tensor) *tensor.Tensor {
	cut := sequence(patches(x, m.sizes))
	return m.lossOf(x, tensor.Rand(cut.Dim(0), cut.Dim(1)).To(x.Device()))
}

// lossOf masks the patches with the greatest numbers of noise [N T].
func (m *SimMIM) lossOf(x, noise *tensor.Tensor) *tensor.Tensor {
	cut := sequence(patches(x, m.sizes))
	tokens := sequence(m.encoder.toPatchEmbedding.Forward(x))
	n, t, width := tokens.Dim(0), tokens.Dim(1), tokens.Dim(2)
	positions := m.encoder.posEmbedding.Value().Slice(-2, 1, t+1)
	count := int(m.masked * float64(t))
	_, masked := noise.TopK(count, 1, tensor.Descending)

	isMasked := tensor.ZerosLike(noise).Scatter(1, masked, tensor.OnesLike(masked).As(noise.DType())).GtScalar(0)
	tokens = tensor.Where(isMasked.Unsqueeze(2), m.maskToken.Value().BroadcastTo(n, t, width), tokens).Add(positions)
	encoded := m.encoder.transformer.Forward(tokens)
	found := m.toPixels.Forward(encoded.TakeAlong(1, masked.Unsqueeze(2)))
	return nn.L1Loss(found, cut.TakeAlong(1, masked.Unsqueeze(2))).DivScalar(float64(count))
}

// Params returns the parameters.
func (m *SimMIM) Params() []*nn.Param { return nn.Params(m) }
