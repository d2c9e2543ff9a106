// Command machines trains a model on one or several machines, and goes on from its last checkpoint.
//
//	mpiexec -f hosts -ppn 1 machines -dir /shared/run1
package main

import (
	"flag"
	"fmt"
	"hash/crc32"

	"github.com/asyncgen/asyncgen/device/mpi"
	"github.com/asyncgen/asyncgen/device/wire"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/files"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

var (
	dir   = flag.String("dir", "", "the folder for checkpoints, which all machines share; none: nothing is saved")
	steps = flag.Int("steps", 100, "how many steps to train")
	every = flag.Int("every", 20, "how many steps are between checkpoints")
	zero  = flag.Int("zero", 0, "what ranks share: 1: the state of the optimiser, 2: gradients, too")
)

func main() {
	flag.Parse()
	mpi.Run(train) // does not return
}

func train(ranks *mpi.Transport) error {
	job, err := wire.NewJob(ranks, wire.Options{})
	if err != nil {
		return err
	}

	tensor.Seed(1)
	how := nn.Parallel{Job: job, Zero: *zero, Bucket: 1 << 10} // a bucket that suits this small model
	net := nn.DataParallel(nn.Sequential(nn.Dense(64), nn.ReLU(), nn.Dense(1)), how)
	opt := optim.Adam(net.Params(), 0.01)
	run := files.NewCheckpoints(*dir, files.Parts{"model": net, "optimizer": opt})
	step := 0
	if *dir != "" {
		if step, err = run.Resume(); err != nil {
			return err
		}
		job.Agree(fmt.Sprint("step ", step)) // all have read the same file
	}
	for ; step < *steps && !ranks.Stopping(); step++ {
		if *dir != "" && step%*every == 0 {
			opt.Gather() // on all ranks; it does something if Zero is set
			if job.Rank() == 0 {
				err = run.SaveAsync(step)
			}
			if err != nil {
				return err
			}
		}
		x, y := batch(tensor.DefaultGenerator(), job)
		opt.Minimize(net.Loss(nn.MSELoss, x, y))
	}
	right := near(net, job)
	opt.Gather()
	if err := asyncrt.WaitAll(); err != nil { // nothing else waits on other ranks than 0
		return err
	}
	if *dir != "" && job.Rank() == 0 {
		if err := run.Save(step); err != nil {
			return err
		}
	}
	if job.Rank() == 0 && step == *steps {
		fmt.Printf("%d steps, weights %08x, %d of %d near\n", step, sum(net), right.ItemInt(), size)
	}
	return job.Close()
}

// size is the number of samples in a batch.
const size = 256

// batch returns this rank's part of the next batch, which all ranks draw alike.
func batch(g *tensor.Generator, job *wire.Job) (x, y *tensor.Tensor) {
	all := g.Uniform(0, 1, size, 8)
	x = all.Slice(0, job.Rank()*size/job.Size(), (job.Rank()+1)*size/job.Size())
	return x, x.Square().Sum(1).Reshape(-1, 1)
}

// near returns how many samples of another batch, of all ranks, the model is not far from. It does not wait.
func near(net *nn.Replicas, job *wire.Job) *tensor.Tensor {
	x, y := batch(tensor.NewGenerator(2), job)
	isNear := net.Forward(x).Sub(y).Abs().LtScalar(0.2)
	return tensor.AllReduceOver(job, isNear.As(tensor.Int64).Sum())[0]
}

// sum returns a checksum of all weights.
func sum(net *nn.Replicas) (sum uint32) {
	var all []*tensor.Tensor
	for _, p := range net.Params() {
		all = append(all, p.Value().Flatten())
	}
	for _, v := range tensor.Concat(0, all...).Float32s() {
		sum = crc32.Update(sum, crc32.IEEETable, fmt.Append(nil, v))
	}
	return sum
}
