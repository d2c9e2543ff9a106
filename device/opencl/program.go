package opencl

import (
	"fmt"

	"github.com/asyncgen/asyncgen/device/internal/cl"
	"github.com/asyncgen/asyncgen/device/kernel/clc"
)

// kernels are the program built from a source, and its kernel objects. A kernel object holds the
// arguments of its next launch, so each queue has one of its own.
type kernels struct {
	program cl.Program
	of      [maxQueues]cl.Kernel // by queue; 0: not created yet
}

// A newSource is the error of a command whose source must be compiled before it can be added to a
// queue.
type newSource struct {
	*clc.Source
	queue queueIndex
}

func (*newSource) Error() string { return "it is not compiled yet" }

// isCompiled reports whether s is compiled.
func (b *Backend) isCompiled(s *clc.Source) bool {
	return s.ID < len(b.kernels) && b.kernels[s.ID].program != 0
}

// kernel returns the kernel object of s for queue q, or a newSource.
func (b *Backend) kernel(s *clc.Source, q queueIndex) (cl.Kernel, error) {
	if !b.isCompiled(s) {
		return 0, &newSource{s, q}
	}
	k := &b.kernels[s.ID]
	if k.of[q] != 0 {
		return k.of[q], nil
	}
	var err error
	k.of[q], err = b.driver.CreateKernel(k.program, s.Name)
	return k.of[q], err
}

// compileLocked compiles a source. It releases b.mu meanwhile: the compiler may take a second, and
// commands in flight can be waited for and read during that time. The caller has taken b (isTaken).
func (b *Backend) compileLocked(s *newSource) error {
	b.mu.Unlock()
	k, err := b.program(s.Source, s.queue)
	b.mu.Lock()
	if err != nil {
		return err
	}
	for len(b.kernels) <= s.ID {
		b.kernels = append(b.kernels, kernels{})
	}
	b.kernels[s.ID] = k
	return nil
}

func (k *kernels) release(d *cl.Driver) {
	for _, of := range k.of {
		if of != 0 {
			of.Release(d)
		}
	}
	if k.program != 0 {
		k.program.Release(d)
	}
}

// program builds the program of s, from the cache if possible, and its kernel for queue q. It reads
// only fields of b that never change.
func (b *Backend) program(s *clc.Source, q queueIndex) (kernels, error) {
	file := b.cache.file(s.Text)
	if binary := load(file); binary != nil {
		if p, err := b.driver.CreateProgramFrom(b.context, b.device, binary); err == nil {
			if k, _, err := b.built(p, s, q); err == nil {
				return k, nil
			}
		}
	}
	p, err := b.driver.CreateProgram(b.context, s.Text)
	if err != nil {
		return kernels{}, err
	}
	k, log, err := b.built(p, s, q)
	if err != nil && log != "" {
		return kernels{}, fmt.Errorf("%w\n%s", err, log)
	}
	if err != nil {
		return kernels{}, err
	}
	b.cache.keep(file, func() ([]byte, error) { return b.driver.Binary(p) })
	return k, nil
}

// built builds p and creates its kernel for queue q. If that fails, it releases p: some drivers
// build binaries that lack the kernel. log is the compiler's.
func (b *Backend) built(p cl.Program, s *clc.Source, q queueIndex) (k kernels, log string, err error) {
	k.program = p
	if log, err = b.driver.Build(p, b.device, b.options()); err == nil {
		k.of[q], err = b.driver.CreateKernel(p, s.Name)
	}
	if err != nil {
		p.Release(b.driver)
	}
	return k, log, err
}
