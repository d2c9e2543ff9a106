package files_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/asyncgen/asyncgen/runtime/files"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A model is written, and read into another one that was built in the same way.
func Example() {
	dir, err := os.MkdirTemp("", "files")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "net.safetensors")

	build := func() nn.Module { return nn.Sequential(nn.Dense(4), nn.ReLU(), nn.Dense(1)) }
	net, x := build(), tensor.Ones(1, 3)
	y := net.Forward(x)
	fmt.Println(files.Save(path, net))

	same := build()
	fmt.Println(files.Load(path, same))
	fmt.Println(same.Forward(x).Item() == y.Item())
	// Output:
	// <nil>
	// <nil>
	// true
}

// PyTorch's state_dict of a model has the weights of its Linear layers transposed, and numbers that are of no use here.
func ExampleLoad() {
	dir, err := os.MkdirTemp("", "files")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "model.safetensors")
	theirs := map[string]*tensor.Tensor{
		"embedding.weight": tensor.From([]float32{0, 0, 0, 100, 10, 1}, 2, 3), "norm.num_batches_tracked": tensor.Scalar(7),
		"head.weight": tensor.From([]float32{1, 2, 3}, 1, 3), "head.bias": tensor.Zeros(1),
	}
	if err := files.Write(path, theirs, nil); err != nil {
		fmt.Println(err)
		return
	}

	net := &struct{ Embedding, Head nn.Module }{nn.Embedding(2, 3), nn.Dense(1)}
	fromPyTorch := func(name string, t *tensor.Tensor) (string, *tensor.Tensor) {
		switch {
		case strings.HasSuffix(name, ".num_batches_tracked"):
			return "", nil // BatchNorm needs it no more
		case t.Rank() == 2 && name != "embedding.weight":
			t = t.T() // Linear, LSTM, GRU, RNN: all matrices but those of Embedding
		}
		return name, t
	}
	err = files.Load(path, net, files.LoadOptions{Map: fromPyTorch})
	fmt.Println(net.Head.Forward(net.Embedding.Forward(tensor.From([]int64{1}))), err)
	// Output: [[123.]] <nil>
}

// One tensor of a file is read, and no other.
func ExampleFile_Tensor() {
	dir, err := os.MkdirTemp("", "files")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "two.safetensors")
	two := map[string]*tensor.Tensor{"a": tensor.Arange(0, 3, 1), "b": tensor.Zeros(1000, 1000)}
	if err := files.Write(path, two, nil); err != nil {
		fmt.Println(err)
		return
	}

	f, err := files.Open(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	for _, name := range f.Names() {
		info, _ := f.Info(name)
		fmt.Println(name, info.DType, info.Shape)
	}
	a, err := f.Tensor("a")
	fmt.Println(a, err)
	// Output:
	// a float32 [3]
	// b float32 [1000 1000]
	// [0. 1. 2.] <nil>
}

// A run of training that was interrupted goes on.
func ExampleCheckpoints() {
	dir, err := os.MkdirTemp("", "files")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	x, y := tensor.Arange(0, 8, 1).Reshape(8, 1), tensor.Arange(1, 17, 2).Reshape(8, 1)
	train := func(steps int) error {
		tensor.Seed(1)
		net := nn.Dense(1)
		opt := optim.SGD(net.Params(), 0.01)
		var loss *tensor.Tensor
		run := files.NewCheckpoints(dir, files.Parts{"model": net, "optimizer": opt}, files.CheckpointOptions{Keep: 2})
		step, err := run.Resume()
		if err != nil {
			return err
		}
		fmt.Println("from step", step)
		for ; step < steps; step++ {
			loss = nn.MSELoss(net.Forward(x), y)
			opt.Minimize(loss)
		}
		if err := run.SaveAsync(step); err != nil {
			return err
		}
		fmt.Printf("%.2f\n", loss)
		return run.Wait()
	}
	fmt.Println(train(10), train(200))
	// Output:
	// from step 0
	// 0.19
	// from step 10
	// 0.02
	// <nil> <nil>
}
