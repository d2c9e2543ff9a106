package main

import (
	"context"
	"os"

	"github.com/asyncgen/asyncgen/device/mpi"
	"github.com/asyncgen/asyncgen/device/wire"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/data"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// overRanks calls f as one rank of the job that mpiexec has started, and ends the program. It opens the library of MPI,
// which nothing else here does.
func overRanks(f func(job *wire.Job) error) {
	mpi.Run(func(ranks *mpi.Transport) error {
		job, err := wire.NewJob(ranks, wire.Options{})
		if err != nil {
			return err
		}
		return f(job)
	})
}

// trainOver is train over the ranks of a job, and ends the job: rank 0 alone goes on. Each rank takes its part of every
// batch, and the loss is that of the whole batch. Rank 0 prints.
func trainOver(ctx context.Context, job *wire.Job, model *gpt, batches *data.Loader, steps int) error {
	net := nn.DataParallel(model, nn.Parallel{Job: job})
	opt := newOptimizer(model, steps)
	err := repeat(ctx, batches, steps, job.Output(os.Stdout), func(b data.Batch) *tensor.Tensor {
		loss := net.Loss(nn.CrossEntropy, b.X, b.Y)
		opt.ZeroGrad()
		loss.Backward()
		optim.ClipNorm(model.Params(), 1)
		opt.Step()
		return loss.Detach()
	})
	if err != nil {
		return err
	}
	if err := asyncrt.WaitAll(); err != nil { // what nobody has read
		return err
	}
	return job.Close()
}
