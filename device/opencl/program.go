package opencl

import (
	"fmt"

	"github.com/asyncgen/asyncgen/device/internal/cl"
	"github.com/asyncgen/asyncgen/device/kernel/clc"
)

// kernels are what was made of a source. A kernel holds the arguments of its next launch: each
// queue has one of its own.
type kernels struct {
	program cl.Program
	of      [maxQueues]cl.Kernel
}

// A newSource is what an error says when a source has to be compiled before a command can be added
// that needs it in a queue.
type newSource struct {
	*clc.Source
	queue queueIndex
}

func (*newSource) Error() string { return "it is not compiled yet" }

// isCompiled reports whether the program of s is there.
func (b *Backend) isCompiled(s *clc.Source) bool {
	return s.ID < len(b.kernels) && b.kernels[s.ID].program != 0
}

// kernel returns the kernel of s for queue q, or a newSource.
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

// compileLocked compiles a source. b.mu is not held meanwhile: what is done before the compiler is,
// which may take a second, can be waited for and read. Who calls it has b taken.
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

// release gives up what there is.
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

// program returns the program of s, built, with its kernel for queue q. Of b, it reads only what never changes.
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
	if file != "" {
		if binary, err := b.driver.Binary(p); err == nil {
			store(file, binary)
		}
	}
	return k, nil
}

// built builds p and makes its kernel for queue q, or else releases it. Some drivers build binaries
// that lack the kernel.
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
