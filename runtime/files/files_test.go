package files_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/files"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func Example() {
	dir, err := os.MkdirTemp("", "files")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "net.safetensors")

	net := nn.Sequential(nn.Dense(4), nn.ReLU(), nn.Dense(1))
	x := tensor.Ones(1, 3)
	y := net.Forward(x)
	fmt.Println(files.Save(path, net))

	same := nn.Sequential(nn.Dense(4), nn.ReLU(), nn.Dense(1))
	fmt.Println(files.Load(path, same))
	fmt.Println(same.Forward(x).Item() == y.Item())
	// Output:
	// <nil>
	// <nil>
	// true
}

// Every type, and every value of those with 16 bits or fewer.
func everyType() map[string]*tensor.Tensor {
	half, brain, bytes := make([]tensor.Float16Bits, 1<<16), make([]tensor.BFloat16Bits, 1<<16), make([]uint8, 256)
	for i := range half {
		half[i], brain[i] = tensor.Float16Bits(i), tensor.BFloat16Bits(i)
	}
	for i := range bytes {
		bytes[i] = uint8(i)
	}
	nan := math.Float32frombits(0x7fc12345)
	return map[string]*tensor.Tensor{
		"float32":  tensor.Of([]float32{0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), nan, 1e-45, math.MaxFloat32}, 2, 3),
		"float64":  tensor.Of([]float64{math.Pi, math.Inf(-1), math.Float64frombits(0xfff8000000000001), 5e-324}),
		"float16":  tensor.Of(half, 256, 256),
		"bfloat16": tensor.Of(brain, 2, 1<<15),
		"int64":    tensor.Of([]int64{math.MinInt64, -1, 0, math.MaxInt64}, 4, 1),
		"int32":    tensor.Of([]int32{math.MinInt32, -1, 7, math.MaxInt32}),
		"uint8":    tensor.Of(bytes, 16, 16),
		"bool":     tensor.Of([]bool{true, false, true}),
		"number":   tensor.Scalar(2.5),
		"empty":    tensor.Zeros(0, 3),
		"view":     tensor.Arange(0, 12, 1).Reshape(3, 4).T().Slice(0, 1, 3),
		"a/ü\"\n":  tensor.Of([]uint8{1}),
	}
}

// bits is what t consists of.
func bits(t *tensor.Tensor) string {
	switch t.DType() {
	case tensor.Float32:
		var list []uint32
		for _, v := range t.Float32s() {
			list = append(list, math.Float32bits(v))
		}
		return fmt.Sprintf("%i %x", t, list)
	case tensor.Float64:
		var list []uint64
		for _, v := range t.Float64s() {
			list = append(list, math.Float64bits(v))
		}
		return fmt.Sprintf("%i %x", t, list)
	case tensor.Float16:
		return fmt.Sprintf("%i %d", t, slices.Clone(tensor.SliceOf[tensor.Float16Bits](t)))
	case tensor.BFloat16:
		return fmt.Sprintf("%i %d", t, tensor.SliceOf[tensor.BFloat16Bits](t))
	case tensor.Int32:
		return fmt.Sprintf("%i %d", t, tensor.SliceOf[int32](t))
	case tensor.Uint8:
		return fmt.Sprintf("%i %d", t, tensor.SliceOf[uint8](t))
	case tensor.Bool:
		return fmt.Sprintf("%i %v", t, t.Bools())
	}
	return fmt.Sprintf("%i %d", t, t.Int64s())
}

func same(t *testing.T, what string, got, want map[string]*tensor.Tensor) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d tensors, want %d", what, len(got), len(want))
	}
	for name, w := range want {
		if g := got[name]; g == nil {
			t.Errorf("%s: no tensor %q", what, name)
		} else if bits(g) != bits(w) {
			t.Errorf("%s: %q has other bits or another shape: %i, want %i", what, name, g, w)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	dir := t.TempDir()
	all := everyType()
	one := filepath.Join(dir, "all.safetensors")
	if err := files.Write(one, all, map[string]string{"a": "b\"ü"}); err != nil {
		t.Fatal(err)
	}
	got, err := files.Read(one)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "safetensors", got, all)
	index := filepath.Join(dir, "all.safetensors.index.json")
	if err := files.WriteShards(index, all, nil, 100_000); err != nil {
		t.Fatal(err)
	}
	if got, err = files.Read(index); err != nil {
		t.Fatal(err)
	}
	same(t, "shards", got, all)
	delete(all, "bfloat16")
	delete(all, "a/ü\"\n")
	all["a/ü"] = tensor.Of([]uint8{1})
	npz := filepath.Join(dir, "all.npz")
	if err := files.WriteNPZ(npz, all); err != nil {
		t.Fatal(err)
	}
	if got, err = files.ReadNPZ(npz); err != nil {
		t.Fatal(err)
	}
	same(t, "npz", got, all)
	for name, x := range all {
		npy := filepath.Join(dir, "x.npy")
		if err := files.WriteNPY(npy, x); err != nil {
			t.Fatal(err)
		}
		y, err := files.ReadNPY(npy)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "npy", map[string]*tensor.Tensor{name: y}, map[string]*tensor.Tensor{name: x})
	}
	list, _ := filepath.Glob(filepath.Join(dir, "*unfinished*"))
	if len(list) > 0 {
		t.Error("files are left: ", list)
	}
	_ = device.CPU()
}

func TestResume(t *testing.T) {
	dir := t.TempDir()
	build := func() (nn.Module, *optim.Optimizer, *files.Checkpoints) {
		tensor.Seed(1)
		net := nn.Sequential(nn.Dense(8), nn.BatchNorm(), nn.ReLU(), nn.Dropout(0.5), nn.Dense(1))
		opt := optim.Adam(net.Params(), 0.01)
		return net, opt, files.NewCheckpoints(dir, files.Parts{"model": net, "optimizer": opt}, files.CheckpointOptions{Keep: 2})
	}
	x, y := tensor.NewGenerator(5).Randn(16, 4), tensor.NewGenerator(6).Randn(16, 1)
	net, opt, run := build()
	for step := range 10 {
		if step == 5 {
			if err := run.SaveAsync(step); err != nil {
				t.Fatal(err)
			}
		}
		opt.Minimize(nn.MSELoss(net.Forward(x), y))
	}
	if err := run.Wait(); err != nil {
		t.Fatal(err)
	}
	again, opt, run := build()
	_ = again
	step, err := run.Resume()
	if err != nil || step != 5 {
		t.Fatal(step, err)
	}
	for ; step < 10; step++ {
		opt.Minimize(nn.MSELoss(again.Forward(x), y))
	}
	a, b := net.Params(), again.Params()
	for i := range a {
		if bits(a[i].Value()) != bits(b[i].Value()) {
			t.Error(i, "differs")
		}
	}
}
