package nn_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/devicetest"
	_ "github.com/asyncgen/asyncgen/device/opencl"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// quadrants returns n noisy images of 8 by 8, and which quadrant of each is bright.
func quadrants(on device.Device, n int) (images, labels *tensor.Tensor) {
	masks := make([]float32, 4*64)
	for i := range masks {
		quadrant, y, x := i/64, i/8%8, i%8
		if y/4*2+x/4 == quadrant {
			masks[i] = 1
		}
	}
	labels = tensor.On(on).RandInt(0, 4, n)
	bright := tensor.FromOn(on, masks, 4, 1, 8, 8).Take(0, labels)
	return tensor.On(on).Randn(n, 1, 8, 8).Add(bright), labels
}

// A small convolutional network learns the same on each device: what it prints is kept here.
func TestConvNetLearns(t *testing.T) {
	const want = `
step 0 loss 1.5911
step 8 loss 1.3439
step 16 loss 1.0274
step 24 loss 0.7320
step 32 loss 0.2257
122 of 128 right
`
	for _, name := range devicetest.Names(t) {
		on, err := device.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		tensor.Seed(7)
		net := nn.Sequential(
			nn.Conv2D(6, tensor.Both(3), tensor.Conv{Padding: tensor.Both(1)}), nn.ReLU(), nn.MaxPool2D(tensor.Pool{Window: tensor.Both(2)}),
			nn.Conv2D(8, tensor.Both(3), tensor.Conv{}), nn.ReLU(), nn.AvgPool2D(tensor.Pool{Window: tensor.Both(2)}),
			nn.Flatten(), nn.Dense(4),
		)
		out := &strings.Builder{}
		fmt.Fprintln(out)
		var opt *optim.Optimizer
		for step := range 33 {
			images, labels := quadrants(on, 32)
			loss := nn.CrossEntropy(net.Forward(images), labels)
			if opt == nil {
				opt = optim.SGD(net.Params(), 0.3) // the layers know their parameters now
			}
			opt.Minimize(loss)
			if step%8 == 0 {
				fmt.Fprintf(out, "step %d loss %.4f\n", step, loss.Item())
			}
		}
		images, labels := quadrants(on, 128)
		right := nn.Frozen(net).Forward(images).ArgMax(1).Eq(labels).As(tensor.Float32).Sum()
		fmt.Fprintf(out, "%v of 128 right\n", right.Item())
		if got := out.String(); got != want {
			t.Errorf("on %s:%swant:%s", name, got, want)
		}
	}
}
