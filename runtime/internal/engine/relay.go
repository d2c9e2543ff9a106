package engine

import "github.com/asyncgen/asyncgen/device"

// A copy between two devices that do not reach each other goes through host memory, in parts. One
// part is downloaded while the part before it is uploaded, so a large copy takes as long as the
// slower of the two transfers, not as both. Each part is two operations, a download on one device
// and an upload on the other, with a piece of host memory between them that later parts reuse. The
// source waits for the destination only when that is relayParts parts behind.
const (
	// relayBytes is the size of a part. 64 MiB between two devices of PoCL take 110 ms at once, 60 in
	// parts of 4 MiB, 47 of 2 MiB and 29 of 1 MiB and less, which package opencl has pinned memory
	// ready for (BenchmarkBetween in runtime/internal/opencltest).
	relayBytes = 1 << 20
	relayParts = 32 // the most parts that are in host memory at once
)

// relay enqueues the copy op in parts. The first part that fails spoils the whole result.
func (e *Engine) relay(op *Op, dt device.DType, pc uintptr) {
	dst, src, n, off := op.Operands[0], op.Operands[1], op.Cmd.N, op.Cmd.Off[1]
	per := max(int(e.relayBytes)/dt.Size(), 1)
	var staging [relayParts]*Storage
	for i, at := 0, 0; i == 0 || at < n; i, at = i+1, at+per {
		size := min(per, n-at)
		// The storage is used again by a later part. Its upload reads it before the next download
		// writes it, as for any two operations on one storage.
		through := &staging[i%relayParts]
		if *through == nil {
			*through = adopt(e.hostStream(), device.HostBuffer(int64(size)*int64(dt.Size())), dst.in)
		}
		down := Op{
			Cmd:      device.Command{Kernel: downloads.of(dt), N: size, Off: [device.MaxOperands]int{0, off + at}},
			Operands: [device.MaxOperands]*Storage{*through, src},
			Cost:     copyCost(int64(size) * int64(dt.Size())),
		}
		e.enqueueLinked(src.st, &down, *through, 1, down.written(1), pc)
		up := Op{
			Cmd:      device.Command{Kernel: uploads.of(dt), N: size, Off: [device.MaxOperands]int{at}},
			Operands: [device.MaxOperands]*Storage{dst, *through},
			Cost:     down.Cost,
		}
		bytes := up.written(1)
		if i > 0 { // it changes part of the result, so it depends on the parts before
			up.Operands[2], bytes = dst, 0
		}
		e.enqueueLinked(dst.st, &up, *through, 0, bytes, pc)
	}
}
