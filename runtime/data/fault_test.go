package data_test

import (
	"errors"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/fault"
	"github.com/asyncgen/asyncgen/device/sim"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/data"
)

// What a worker can't bring to the device is an error of the loop's line.
func TestLine(t *testing.T) {
	b := fault.New(sim.New(sim.Options{}))
	defer b.Close()
	set := data.Pair(data.Array[uint8]{Data: make([]uint8, 6), Shape: []int{6}}, data.Array[int64]{Data: make([]int64, 6), Shape: []int{6}})
	l := data.NewLoader(set, 2, data.Options{Device: device.Wrap("sim", device.KindSimulated, b)})
	b.Arm(fault.Faults{Call: fault.Command, N: 1})
	_, file, line, _ := runtime.Caller(0)
	for batch, err := range l.All() {
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range []interface{ Wait() error }{batch.X, batch.Y} {
			op, ok := errors.AsType[*asyncrt.OpError](x.Wait())
			if ok && (op.Op != "upload" || filepath.Base(op.File) != filepath.Base(file) || op.Line != line+1) {
				t.Errorf("%s of %s:%d, want upload of line %d", op.Op, op.File, op.Line, line+1)
			}
		}
	}
	if b.Fired() == 0 {
		t.Error("nothing failed")
	}
}
