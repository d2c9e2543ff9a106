package main

import (
	"testing"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

var sink *tensor.Tensor

func BenchmarkTotal(b *testing.B) {
	x := tensor.Randn(8, 8)
	for range b.N {
		sink = x.MatMul(x)
	}
}

func BenchmarkEach(b *testing.B) {
	x := tensor.Randn(8, 8)
	for b.Loop() {
		sink = x.MatMul(x)
	}
}
