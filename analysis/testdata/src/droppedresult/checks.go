package droppedresult

import (
	"fmt"
	"time"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Functions whose error is all that tells of failures.

type checked struct {
	net  nn.Module
	last *tensor.Tensor
}

func (c *checked) check(x *tensor.Tensor) error { return c.net.Forward(x).Wait() }

func (c *checked) checkNamed(x *tensor.Tensor) error {
	y := c.net.Forward(x)
	if err := y.Wait(); err != nil {
		return fmt.Errorf("check: %w", err)
	}
	return nil
}

func (c *checked) warmUp(x *tensor.Tensor) error { return c.net.Forward(x).Wait() }

// What it waits for remains.
func (c *checked) advance(x *tensor.Tensor) error {
	c.last = c.net.Forward(x)
	return c.last.Wait()
}

func allFinished() error { return asyncrt.WaitAll() }

func flushed() error {
	if err := allFinished(); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	return nil
}

func finishedOf(y *tensor.Tensor) error { return y.Wait() }

// It has told of the failure.
func quiet() error {
	if asyncrt.WaitAll() != nil {
		fmt.Println("failed")
	}
	return nil
}

func startedChecked(c *checked, x *tensor.Tensor) *checked {
	c.check(x)      // want `error of c.check is thrown away, with which the failures are gone`
	c.checkNamed(x) // want `error of c.checkNamed is thrown away`
	c.warmUp(x)
	c.advance(x)
	return c
}

func ended(x *tensor.Tensor) {
	flushed()     // want `error of flushed is thrown away`
	allFinished() // want `error of allFinished is thrown away`
	finishedOf(x) // whoever has x
	_ = flushed() // it is said that nobody cares
}

func endedWell(c *checked, x *tensor.Tensor) error {
	defer allFinished()
	_ = c.check(x) // want `error of c.check is thrown away`
	if err := c.check(x); err != nil {
		flushed()
		return err
	}
	return flushed()
}

func sumOfAll(x *tensor.Tensor) *tensor.Tensor {
	y := x.Sum()
	allFinished() // y has the failure, too
	return y
}

func checkTook(c *checked, x *tensor.Tensor) time.Duration {
	start := time.Now()
	c.check(x)
	return time.Since(start)
}
