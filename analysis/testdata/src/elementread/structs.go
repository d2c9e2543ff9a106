package elementread

import "github.com/asyncgen/asyncgen/runtime/tensor"

type pick struct {
	item  int
	score float64
}

func scores(x *tensor.Tensor, picks []pick) {
	for i, p := range picks {
		picks[i].score = x.At(p.item) // want `repeated read in loop: x.At\(p.item\) reads one part of x in each iteration; read it once before the loop \[AT006\]`
	}
}

func nucleus(probs *tensor.Tensor, p float64) int {
	cum := probs.Square()
	k := 1
	for k < 100 && cum.At(k-1) < p { // want `cum.At\(k - 1\) reads one part of cum`
		k++
	}
	return k
}
