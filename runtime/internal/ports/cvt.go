package ports

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A CvT is a transformer whose tokens are images at all times, made smaller from stage to stage (Wu et al. 2021).
type CvT struct{ layers, toLogits nn.Module }

// A Stage has the settings of a part of a [CvT].
type Stage struct {
	Width, Kernel, Stride             int // of the convolution that begins it
	ProjectionKernel, KeyStride       int // of those that make queries, keys and values; the stride of the last two
	Heads, HeadWidth, Depth, Widening int // Widening is by how much feed-forward blocks are wider
}

// NewCvT returns the model of cvt.
func NewCvT(classes int, dropout float64, stages ...Stage) *CvT {
	var layers []nn.Module
	for _, s := range stages {
		var blocks []nn.Module
		for range s.Depth {
			widen, narrow := point(s.Width*s.Widening), point(s.Width)
			net := nn.Sequential(newChannelNorm(s.Width), widen, nn.GELU(), nn.Dropout(dropout), narrow, nn.Dropout(dropout))
			blocks = append(blocks, nn.Sequential(residual{newConvAttention(s, dropout)}, residual{&feedForward{net}}))
		}
		conv := tensor.Conv{Stride: tensor.Both(s.Stride), Padding: tensor.Both(s.Kernel / 2)}
		layers = append(layers, nn.Sequential(
			nn.Conv2D(s.Width, tensor.Both(s.Kernel), conv), newChannelNorm(s.Width),
			&convTransformer{nn.Sequential(blocks...)}))
	}
	pool := nn.Func("AdaptiveAvgPool2D(1, 1)", func(x *tensor.Tensor) *tensor.Tensor { return x.AdaptiveAvgPool2D(1, 1) })
	return &CvT{nn.Sequential(layers...), nn.Sequential(pool, nn.Flatten(), nn.Dense(classes))}
}

// Forward returns scores [N classes] of images [N C H W].
func (m *CvT) Forward(x *tensor.Tensor) *tensor.Tensor {
	return m.toLogits.Forward(m.layers.Forward(x))
}

// Params implements [nn.Module].
func (m *CvT) Params() []*nn.Param { return nn.Params(m) }

type convTransformer struct{ layers nn.Module }

func (t *convTransformer) Forward(x *tensor.Tensor) *tensor.Tensor { return t.layers.Forward(x) }
func (t *convTransformer) Params() []*nn.Param                     { return nn.Params(t) }

// residual adds its input to what the module makes of it. It adds nothing to names.
type residual struct{ nn.Module }

func (r residual) Forward(x *tensor.Tensor) *tensor.Tensor { return r.Module.Forward(x).Add(x) }

// A channelNorm is a LayerNorm along the channels of images.
type channelNorm struct{ g, b *nn.Param }

func newChannelNorm(width int) nn.Module {
	return &channelNorm{nn.NewParam(tensor.Ones(1, width, 1, 1)), nn.NewParam(tensor.Zeros(1, width, 1, 1))}
}

func (n *channelNorm) Forward(x *tensor.Tensor) *tensor.Tensor {
	return x.LayerNorm(1, 1e-5).Mul(n.g.Value()).Add(n.b.Value())
}
func (n *channelNorm) Params() []*nn.Param { return nn.Params(n) }

// point is a convolution of each element alone.
func point(out int, how ...nn.Init) nn.Module {
	return nn.Conv2D(out, tensor.Both(1), tensor.Conv{}, how...)
}

// A convAttention makes queries, keys and values of images by convolutions of each channel alone, and of each
// element alone.
type convAttention struct {
	norm, dropout nn.Module
	toQ, toKV     *feedForward
	toOut         nn.Module
	heads         int
}

func newConvAttention(s Stage, dropout float64) *convAttention {
	inner := s.Heads * s.HeadWidth
	project := func(out, stride int) *feedForward {
		c := tensor.Conv{Stride: tensor.Both(stride), Padding: tensor.Both(s.ProjectionKernel / 2), Groups: s.Width}
		each := nn.Conv2D(s.Width, tensor.Both(s.ProjectionKernel), c, nn.Init{NoBias: true})
		return &feedForward{nn.Sequential(each, nn.BatchNorm(), point(out, nn.Init{NoBias: true}))}
	}
	return &convAttention{
		norm: newChannelNorm(s.Width), dropout: nn.Dropout(dropout),
		toQ: project(inner, 1), toKV: project(2*inner, s.KeyStride),
		toOut: nn.Sequential(point(s.Width), nn.Dropout(dropout)), heads: s.Heads,
	}
}

func (a *convAttention) Forward(x *tensor.Tensor) *tensor.Tensor {
	x = a.norm.Forward(x)
	rows, columns := x.Dim(2), x.Dim(3)
	split := func(x *tensor.Tensor) *tensor.Tensor { return apart(sequence(x.Transpose(0, 2, 3, 1)), a.heads) }
	kv := a.toKV.Forward(x).Chunk(1, 2)
	y := together(found(split(a.toQ.Forward(x)), split(kv[0]), split(kv[1]), nil, a.dropout)) // [N T inner]
	return a.toOut.Forward(y.Reshape(y.Dim(0), rows, columns, y.Dim(2)).Transpose(0, 3, 1, 2))
}
func (a *convAttention) Params() []*nn.Param { return nn.Params(a) }
