// Package mpi carries messages between the machines of a job, by a library of MPI. Mpiexec, or srun, starts one process
// on each machine, a rank. [Run] makes a program a rank:
//
//	func main() {
//		mpi.Run(train)
//	}
//
//	func train(job *mpi.Transport) error {
//		for step := range steps {
//			...
//			if job.Stopping() {
//				return save(step)
//			}
//		}
//		return save(steps)
//	}
//
// A program that no launcher has started is a job of one rank, which needs no library.
//
// The library needs the standard ABI of MPI 5.0: MPICH has it from 5.0 on. It is opened at run time, without cgo, on
// Linux. A program that imports this package is linked dynamically.
//
// The package moves bytes and computes nothing: package wire makes devices of the other ranks.
package mpi

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// Run calls f as one rank of the job that mpiexec or srun has started, or as a job of one rank, and ends the program.
// It must be the last call of main, and doesn't return. It waits for all ranks to call it, and ends the program if one
// has not come within what ASYNCGEN_RANK_TIMEOUT says, or else a minute.
//
// When f has returned nil on all ranks, the program ends with status 0; Run waits for the other ranks. If f returns an
// error or panics, or after [Transport.Fail], Run prints one line with the rank and the error on standard error, and
// ends the whole job at once with status 1, or 2 for a panic. A rank that calls os.Exit or is killed takes the others
// with it, as the launcher ends them. The status is that of the rank: after os.Exit(0) the job looks like one that is
// done.
//
// Run ends the program as C does. A Go program that returns from main would leave out what the library has to do at the
// end of the process, and mpiexec would take it for one that failed.
func Run(f func(*Transport) error) {
	t, err := open()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mpi:", err)
		os.Exit(1)
	}
	if err := t.call(f); err != nil {
		t.giveUp(err)
	}
	if err := t.Close(); err != nil {
		t.giveUp(err)
	}
	t.carrier.end()
}

// A panicked is the panic of a program, with its stack.
type panicked string

func (p panicked) Error() string { return string(p) }

// call calls f. A panic becomes an error, and so does a goroutine that ends.
func (t *Transport) call(f func(*Transport) error) (err error) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err = errors.New("the goroutine of Run's function has ended by runtime.Goexit")
		defer func() {
			if v := recover(); v != nil {
				err = panicked(fmt.Sprintf("panic: %v\n\n%s", v, debug.Stack()))
			}
		}()
		err = f(t)
	}()
	<-ended
	return err
}

// giveUp says why, and ends the job. It doesn't return. Of two calls the first has its say.
func (t *Transport) giveUp(err error) {
	t.lastWords.Do(func() {
		where := ""
		if t.size > 1 {
			where = fmt.Sprintf("rank %d of %d: ", t.rank, t.size)
		}
		fmt.Fprintf(os.Stderr, "mpi: %s%s\n", where, strings.TrimPrefix(t.brief(err).Error(), "mpi: "))
		status := 1
		if _, ok := errors.AsType[panicked](err); ok {
			status = 2
		}
		t.carrier.abort(status)
	})
	select {}
}

// brief returns err without all but the first of the errors that Fail has caused, where errors.Join has joined them:
// all messages end with the same one.
func (t *Transport) brief(err error) error {
	cause, hasCause := t.failure(), false
	if cause == nil {
		return err
	}
	var kept []error
	var add func(e error)
	add = func(e error) {
		var parts []error
		if joined, ok := e.(interface{ Unwrap() []error }); ok {
			parts = joined.Unwrap()
		}
		switch all := errors.Join(parts...); {
		case all != nil && all.Error() == e.Error(): // fmt.Errorf has a text of its own
			for _, part := range parts {
				add(part)
			}
		case !errors.Is(e, cause):
			kept = append(kept, e)
		case !hasCause:
			hasCause = true
			kept = append(kept, e)
		}
	}
	add(err)
	return errors.Join(kept...)
}

// open makes the Transport of this process.
func open() (*Transport, error) {
	isLaunched, ranks := launched(os.Getenv)
	if !isLaunched {
		t := &Transport{size: 1}
		t.carrier = &alone{transport: t}
		return t, nil
	}
	t, err := openJob()
	if err != nil {
		return nil, err
	}
	if t.size == 1 && ranks > 1 {
		return nil, fmt.Errorf("the launcher has started %d processes, and the library takes each for a job of its own: "+
			"use the mpiexec of the same installation, or srun --mpi=pmi2", ranks)
	}
	return t, nil
}

// launched reports whether a launcher of MPI has started this process, and how many ranks the job has, or 0 if the
// launcher doesn't say so. In a step of srun without support of MPI, ranks would take themselves for jobs of one.
func launched(env func(string) string) (isLaunched bool, ranks int) {
	for _, name := range []string{"PMI_RANK", "PMI_FD", "PMI_PORT", "PMIX_RANK", "PMIX_NAMESPACE", "OMPI_COMM_WORLD_SIZE"} {
		isLaunched = isLaunched || env(name) != ""
	}
	size := cmp.Or(env("PMI_SIZE"), env("OMPI_COMM_WORLD_SIZE"), env("SLURM_STEP_NUM_TASKS"))
	ranks, _ = strconv.Atoi(size)
	return isLaunched || ranks > 1, ranks
}
