package engine

import (
	"testing"

	"github.com/asyncgen/asyncgen/device"
)

// A waiter for an operation that reads many storages executes what the operation needs while the only
// worker is busy.
func TestManyReadsAreHelpedWith(t *testing.T) {
	runOn(t, newCPU(1), Options{Mode: Async, MaxBytes: -1}, func(s *setup) {
		k, started, open := blocking()
		defer open()
		blocked := s.apply(k, s.from(1))
		<-started
		reads := []*Storage{s.apply(addOne, s.from(1)), s.apply(addOne, s.apply(addOne, s.from(2)))}
		reads = append(reads, reads[0])
		out := s.new(1)
		s.e.Enqueue(&Op{Cmd: device.Command{Kernel: kernelsOf[kMany], N: 1, Args: &device.Args{Parts: make([]device.Part, len(reads))}},
			Operands: [device.MaxOperands]*Storage{out}, Reads: reads})
		s.want(out, 2+4+2)
		if blocked.Ready() {
			s.Error("the blocked operation has finished")
		}
		open()
		s.want(blocked, 2)
	})
}
