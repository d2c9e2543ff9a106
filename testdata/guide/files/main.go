// Command files trains a model in two runs, of which the second goes on where the first was interrupted.
package main

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/asyncgen/asyncgen/runtime/files"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func main() {
	dir, err := os.MkdirTemp("", "files")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for _, steps := range []int{100, 200} {
		if err := train(dir, steps); err != nil {
			log.Print(err)
		}
	}
}

// train makes steps until there were so many in all, in this run and those before.
func train(dir string, steps int) error {
	x := tensor.Arange(0, 8, 1).Reshape(8, 1)
	y := x.MulScalar(2).AddScalar(1)
	net := nn.Dense(1)
	opt := optim.SGD(net.Params(), 0.01, optim.SGDOptions{Momentum: 0.9})

	run := files.NewCheckpoints(dir, files.Parts{"model": net, "optimizer": opt}, files.CheckpointOptions{Keep: 2})
	step, err := run.Resume() // 0 if there is no checkpoint yet
	if err != nil {
		return err
	}
	fmt.Println("from step", step)
	for ; step < steps; step++ {
		if step%50 == 0 {
			if err := run.SaveAsync(step); err != nil { // training goes on while the file is written
				return err
			}
		}
		opt.Minimize(nn.MSELoss(net.Forward(x), y))
	}
	if err := run.Save(step); err != nil {
		return err
	}

	path := filepath.Join(dir, "net.safetensors")
	if err := files.Save(path, net); err != nil {
		return err
	}
	same := nn.Dense(1)
	if err := files.Load(path, same); err != nil {
		return err
	}
	fmt.Printf("%.1f\n", same.Forward(tensor.Full(10, 1, 1)))
	return nil
}
