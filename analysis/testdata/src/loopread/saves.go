package loopread

import (
	"fmt"

	"github.com/asyncgen/asyncgen/runtime/files"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// What is written to a file is waited for.

func trainedOn(net nn.Module, opt *optim.Optimizer, b Batch) *tensor.Tensor {
	loss := nn.MSELoss(net.Forward(b.X), b.Y)
	opt.Minimize(loss)
	return loss
}

func saved(net nn.Module, opt *optim.Optimizer, data []Batch, run *files.Checkpoints) {
	for _, b := range data {
		loss := trainedOn(net, opt, b)
		if err := files.WriteNPY("loss.npy", loss); err != nil { // want `blocking read in loop: files.WriteNPY\("loss.npy", loss\) waits for the device in each iteration; read after the loop, or only every so many iterations`
			fmt.Println(err)
		}
	}
	for _, b := range data {
		trainedOn(net, opt, b)
		files.Save("net.safetensors", net) // want `files.Save\("net.safetensors", net\) waits`
	}
	for _, b := range data {
		loss := trainedOn(net, opt, b)
		files.Write("all.safetensors", map[string]*tensor.Tensor{"loss": loss}, nil) // want `files.Write waits`
	}
	for i, b := range data {
		trainedOn(net, opt, b)
		run.Save(i) // want `run.Save\(i\) waits`
	}
}

func savedSeldom(net nn.Module, opt *optim.Optimizer, data []Batch, run *files.Checkpoints, x *tensor.Tensor) error {
	for i, b := range data {
		trainedOn(net, opt, b)
		if i%1000 == 0 {
			run.Save(i)
		}
		files.WriteNPY("x.npy", x) // the same one each time
	}
	for range 100 {
		for _, b := range data {
			trainedOn(net, opt, b)
		}
		files.Save("net.safetensors", net)
	}
	for i, b := range data {
		trainedOn(net, opt, b)
		if err := run.SaveAsync(i); err != nil { // training goes on while it is written
			return err
		}
	}
	return run.Wait()
}
