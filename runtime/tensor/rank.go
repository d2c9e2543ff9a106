package tensor

import (
	"slices"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/wire"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// Tensors of several processes, the ranks of a job. All ranks enqueue the same messages in the same order.

// AllReduceOver is [AllReduce] over all ranks of a job: each rank calls it, and gives it as many tensors, of the
// same shape and element type, on as many devices in the same order. The result is the sum of all of them, on each
// device of ts. It is the sum that one rank gets for all tensors, those of rank 0 first, to the bit. Nothing
// waits. If each device has one tensor, the hosts add.
//
// If a tensor of any rank fails, so do the results on all ranks. If a rank or its connection is lost, results fail
// with an error that wraps [device.ErrLost].
//
// Gradients do not go from one rank to another: AllReduceOver panics with a [*Mistake] if a tensor is tracked, and
// where AllReduce does. No message can be enqueued in a step that is captured. No rewritten loop runs ahead of its
// test in a process that has a job.
//
//asyncgen:api op
//go:noinline
func AllReduceOver(job *wire.Job, ts ...*Tensor) []*Tensor {
	mustAdd("AllReduceOver", ts)
	mustNotTrack("AllReduceOver", ts...)
	return reduceAll(job, ts)
}

// AllGatherOver returns the tensors that the ranks of a job give it, by rank, on the device of t. Those of all ranks
// have one shape and element type. What [AllReduceOver] says about failures and gradients holds here, too.
//
//asyncgen:api op
//go:noinline
func AllGatherOver(job *wire.Job, t *Tensor) []*Tensor {
	mustNotTrack("AllGatherOver", t)
	return gatherOver(job, t)
}

// BroadcastOver returns the tensor that one rank of a job, the root, gives it, on the device of t. The tensors of
// the other ranks say its shape and element type; their elements do not matter. What [AllReduceOver] says about
// failures and gradients holds here, too.
//
//asyncgen:api op
//go:noinline
func BroadcastOver(job *wire.Job, root int, t *Tensor) *Tensor {
	mustNotTrack("BroadcastOver", t)
	if root < 0 || root >= job.Size() {
		wrong("BroadcastOver", op.MistakeRange+" (there is no such rank)", t)
	}
	if job.Rank() == root {
		broadcast(job, root, t, t.shape, t.dtype, t.storage.Device())
		return t.detached()
	}
	return broadcast(job, root, nil, t.shape, t.dtype, t.storage.Device())
}

// broadcast is BroadcastOver. x is nil on other ranks than the root, which get it on dev.
func broadcast(job *wire.Job, root int, x *Tensor, shape device.Shape, dt device.DType, dev device.Device) *Tensor {
	n := job.Size()
	me, what := (job.Rank()-root+n)%n, messageOf(ofBroadcast, root, shape.Size())
	step := 1 // a rank gets it from the one without its lowest bit, and gives it to those with one more bit below that
	for ; step < n && me&step == 0; step *= 2 {
	}
	if me > 0 {
		x = receive(job, (me-step+root)%n, shape, dt, dev, what)
	}
	for step /= 2; step > 0; step /= 2 {
		if me+step < n {
			x.send(job, (me+step+root)%n, what)
		}
	}
	return x
}

// SendOver sends the elements of t to another rank of a job, which calls [ReceiveOver] at the same place among its
// messages. What [AllReduceOver] says about failures and gradients holds here, too.
//
//asyncgen:api mutate none
//go:noinline
func SendOver(job *wire.Job, to int, t *Tensor) {
	mustNotTrack("SendOver", t)
	t.send(job, to, messageOf(ofSend, t.size, 0))
}

// ReceiveOver returns a tensor with the elements that another rank of a job gives to [SendOver], on dev. They have the
// same number of elements and element type at both ends.
//
//asyncgen:api op
//go:noinline
func ReceiveOver(job *wire.Job, from int, dev device.Device, dt DType, shape ...int) *Tensor {
	size := device.Shape(shape).Size()
	return receive(job, from, shape, dt, dev, messageOf(ofSend, size, 0))
}

// trackedTerm is the Mistake of a tracked tensor that was to go to other ranks.
const trackedTerm = "gradients do not go from one rank to another: give it the Detach of a tensor that is tracked"

// mustNotTrack panics unless ts are tensors that may go to other ranks.
func mustNotTrack(name string, ts ...*Tensor) {
	for _, t := range ts {
		if t == nil {
			wrong(name, op.MistakeNil)
		}
		t.mustLive(name)
		if t.node != nil {
			wrong(name, trackedTerm, t)
		}
	}
}

// gatherOver is AllGatherOver. In each of log2(n) steps a
// rank gets twice what it has from a rank that is twice as far away (Bruck et al. 1997).
func gatherOver(job *wire.Job, t *Tensor) []*Tensor {
	n, me := job.Size(), job.Rank()
	flat := planned(op.Reshape, op.Attr{Shape: device.Shape{t.size}}, operands{t}, false)
	have := []*Tensor{flat.move(hostOf(t.storage.Device()))} // of ranks me, me+1, ...
	flat.letGo()
	what := messageOf(ofGather, t.size, n)
	for d := 1; d < n; d *= 2 {
		more := min(d, n-d)
		parts := have[0].another()
		if more > 1 {
			parts.letGo()
			parts = concat("AllGatherOver", 0, have[:more])
		}
		parts.send(job, (me-d+n)%n, what)
		parts.letGo()
		got := receive(job, (me+d)%n, device.Shape{more * t.size}, t.dtype, have[0].storage.Device(), what)
		for i := range more {
			have = append(have, planned(op.Slice, op.Attr{From: i * t.size, To: (i + 1) * t.size}, operands{got}, false))
		}
		got.letGo()
	}
	all := make([]*Tensor, n)
	for i, x := range have {
		there := x.move(t.storage.Device())
		all[(me+i)%n] = planned(op.Reshape, op.Attr{Shape: t.shape}, operands{there}, false)
		letGo(x, there)
	}
	return all
}

// What a message is, which both ends have to say: see device.Send.
const (
	ofSum uint64 = iota + 1
	ofGather
	ofBroadcast
	ofSend
)

// messageOf identifies a message of some kind, by two numbers that both ends know.
func messageOf(kind uint64, a, b int) uint64 {
	h := kind
	for _, v := range []int{a, b} {
		h = (h ^ uint64(v)) * 0x9e3779b97f4a7c15
		h ^= h >> 32
	}
	return h
}

// hosts has another CPU than [device.CPU] for the host's part of what devices do. Only tests have ranks in one process,
// whose work must not be mixed in one queue: a rank would wait for what is behind its own.
var hosts map[device.Device]device.Device

// hostOf returns dev, if the host can read its memory in place, or else the CPU in the scopes of dev.
func hostOf(dev device.Device) device.Device {
	if c := dev.Caps(); c.Synchronous && c.HostMemory {
		return dev
	}
	if host, ok := hosts[dev.Unscoped()]; ok {
		return host.Within(dev)
	}
	return device.CPU().Within(dev)
}

// send sends the elements of t to a rank.
func (t *Tensor) send(job *wire.Job, rank int, what uint64) {
	t = t.now()
	x := t
	if dev := t.storage.Device(); hostOf(dev) != dev {
		x = t.copyTo(hostOf(dev))
	} else if t.strides != nil {
		x = contiguous(t, dev)
	}
	eng().Send(job.To(rank), x.storage, x.off, x.size, x.dtype, (what+uint64(x.dtype))^job.Agreed())
	if x != t {
		x.letGo()
	}
}

// receive returns a tensor that a rank sends, on dev.
func receive(job *wire.Job, rank int, shape device.Shape, dt device.DType, dev device.Device, what uint64) *Tensor {
	on := hostOf(dev)
	t := &Tensor{storage: eng().Receive(job.From(rank), on, shape.Size(), dt, (what+uint64(dt))^job.Agreed()), shape: slices.Clone(shape), size: shape.Size(), dtype: dt}
	if on == dev {
		return t
	}
	defer t.letGo()
	return t.copyTo(dev)
}
