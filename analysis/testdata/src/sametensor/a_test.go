package sametensor

import (
	"testing"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func TestSquare(t *testing.T) {
	x := tensor.Zeros(3)
	y := square(x)
	if y == x {
		t.Error("changed in place")
	}
	if want := tensor.Zeros(3); y != want { // want `y != want compares two tensors that are never the same one`
		t.Errorf("got %v, want %v", y, want)
	}
}

func TestTwice(t *testing.T) {
	x := tensor.Zeros(3)
	if a, b := chosen(x, 3), chosen(x, 3); a != b { // want `a != b compares two tensors by identity`
		t.Error("not deterministic")
	}
}

func chosen(x *tensor.Tensor, n int) *tensor.Tensor {
	for range n {
		x = x.AddScalar(1)
	}
	return x
}

func agrees(t *testing.T, f func(*tensor.Tensor) *tensor.Tensor, x *tensor.Tensor) {
	if got, want := f(x), f(x); got != want { // want `got != want compares two tensors by identity`
		t.Error("differs")
	}
}
