package nn_test

import (
	"fmt"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A transformerBlock is a part of a language model: attention, then a small network, each beside its input.
type transformerBlock struct {
	attn     *nn.Attention
	mlp      nn.Module
	ln1, ln2 nn.Module
}

func newBlock(width, heads int) *transformerBlock {
	return &transformerBlock{
		attn: nn.MultiHeadAttention(width, heads, nn.Heads{Causal: true}),
		mlp:  nn.Sequential(nn.Dense(4*width), nn.GELU(), nn.Dense(width), nn.Dropout(0.1)),
		ln1:  nn.LayerNorm(), ln2: nn.LayerNorm(),
	}
}

func (b *transformerBlock) Forward(x *tensor.Tensor) *tensor.Tensor {
	x = x.Add(b.attn.Forward(b.ln1.Forward(x)))
	return x.Add(b.mlp.Forward(b.ln2.Forward(x)))
}

func (b *transformerBlock) Params() []*nn.Param { return nn.Params(b) }

// Extend is Forward of positions behind those in cache.
func (b *transformerBlock) Extend(x *tensor.Tensor, cache *nn.KVCache) *tensor.Tensor {
	x = x.Add(b.attn.Extend(b.ln1.Forward(x), cache))
	return x.Add(b.mlp.Forward(b.ln2.Forward(x)))
}

// A text may be continued from what a cache has of it.
func Example_transformer() {
	tensor.Seed(1)
	block := newBlock(16, 4)
	x := tensor.Randn(1, 5, 16)
	block.Forward(x)

	use, cache := nn.Frozen(block), nn.NewKVCache() // no dropout
	prompt := use.Extend(x.Slice(1, 0, 3), cache)
	next := use.Extend(x.Slice(1, 3, 5), cache)
	all := tensor.Concat(1, prompt, next)
	fmt.Println(cache.Len(), all.Sub(use.Forward(x)).Abs().Max().Item() < 1e-5)
	// Output: 5 true
}
