package opencltest

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/opencl"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// TestDataParallel trains on one device of OpenCL, on two and on one together with the CPU. The
// same device counts twice if there is but one. Devices of one kind give the same bits, and with
// the CPU, whose exponential function is another, they are within rounding.
func TestDataParallel(t *testing.T) {
	t.Setenv("ASYNCGEN_OPENCL_CPU", "1")
	var devs []device.Device
	for i := range 2 {
		b, err := opencl.New(i, nil)
		if err != nil && i > 0 {
			t.Logf("%v: the first counts twice", err)
			b, err = opencl.New(0, nil)
		}
		if err != nil {
			t.Skipf("no device of OpenCL: %v", err)
		}
		defer b.Close()
		devs = append(devs, device.Wrap(fmt.Sprintf("opencl:%d", i), device.KindGPU, b))
	}
	tensor.Seed(1)
	drawn := nn.Sequential(nn.Dense(24), nn.ReLU(), nn.Dense(4))
	drawn.Forward(tensor.On(device.CPU()).Ones(1, 10))
	train := func(on ...device.Device) (seen []float64) {
		net := nn.DataParallel(nn.Clone(drawn), nn.Parallel{Devices: on, Shards: 4})
		opt := optim.SGD(net.Params(), 0.1)
		data := tensor.NewGenerator(2)
		for range 2 {
			x, labels := data.Randn(20, 10).To(device.CPU()), data.RandInt(0, 4, 20).To(device.CPU())
			loss := net.Loss(nn.CrossEntropy, x, labels)
			opt.Minimize(loss)
			seen = append(seen, loss.Item())
		}
		for _, p := range net.Params()[:4] {
			for _, v := range p.Value().Float32s() {
				seen = append(seen, float64(v))
			}
		}
		return seen
	}
	one := train(devs[0])
	if two := train(devs...); !slices.Equal(two, one) {
		t.Errorf("two devices give\n%v\none gives\n%v", two, one)
	}
	for i, v := range train(device.CPU(), devs[1]) {
		if !(math.Abs(v-one[i]) <= 1e-5) {
			t.Errorf("number %d is %v with the CPU, and %v without", i, v, one[i])
		}
	}
}
