package tensor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu"
	"github.com/asyncgen/asyncgen/device/devicetest"
	"github.com/asyncgen/asyncgen/device/sim"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A counting backend calls hit when it gets command number at.
type counting struct {
	device.Backend
	commands, at atomic.Int64
	hit          func()
}

func (c *counting) Submit(cmds []device.Command) (device.Ticket, error) {
	for range cmds {
		if c.commands.Add(1) == c.at.Load() {
			c.hit()
		}
	}
	return c.Backend.Submit(cmds)
}

func (c *counting) Memory() *device.Allocator { return device.MemoryOf(c.Backend) }

// A context ends when the device gets the n-th command of a program, for n from 1 until the program is done before.
// Results that belong to the context have their values or fail with its cause, and the error names the operation
// and the line. Other results have their values. WaitAll returns no failure, and no memory stays in use.
func TestCancelled(t *testing.T) {
	gone := errors.New("the client is gone")
	for name, open := range map[string]func() device.Backend{
		"cpu": func() device.Backend { return cpu.New() },
		"sim": func() device.Backend { return sim.New(sim.Options{}) },
	} {
		for _, o := range []engine.Options{{Mode: engine.Async}, {Mode: engine.Async, Workers: 4, Ring: 4}, {Mode: engine.Naive}, {Mode: engine.Shuffle, Seed: 1}} {
			t.Run(fmt.Sprintf("%s/%+v", name, o), func(t *testing.T) {
				c := &counting{Backend: open()}
				on := device.Wrap(name, device.KindSimulated, c)
				e := engine.New(o)
				defer tensor.SetEngine(e)()
				param := func() *tensor.Param { return tensor.NewParam(tensor.On(on).Full(0.01, 100, 50)) }
				want := step(tensor.On(on), param()).Item()
				failed := 0
				for n := int64(1); ; n++ {
					ctx, cancel := context.WithCancelCause(t.Context())
					c.hit = func() { cancel(gone) }
					c.commands.Store(0)
					c.at.Store(n)
					request := device.WithContext(ctx, on)
					scoped := step(tensor.On(request), param())
					plain := step(tensor.On(on), param())
					got, err := read(scoped)
					switch op, isOp := errors.AsType[*engine.OpError](err); {
					case err == nil && got != want:
						t.Errorf("command %d: got %v, want %v", n, got, want)
					case err != nil:
						failed++
						if !isOp || !errors.Is(err, gone) || op.Op == "" || op.Line == 0 || !strings.HasSuffix(op.File, "fault_test.go") {
							t.Errorf("command %d: %+v", n, err)
						}
					}
					if got, err := read(plain); got != want || err != nil {
						t.Errorf("command %d: what does not belong to it is %v, %v, want %v", n, got, err, want)
					}
					if err := e.Synchronize(context.Background(), request); ctx.Err() != nil && !errors.Is(err, gone) || ctx.Err() == nil && err != nil {
						t.Errorf("command %d: Synchronize: %v", n, err)
					}
					if err := e.WaitAll(context.Background()); err != nil {
						t.Errorf("command %d: WaitAll: %v", n, err)
					}
					ended := ctx.Err() != nil
					cancel(nil)
					if !ended {
						break
					}
				}
				// a queue may get all commands before any of them is run
				atOnce := name == "sim" && o.Mode == engine.Async && o.Ring == 0
				if failed == 0 && !atOnce {
					t.Error("no context has ended in time")
				}
				if live := devicetest.Live(c, 0); live != 0 {
					t.Errorf("%d bytes are lost", live)
				}
				if err := e.Close(); err != nil {
					t.Error(err)
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
