package main

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A config is the size of a model.
type config struct {
	width  int // elements of what stands for a character
	heads  int
	blocks int
	places int // characters that it sees at once
}

// A gpt is a transformer that normalises before each of its steps, as GPT-2 does.
type gpt struct {
	config
	Tokens, Places nn.Module
	Blocks         []*block
	Norm, Scores   nn.Module
}

func newGPT(c config, letters int) *gpt {
	small := nn.Init{Weight: nn.Normal(0, 0.02)}
	g := &gpt{
		config: c,
		Tokens: nn.Embedding(letters, c.width, small), Places: nn.Embedding(c.places, c.width, small),
		Norm: nn.LayerNorm(), Scores: nn.Dense(letters),
	}
	for range c.blocks {
		g.Blocks = append(g.Blocks, &block{
			Attention: nn.MultiHeadAttention(c.width, c.heads, nn.Heads{Causal: true}),
			MLP:       nn.Sequential(nn.Dense(4*c.width), nn.GELU(), nn.Dense(c.width)),
			Norm1:     nn.LayerNorm(), Norm2: nn.LayerNorm(),
		})
	}
	return g
}

// Forward takes characters [N T], and returns a score for each that can follow each of them, [N T letters].
func (g *gpt) Forward(ids *tensor.Tensor) *tensor.Tensor {
	x := g.embed(ids, 0)
	for _, b := range g.Blocks {
		x = b.Forward(x)
	}
	return g.Scores.Forward(g.Norm.Forward(x))
}

func (g *gpt) Params() []*nn.Param { return nn.Params(g) }

// embed returns [N T width] for characters [N T], the first of which is at a place.
func (g *gpt) embed(ids *tensor.Tensor, place int) *tensor.Tensor {
	places := tensor.ArangeInt(int64(place), int64(place+ids.Dim(1)), 1)
	return g.Tokens.Forward(ids).Add(g.Places.Forward(places))
}

// A block is attention and a small network, each added to what it gets.
type block struct {
	Attention    *nn.Attention
	MLP          nn.Module
	Norm1, Norm2 nn.Module
}

func (b *block) Forward(x *tensor.Tensor) *tensor.Tensor {
	x = x.Add(b.Attention.Forward(b.Norm1.Forward(x)))
	return x.Add(b.MLP.Forward(b.Norm2.Forward(x)))
}

func (b *block) Params() []*nn.Param { return nn.Params(b) }

// extend is Forward of characters behind those in cache.
func (b *block) extend(x *tensor.Tensor, cache *nn.KVCache) *tensor.Tensor {
	x = x.Add(b.Attention.Extend(b.Norm1.Forward(x), cache))
	return x.Add(b.MLP.Forward(b.Norm2.Forward(x)))
}

// A text is what a model has seen so far.
type text struct {
	model  *gpt
	recent *tensor.Tensor // [1 T]: the characters in caches
	caches []*nn.KVCache  // one for each block
}

func (g *gpt) newText() *text {
	t := &text{model: g}
	for range g.Blocks {
		t.caches = append(t.caches, nn.NewKVCache())
	}
	return t
}

// extend returns a score for each character that can follow those so far and next, [1 letters]. When there are no more
// places, the first half of them is forgotten and the rest read again.
func (t *text) extend(next *tensor.Tensor) *tensor.Tensor {
	if t.recent == nil {
		t.recent = next
	} else {
		t.recent = tensor.Concat(1, t.recent, next)
	}
	seen, places := t.recent.Dim(1), t.model.places
	if seen > places {
		t.recent = t.recent.Slice(1, seen-places/2, seen)
		next = t.recent
		for _, c := range t.caches {
			c.Truncate(0)
		}
	}
	x := t.model.embed(next, t.caches[0].Len())
	for i, b := range t.model.Blocks {
		x = b.extend(x, t.caches[i])
	}
	last := x.Dim(1) - 1
	return t.model.Scores.Forward(t.model.Norm.Forward(x.Slice(1, last, last+1))).Squeeze(1)
}
