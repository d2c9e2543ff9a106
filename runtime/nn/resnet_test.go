package nn_test

import (
	"fmt"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A basicBlock is a part of a ResNet: two convolutions beside their input, which is shortcut to the
// shape of their result.
type basicBlock struct {
	conv1, bn1, conv2, bn2, shortcut nn.Module
}

func newBasicBlock(in, out, stride int) *basicBlock {
	conv := func(size, stride int) nn.Module {
		c := tensor.Conv{Stride: tensor.Both(stride), Padding: tensor.Both(size / 2)}
		return nn.Conv2D(out, tensor.Both(size), c, nn.Init{Weight: nn.KaimingNormal(), NoBias: true})
	}
	b := &basicBlock{conv1: conv(3, stride), bn1: nn.BatchNorm(), conv2: conv(3, 1), bn2: nn.BatchNorm(), shortcut: nn.Identity()}
	if in != out || stride != 1 {
		b.shortcut = nn.Sequential(conv(1, stride), nn.BatchNorm())
	}
	return b
}

func (b *basicBlock) Forward(x *tensor.Tensor) *tensor.Tensor {
	y := b.bn1.Forward(b.conv1.Forward(x)).ReLU()
	y = b.bn2.Forward(b.conv2.Forward(y))
	return y.Add(b.shortcut.Forward(x)).ReLU()
}

func (b *basicBlock) Params() []*nn.Param { return nn.Params(b) }

// A small ResNet learns to tell bright images from dark ones.
func Example_resNet() {
	tensor.Seed(1)
	net := nn.Sequential(
		nn.Conv2D(8, tensor.Both(3), tensor.Conv{Padding: tensor.Both(1)}, nn.Init{NoBias: true}), nn.BatchNorm(), nn.ReLU(),
		newBasicBlock(8, 8, 1), newBasicBlock(8, 16, 2),
		nn.AdaptiveAvgPool2D(1, 1), nn.Flatten(), nn.Dense(2),
	)
	x := tensor.Randn(16, 3, 8, 8).Add(tensor.Randn(16, 1, 1, 1))
	bright := x.Mean(1, 2, 3).GtScalar(0).As(tensor.Int64)

	net.Forward(x)
	opt := optim.AdamW(net.Params(), 0.01)
	for range 12 {
		opt.Minimize(nn.CrossEntropy(net.Forward(x), bright))
	}
	right := nn.Frozen(net).Forward(x).ArgMax(1).Eq(bright).As(tensor.Float32).Mean()
	fmt.Println(len(net.Params()), "parameters", right.Item() > 0.9)
	// Output: 20 parameters true
}
