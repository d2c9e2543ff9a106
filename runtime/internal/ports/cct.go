package ports

import (
	"math"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A CCT is a compact transformer of tokens that convolutions make (Hassani et al. 2021).
type CCT struct {
	tokenizer  tokenizer
	classifier cctClassifier
}

type tokenizer struct{ convLayers nn.Module }

type cctClassifier struct {
	attentionPool nn.Module
	positionalEmb *nn.Param // nil unless positions are learned
	dropout       nn.Module
	blocks        []*cctBlock
	norm, fc      nn.Module
	positions     Positions
}

// Positions says how a [CCT] knows where tokens are.
type Positions int

const (
	Sine    Positions = iota // by sines and cosines
	Learned                  // by parameters
	Unknown                  // not at all
)

// A CCTConfig has the settings of a [CCT]. HeadWidth is not used: it is the width divided by the heads.
type CCTConfig struct {
	Encoder                  // its Dropout is that of all but weights of attention
	Size             [2]int  // of images, where positions are learned
	Convs, Planes    int     // convolutions; channels between them
	Conv             [3]int  // kernel, stride and padding of these
	Pool             [3]int  // window, stride and padding of the pooling after each
	AttentionDropout float64 // of weights of attention
	StochasticDepth  float64 // with which probability the last block is left out; the first never is
	Positions        Positions
	Classes          int
}

// NewCCT returns the model of cct. Its cct_2, cct_4, ..., cct_16 are settings of this one.
func NewCCT(c CCTConfig) *CCT {
	conv := tensor.Conv{Stride: tensor.Both(c.Conv[1]), Padding: tensor.Both(c.Conv[2])}
	pool := tensor.Pool{Window: tensor.Both(c.Pool[0]), Stride: tensor.Both(c.Pool[1]), Padding: tensor.Both(c.Pool[2])}
	var layers []nn.Module
	for i := range c.Convs {
		out := c.Planes
		if i == c.Convs-1 {
			out = c.Width
		}
		layers = append(layers, nn.Sequential(
			nn.Conv2D(out, tensor.Both(c.Conv[0]), conv, nn.Init{NoBias: true, Weight: nn.KaimingNormal()}),
			nn.ReLU(), nn.MaxPool2D(pool)))
	}
	m := &CCT{tokenizer{nn.Sequential(layers...)}, cctClassifier{
		attentionPool: slight(1), dropout: nn.Dropout(c.Dropout), norm: nn.LayerNorm(), fc: slight(c.Classes),
		positions: c.Positions,
	}}
	if c.Positions == Learned {
		t := 1
		for _, size := range c.Size {
			for range c.Convs {
				size = (size+2*c.Conv[2]-c.Conv[0])/c.Conv[1] + 1
				size = (size+2*c.Pool[2]-c.Pool[0])/c.Pool[1] + 1
			}
			t *= size
		}
		on := tensor.On(tensor.Zeros().Device())
		m.classifier.positionalEmb = nn.NewParam(nn.TruncatedNormal(0, 0.2)(on, 0, 0, 1, t, c.Width))
	}
	for i := range c.Depth {
		path := &dropPath{p: c.StochasticDepth * float64(i) / float64(max(1, c.Depth-1))}
		m.classifier.blocks = append(m.classifier.blocks, newCCTBlock(c, path))
	}
	return m
}

// slight is a dense layer with small weights.
func slight(out int) nn.Module { return nn.Dense(out, nn.Init{Weight: nn.TruncatedNormal(0, 0.02)}) }

// Forward returns scores [N classes] of images [N C H W].
func (m *CCT) Forward(x *tensor.Tensor) *tensor.Tensor {
	x = sequence(m.tokenizer.convLayers.Forward(x).Transpose(0, 2, 3, 1))
	c := m.classifier
	switch c.positions {
	case Sine:
		x = x.Add(alternating(x.Dim(1), x.Dim(2), x))
	case Learned:
		x = x.Add(c.positionalEmb.Value())
	}
	x = c.dropout.Forward(x)
	for _, b := range c.blocks {
		x = b.Forward(x)
	}
	x = c.norm.Forward(x)
	weights := c.attentionPool.Forward(x).Softmax(1) // [N T 1]
	return c.fc.Forward(x.Mul(weights).Sum(1))
}

// Params implements [nn.Module].
func (m *CCT) Params() []*nn.Param { return nn.Params(m) }

// alternating returns positions as vectors, [t width], with sines and cosines one after the other.
func alternating(t, width int, like *tensor.Tensor) *tensor.Tensor {
	data := make([]float64, 0, t*width)
	for p := range t {
		for i := range width {
			angle := float64(p) / math.Pow(10000, float64(i/2*2)/float64(width))
			if i%2 == 0 {
				data = append(data, math.Sin(angle))
			} else {
				data = append(data, math.Cos(angle))
			}
		}
	}
	return in(tensor.From(data, t, width), like)
}

type cctBlock struct {
	preNorm                     nn.Module
	selfAttn                    cctAttention
	linear1, dropout1, norm1    nn.Module
	linear2, dropout2, dropPath nn.Module
}

type cctAttention struct {
	qkv, attnDrop, proj, projDrop nn.Module
	heads                         int
}

func newCCTBlock(c CCTConfig, path nn.Module) *cctBlock {
	init := nn.Init{NoBias: true, Weight: nn.TruncatedNormal(0, 0.02)}
	return &cctBlock{
		preNorm: nn.LayerNorm(),
		selfAttn: cctAttention{
			nn.Dense(3*c.Width, init), nn.Dropout(c.AttentionDropout), slight(c.Width), nn.Dropout(c.Dropout), c.Heads,
		},
		linear1: slight(c.Hidden), dropout1: nn.Dropout(c.Dropout), norm1: nn.LayerNorm(),
		linear2: slight(c.Width), dropout2: nn.Dropout(c.Dropout), dropPath: path,
	}
}

func (b *cctBlock) Forward(x *tensor.Tensor) *tensor.Tensor {
	a := b.selfAttn
	qkv := a.qkv.Forward(b.preNorm.Forward(x)).Chunk(-1, 3)
	y := found(apart(qkv[0], a.heads), apart(qkv[1], a.heads), apart(qkv[2], a.heads), nil, a.attnDrop)
	x = b.norm1.Forward(x.Add(b.dropPath.Forward(a.projDrop.Forward(a.proj.Forward(together(y))))))
	y = b.dropout1.Forward(b.linear1.Forward(x).GELU())
	return x.Add(b.dropPath.Forward(b.dropout2.Forward(b.linear2.Forward(y))))
}

func (b *cctBlock) Params() []*nn.Param { return nn.Params(b) }

// A dropPath leaves out all of a sample with probability p (stochastic depth, Huang et al. 2016).
type dropPath struct {
	p    float64
	mode nn.Mode
}

func (d *dropPath) Forward(x *tensor.Tensor) *tensor.Tensor {
	if d.p == 0 || !d.mode.IsTraining() {
		return x
	}
	shape := x.Shape()
	for i := range shape[1:] {
		shape[i+1] = 1
	}
	return x.DivScalar(1 - d.p).Mul(in(tensor.Bernoulli(1-d.p, shape...), x))
}

func (*dropPath) Params() []*nn.Param { return nil }
