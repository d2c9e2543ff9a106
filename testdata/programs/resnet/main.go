// Command resnet trains a small residual network, as those for CIFAR-10, on coloured
// images that it draws. The device shifts and mirrors each image at random before it
// learns from it. After each epoch the network is tested as it is used: with the
// running means of its normalisations, and images as they are.
//
// Results go to standard output, times to standard error.
//
//	go run ./testdata/programs/resnet [-small]
package main

import (
	"flag"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"time"

	"github.com/asyncgen/asyncgen/runtime/data"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

const (
	side    = 16 // of an image, in pixels
	classes = 10
	border  = 2 // how far images are shifted
)

func main() {
	small := flag.Bool("small", false, "few images and epochs")
	flag.Parse()
	epochs, images := 6, 1280
	if *small {
		epochs, images = 2, 160
	}
	if err := train(epochs, images); err != nil {
		log.Fatal("resnet: ", err)
	}
}

func train(epochs, images int) error {
	batches := data.NewLoader(draw(images, 1), 32, data.Options{Shuffle: true, Seed: 1, DropLast: true})
	test := data.NewLoader(draw(images/2, 2), 32)

	tensor.Seed(1)
	net := newResNet(8, 16, 32)
	opt := optim.SGD(net.Params(), 0.1, optim.SGDOptions{Momentum: 0.9, Decay: 5e-4})
	opt.Schedule = optim.OneCycle(epochs * batches.Len())
	start := time.Now()
	for epoch := range epochs {
		total := 0.0
		for b, err := range batches.All() {
			if err != nil {
				return err
			}
			loss := nn.CrossEntropy(net.Forward(augment(normalise(b.X))), b.Y)
			opt.Minimize(loss)
			total += loss.Item()
		}
		right, err := accuracy(nn.Frozen(net), test)
		if err != nil {
			return err
		}
		fmt.Printf("epoch %d: loss %.3f, %.1f %% right\n", epoch, total/float64(batches.Len()), 100*right)
	}
	fmt.Fprintf(os.Stderr, "%d epochs in %v\n", epochs, time.Since(start).Round(time.Millisecond))
	return nil
}

// accuracy returns the share of images whose class gets the highest score.
func accuracy(net nn.Module, batches *data.Loader) (float64, error) {
	right, n := int64(0), 0
	for b, err := range batches.All() {
		if err != nil {
			return 0, err
		}
		right += net.Forward(normalise(b.X)).ArgMax(1).Eq(b.Y).As(tensor.Int64).Sum().ItemInt()
		n += b.Y.Size()
	}
	return float64(right) / float64(n), nil
}

// newResNet returns a network with a block for each number of channels, each behind the first halving the images.
func newResNet(channels ...int) nn.Module {
	layers := []nn.Module{conv(channels[0], 3, 1), nn.BatchNorm(), nn.ReLU()}
	for i, n := range channels {
		b := &block{Conv1: conv(n, 3, 1), Norm1: nn.BatchNorm(), Conv2: conv(n, 3, 1), Norm2: nn.BatchNorm(), Shortcut: nn.Identity()}
		if i > 0 {
			b.Conv1 = conv(n, 3, 2)
			b.Shortcut = nn.Sequential(conv(n, 1, 2), nn.BatchNorm())
		}
		layers = append(layers, b)
	}
	return nn.Sequential(append(layers, nn.AdaptiveAvgPool2D(1, 1), nn.Flatten(), nn.Dense(classes))...)
}

// A block is two convolutions beside a shortcut (He et al. 2015).
type block struct {
	Conv1, Norm1, Conv2, Norm2, Shortcut nn.Module
}

func (b *block) Forward(x *tensor.Tensor) *tensor.Tensor {
	y := b.Norm1.Forward(b.Conv1.Forward(x)).ReLU()
	y = b.Norm2.Forward(b.Conv2.Forward(y))
	return y.Add(b.Shortcut.Forward(x)).ReLU()
}

func (b *block) Params() []*nn.Param { return nn.Params(b) }

func conv(channels, size, stride int) nn.Module {
	how := tensor.Conv{Stride: tensor.Both(stride), Padding: tensor.Both(size / 2)}
	return nn.Conv2D(channels, tensor.Both(size), how, nn.Init{Weight: nn.KaimingNormal(), NoBias: true})
}

// normalise makes numbers around 0 of bytes.
func normalise(images *tensor.Tensor) *tensor.Tensor {
	return images.As(tensor.Float32).DivScalar(127.5).AddScalar(-1)
}

// augment mirrors half of the images [N 3 side side], and shifts each by up to border pixels. What is then missing is 0.
func augment(x *tensor.Tensor) *tensor.Tensor {
	n := x.Dim(0)
	x = tensor.Where(tensor.Bernoulli(0.5, n, 1, 1, 1).GtScalar(0), x.Flip(3), x)
	pixels := tensor.ArangeInt(0, side, 1)
	for axis := 2; axis < 4; axis++ {
		shape := []int{1, 1, 1, 1}
		shape[axis] = side
		index := tensor.RandInt(0, 2*border+1, n, 1, 1, 1).Add(pixels.Reshape(shape...))
		x = x.Pad(axis, border, border, 0).TakeAlong(axis, index)
	}
	return x
}

// draw draws n images. Those of a class have stripes of one direction and width, in any two colours, under noise.
func draw(n int, seed uint64) *data.Pairs[uint8, int64] {
	r := rand.New(rand.NewPCG(seed, 0))
	images := data.Array[uint8]{Data: make([]uint8, n*3*side*side), Shape: []int{n, 3, side, side}}
	labels := data.Array[int64]{Data: make([]int64, n), Shape: []int{n}}
	for i := range n {
		class := r.IntN(classes)
		labels.Data[i] = int64(class)
		sin, cos := math.Sincos(math.Pi*float64(class%5)/5 + 0.2*(r.Float64()-0.5))
		wave := 2 * math.Pi / (3 + 3*float64(class/5))
		phase := 2 * math.Pi * r.Float64()
		image := images.Row(i)
		for channel := range 3 {
			one, other := 255*r.Float64(), 255*r.Float64()
			for at := range side * side {
				mix := (1 + math.Sin(wave*(cos*float64(at%side)+sin*float64(at/side))+phase)) / 2
				image[channel*side*side+at] = uint8(min(max(one+(other-one)*mix+30*r.NormFloat64(), 0), 255))
			}
		}
	}
	return data.Pair(images, labels)
}
