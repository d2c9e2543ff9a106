package droppedresult

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/asyncgen/asyncgen/device/wire"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/data"
	"github.com/asyncgen/asyncgen/runtime/files"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/scalars"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Errors of what writes to files and to other ranks.

func saved(path string, net nn.Module, loss *tensor.Tensor) {
	files.Save(path, net)         // want `error of files.Save is thrown away, with which the failures are gone; handle it`
	go files.WriteNPY(path, loss) // want `error of files.WriteNPY is thrown away`
	go func() {
		files.WriteNPY(path, loss) // want `error of files.WriteNPY is thrown away`
	}()
}

func checkpointed(run *files.Checkpoints, step func() error, n int) error {
	defer run.Wait() // want `error of run.Wait is thrown away, with which the failures are gone; call it in a function that handles it`
	for i := range n {
		if err := step(); err != nil {
			return err
		}
		if i%100 == 0 {
			run.SaveAsync(i) // want `error of run.SaveAsync is thrown away`
		}
	}
	return nil
}

func recorded(w *scalars.Writer, losses []*tensor.Tensor) error {
	defer w.Close() // want `error of w.Close is thrown away`
	for i, loss := range losses {
		w.Add(i, "loss", loss)
		_ = w.Flush() // want `error of w.Flush is thrown away`
	}
	return nil
}

// The time between messages of the job and the timeouts of the server are no clocks that are read.
func left(job *wire.Job) error {
	asyncrt.WaitAll() // want `error of asyncrt.WaitAll is thrown away`
	return job.Close()
}

func stopped(ctx context.Context, s *http.Server, job *wire.Job) error {
	asyncrt.WaitAll() // want `error of asyncrt.WaitAll is thrown away`
	defer job.Close() // want `error of job.Close is thrown away`
	return s.Shutdown(ctx)
}

func ticked(step func(), n int) {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for range n {
		<-t.C
		step()
		asyncrt.WaitAll() // want `error of asyncrt.WaitAll is thrown away`
	}
}

func onlyTheLast(run *files.Checkpoints, step func(), n int) error {
	var err error
	for i := range n {
		step()
		err = run.Save(i) // want `error of run.Save is thrown away`
	}
	return err
}

// Silent.

func allOfThem(run *files.Checkpoints, step func(), n int) (err error) {
	for i := range n {
		step()
		err = errors.Join(err, run.Save(i))
	}
	for i := range n {
		if err = run.Save(i); err != nil {
			return err
		}
	}
	return err
}

func eachOfThem(run *files.Checkpoints, step func(), n int) error {
	var err error
	for i := range n {
		step()
		err = run.Save(i)
		if err != nil {
			break
		}
	}
	return err
}

func closedTwice(w *scalars.Writer, step func() error) error {
	defer w.Close()
	if err := step(); err != nil {
		return err
	}
	return w.Close()
}

func closedAfterFailure(w *scalars.Writer, job *wire.Job, step func() error) error {
	if err := step(); err != nil {
		w.Close()
		_ = job.Close()
		asyncrt.WaitAll()
		return err
	}
	return errors.Join(w.Close(), job.Close())
}

func weight(path, name string) (*tensor.Tensor, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // it was read
	return f.Tensor(name)
}

func told(w *scalars.Writer) (err error) {
	defer func() { err = errors.Join(err, w.Close()) }()
	return nil
}

// inMemory asks a data set, which is an interface, and knows that it has no files.
func inMemory(set data.Dataset[float32, int64], x []float32, y []int64) {
	set.At(0, x, y)
}

func onPurpose(w *scalars.Writer) { _ = w.Close() }
