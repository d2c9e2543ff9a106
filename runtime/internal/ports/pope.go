package ports

import (
	"math"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A ViTND is a vision transformer of images with any number of axes. Its positions are angles of queries and
// keys, whose elements are lengths (polar embeddings, Gopalakrishnan et al. 2025).
type ViTND struct {
	toPatchEmbedding nn.Module
	dropout          nn.Module
	polarEmb         *polar
	transformer      struct {
		norm   nn.Module
		layers []ndLayer
	}
	mlpHead nn.Module
}

type ndLayer struct {
	attend      *ndAttention `nn:"0"`
	feedForward *feedForward `nn:"1"`
}

// A ViTNDConfig has the settings of a [ViTND].
type ViTNDConfig struct {
	Encoder
	Patches          []int // along each axis
	Classes          int
	EmbeddingDropout float64
	MinFreq, MaxFreq float64 // 0: 1 and 10000
	ZeroFreqs        float64 // the part of the frequencies that are 0
}

// NewViTND returns the model of vit_nd_pope.
func NewViTND(c ViTNDConfig) *ViTND {
	cut := nn.Func("patches", func(x *tensor.Tensor) *tensor.Tensor { return patches(x, c.Patches) })
	v := &ViTND{
		toPatchEmbedding: nn.Sequential(cut, nn.Dense(c.Width), nn.LayerNorm()),
		dropout:          nn.Dropout(c.EmbeddingDropout),
		polarEmb:         newPolar(c),
		mlpHead:          nn.Dense(c.Classes),
	}
	v.transformer.norm = nn.LayerNorm()
	inner := c.Heads * c.HeadWidth
	for range c.Depth {
		a := newAttention(c.Encoder)
		v.transformer.layers = append(v.transformer.layers, ndLayer{
			&ndAttention{a.norm, bare(2 * inner), bare(inner), a.toOut, a.dropout, c.Heads},
			newFeedForward(c.Encoder),
		})
	}
	return v
}

// Embed returns vectors [N ... width] of the patches of images [N C ...].
func (v *ViTND) Embed(x *tensor.Tensor) *tensor.Tensor {
	x = v.toPatchEmbedding.Forward(x)
	shape := x.Shape()
	angles, bias := v.polarEmb.angles(shape[1:len(shape)-1], x)
	x = v.dropout.Forward(sequence(x))
	for _, l := range v.transformer.layers {
		x = l.attend.look(x, angles, bias).Add(x)
		x = l.feedForward.Forward(x).Add(x)
	}
	return v.transformer.norm.Forward(x).Reshape(shape...)
}

// Forward returns scores [N classes] of images [N C ...].
func (v *ViTND) Forward(x *tensor.Tensor) *tensor.Tensor {
	return v.mlpHead.Forward(sequence(v.Embed(x)).Mean(1))
}

// Params implements [nn.Module].
func (v *ViTND) Params() []*nn.Param { return nn.Params(v) }

// A polar has a frequency for each axis, of each element of each head: freqs has the shape [heads 1 width axes].
type polar struct {
	freqs       *nn.Buffer
	learnedBias *nn.Param
}

// newPolar chooses the frequencies, so that their directions are spread evenly. Multiples of powers of
// a generalised golden ratio fill a cube evenly; the inverse of the normal distribution makes
// directions of them (Xiong, jerryxio.ng/posts/nd-rope).
func newPolar(c ViTNDConfig) *polar {
	low, high := c.MinFreq, c.MaxFreq
	if low == 0 {
		low = 1
	}
	if high == 0 {
		high = 10000
	}
	axes, n := len(c.Patches), c.HeadWidth
	zeros := int(math.RoundToEven(c.ZeroFreqs * float64(n)))
	ratio := 2.0
	for range 10 {
		ratio = math.Pow(1+ratio, 1/float64(axes+1))
	}
	data := make([]float64, 0, c.Heads*n*axes)
	for i := range c.Heads * n {
		direction, norm := make([]float64, axes), 0.0
		for j := range direction {
			_, z := math.Modf(float64(i+1) * math.Pow(1/ratio, float64(j+1)))
			direction[j] = math.Erfinv(2*z - 1)
			norm = math.Hypot(norm, direction[j])
		}
		freq := 0.0
		if k := i%n - zeros; k >= 0 {
			freq = low * math.Pow(high/low, float64(k)/float64(max(1, n-zeros-1)))
		}
		for _, d := range direction {
			data = append(data, d/norm*freq)
		}
	}
	return &polar{nn.NewBuffer(tensor.From(data, c.Heads, 1, n, axes)), nn.NewParam(tensor.Zeros(c.Heads, n))}
}

// angles returns the angles of all positions of a grid, [heads T width], and a bias that is added to
// the angles of keys, [heads 1 width].
func (p *polar) angles(grid []int, like *tensor.Tensor) (angles, bias *tensor.Tensor) {
	var along []*tensor.Tensor
	for _, n := range grid {
		along = append(along, in(tensor.Arange(0, float64(n), 1), like))
	}
	positions := tensor.Stack(-1, tensor.Meshgrid(along...)...)
	positions = positions.Reshape(positions.Size()/len(grid), 1, len(grid))
	angles = in(p.freqs.Value(), like).Mul(positions).Sum(-1)
	return angles, p.learnedBias.Value().Clamp(-2*math.Pi, 0).Unsqueeze(1)
}

type ndAttention struct {
	norm, toQK, toV, toOut, dropout nn.Module
	heads                           int
}

func (a *ndAttention) look(x, angles, bias *tensor.Tensor) *tensor.Tensor {
	x = a.norm.Forward(x)
	qk := a.toQK.Forward(x).Chunk(-1, 2)
	q := turn(apart(qk[0], a.heads), angles)
	k := turn(apart(qk[1], a.heads), angles.Add(bias))
	// The root is that of the width before turning, which doubles it.
	v := apart(a.toV.Forward(x), a.heads)
	return a.toOut.Forward(together(found(q.MulScalar(math.Sqrt2), k, v, nil, a.dropout)))
}

// turn makes lengths of the elements of x and returns the vectors with these lengths and the given angles.
func turn(x, angles *tensor.Tensor) *tensor.Tensor {
	x = x.Softplus()
	return tensor.Concat(-1, x.Mul(angles.Cos()), x.Mul(angles.Sin()))
}
