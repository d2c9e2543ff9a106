package nn

import (
	"fmt"
	"strings"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/wire"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A Parallel says how [DataParallel] divides the work.
type Parallel struct {
	// Devices has a device for each replica, in the order of the ring of [tensor.AllReduce]. If it is empty,
	// there is one replica, on the default device.
	Devices []device.Device
	// Shards is the number of parts that a batch is cut into, a multiple of the number of devices of all ranks.
	// The bits of gradients depend on it, and not on the devices. More shards serve more devices, and cost more: each
	// has products of its own, whose operands are copied again, and gradients that are added. 0: 8.
	Shards int
	// Bucket is the number of bytes of gradients that travel together, see [tensor.NewReducer]. Small
	// buckets begin earlier and need more copies. Bits depend on it, too. 0: 1 MiB.
	Bucket int
	// Job, if it is not nil, has this process train together with the other ranks of a job. See [DataParallel].
	Job *wire.Job
	// Zero is the stage of ZeRO, which has each rank of the Job hold less. 0: all ranks hold all. 1: each parameter
	// is updated by one rank, which alone holds what the optimiser remembers about it, and sends the others its next
	// value. 2: that rank alone has its gradient, too. See [DataParallel].
	Zero int
}

// defaultShards serves 1, 2, 4 and 8 devices.
const defaultShards = 8

// DataParallel returns a module that computes what m computes, on several devices at once. Each
// device has a replica of m. Each batch is cut into shards, and each replica computes some of them.
// The module is used as m would be:
//
//	net := nn.DataParallel(model, nn.Parallel{Devices: device.GPUs()})
//	opt := optim.SGD(net.Params(), 0.005)
//	for _, b := range batches {
//		opt.Minimize(nn.MSELoss(net.Forward(b.X), b.Y))
//	}
//
// Training gives the same bits on any devices: a batch is always cut into the same shards, and
// [tensor.AllReduce] adds their gradients in their order, so all replicas take the same steps. The
// results are those of m alone within rounding, but for layers such as [BatchNorm] and [Dropout], to
// which each shard is a batch. Gradients of the last layers travel while those of the layers before are
// computed. Nothing waits.
//
// M itself becomes the replica of the first device, and its parameters and buffers move there. The
// other replicas are clones, see [Clone]. Weights that m doesn't have yet are drawn by the first shard
// that needs them, and copied to the other replicas. DataParallel panics if m is nil or can't be cloned, if a
// part of it is [Frozen], as that can't move, and if the number of shards is no multiple of the number of
// devices. What is not to learn is left out of the Params that an optimiser is given.
//
// All replicas should draw from one generator, as they do by default: shards are enqueued in their
// order on any devices.
//
// # Several machines
//
// With a Job, all ranks of it run the same program, and each has as many devices. The shards are numbered over all
// ranks, in the order of the ranks. A rank is given its own part of each batch, such as a data.Loader makes with
// Options.Rank: with R ranks, part r of R equal ones. All parts have the same number of samples, at least one for
// each shard of a rank.
//
//	batches := data.NewLoader(set, 256, data.Options{Rank: job.Rank(), Ranks: job.Size()})
//	net := nn.DataParallel(model, nn.Parallel{Job: job})
//	opt := optim.SGD(net.Params(), 0.005)
//	for b := range batches.All() {
//		opt.Minimize(net.Loss(nn.MSELoss, b.X, b.Y))
//	}
//
// Loss is the mean over the whole batch, on each rank, and its gradient is that of the whole batch. Forward gives the
// results of the rank's own samples alone, without gradients. So training uses Loss. Whatever a program decides must
// not depend on what only one rank knows.
//
// Training gives the same bits on any number of ranks, and those of a program without a Job that is given the whole
// batches. Weights, those that are drawn later too, and buffers are those of rank 0. Layers that draw, such as
// [Dropout], draw on each rank what one rank alone would draw for its shards: a rank moves its generators on by what
// the others draw. For that, shards of the same length draw the same number of elements, and the generators are the
// default one and those among the cells of m. They have the same seeds and positions on all ranks. If a Forward or Loss
// draws weights, or another number than the one before, DataParallel computes it again. Only the bits of a model whose
// weights are drawn in a pass that also draws otherwise differ from those without a Job.
//
// A rank that has other shards, devices, draws or gradients of other parameters than the rest loses the job, with an
// error that says so.
//
// # Memory of several machines
//
// With Zero, ranks share what the optimiser remembers, at stage 2 the gradients as well, and training gives the same
// bits. Gradients that travel together, see Bucket, belong to one rank: so each rank has an equal share, and up to a
// bucket or a parameter more. Stage 1 sends half as much again as 0, and stage 2 about as much.
//
// All optimisers of package optim work with Zero, with Guard and Group and clipping. Before rank 0 saves one, all
// ranks call its Gather. The file is the same as without Zero, and may be loaded by any number of ranks. At stage 2,
// tensor.Param.Grad is nil on ranks that don't have the gradient. Optimisers of one's own do as [tensor.Reducer.Own]
// says.
//
//asyncgen:api value 0
func DataParallel(m Module, how Parallel) *Replicas {
	mustNotBeNil("DataParallel", m)
	devices, shards := how.Devices, how.Shards
	if len(devices) == 0 {
		devices = []device.Device{device.Default()}
	}
	if shards == 0 {
		shards = defaultShards
	}
	ranks := 1
	if how.Job != nil {
		ranks = how.Job.Size()
	}
	if all := ranks * len(devices); shards < 0 || shards%all != 0 {
		wrong("DataParallel", "%d shards can't be shared equally by %d devices: set Parallel.Shards to a multiple", shards, all)
	}
	r := &Replicas{job: how.Job, ranks: ranks, devices: append([]device.Device(nil), devices...), shards: shards / ranks}
	if how.Zero < 0 || how.Zero > 2 {
		wrong("DataParallel", "Zero is %d, want a stage from 0 to 2", how.Zero)
	}
	mustMove(m)
	var params [][]*Param
	for i := range devices {
		replica := m
		if i > 0 {
			replica = Clone(m)
		}
		r.modules = append(r.modules, replica)
		params = append(params, replica.Params())
		r.buffers = append(r.buffers, buffers(replica))
		if len(params[i]) != len(params[0]) || len(r.buffers[i]) != len(r.buffers[0]) {
			wrong("DataParallel", "%T has %d parameters and %d buffers, and its clone %d and %d", m, len(params[0]), len(r.buffers[0]), len(params[i]), len(r.buffers[i]))
		}
	}
	r.params = params
	r.grads = tensor.NewReducerOver(r.job, r.shards, how.Bucket, params...)
	if how.Zero > 0 {
		r.grads.Own(how.Zero == 2)
	}
	if r.job != nil {
		r.begin(how)
	}
	r.Sync()
	return r
}

// mustMove panics if m has something that can't be given the value that it has on another device or rank.
func mustMove(m Module) {
	for _, c := range Cells(m) {
		if f, ok := c.(interface{ IsFrozen() bool }); ok && f.IsFrozen() {
			wrong("DataParallel", "a part of %T is frozen, and has to move to devices and ranks: give the optimiser the Params that are to learn instead", m)
		}
	}
}

func buffers(m Module) (list []*Buffer) {
	for _, c := range Cells(m) {
		if b, ok := c.(*Buffer); ok {
			list = append(list, b)
		}
	}
	return list
}

// Replicas is a module that is computed on several devices at once, see [DataParallel]. One
// goroutine at a time may use it.
type Replicas struct {
	modules []Module // by device
	devices []device.Device
	params  [][]*Param
	buffers [][]*Buffer
	shards  int // of this rank
	grads   *tensor.Reducer
	isWhole bool // no parameter is without a value

	job    *wire.Job // nil: this process is alone
	ranks  int       // 1 then
	others *others   // what a rank has to know of the others; nil without a job

	isFrozen bool // there is one replica, which is used as it is
}

// String draws the model as a tree, beneath a line with the devices and the rank. It does not wait.
//
//asyncgen:api meta
func (r *Replicas) String() string { return tree(r) }

func (r *Replicas) describe() string {
	names := make([]string, len(r.devices))
	for i, d := range r.devices {
		names[i] = d.String()
	}
	on := "DataParallel on " + strings.Join(names, ", ")
	if r.job != nil {
		on += fmt.Sprintf(", rank %d of %d", r.job.Rank(), r.ranks)
	}
	return on
}

// Forward implements [Module]. It cuts x along its first axis into shards, whose lengths differ by
// one at most. Each replica computes its shards, and Forward returns the results side by side, on
// the device of x. Empty shards are not computed.
//
// Buffers, such as running statistics, become what the first shard makes of them, in all replicas.
// No shard sees what another one does to a buffer.
//
// Forward panics if parameters of one replica were set, by an optimiser or otherwise, or their gradients by
// SetGrad, and those of another were not.
//
//asyncgen:api op recv
//go:noinline
func (r *Replicas) Forward(x *tensor.Tensor) *tensor.Tensor {
	if r.isFrozen {
		return r.modules[0].Forward(x)
	}
	outs := r.each("Forward", x, func(m Module, dev device.Device, from, to int) *tensor.Tensor {
		in := shard(x, dev, from, to)
		y := m.Forward(in)
		out := y.To(x.Device())
		if isDiscreet(m) {
			tensor.Dead(in, y)
		}
		return out
	})
	y := tensor.Concat(0, outs...)
	tensor.Dead(outs...)
	if r.job != nil {
		return y.Detach()
	}
	return y
}

// Loss returns loss(r.Forward(x), y) within rounding, on the device of x. Each device computes loss for its own
// shards, so predictions need not travel. y has one target for each sample of x. loss must be a mean over samples,
// such as [MSELoss] or [CrossEntropy]. With a Job, it is the mean over the samples of all ranks, in memory of the
// host.
//
//asyncgen:api call 0 loop
//go:noinline
func (r *Replicas) Loss(loss func(pred, target *tensor.Tensor) *tensor.Tensor, x, y *tensor.Tensor) *tensor.Tensor {
	if r.isFrozen {
		return loss(r.modules[0].Forward(x), y)
	}
	if x.Rank() > 0 && (y.Rank() == 0 || y.Dim(0) != x.Dim(0)) {
		wrong("DataParallel", "Loss: targets have shape %v, want one for each of %d samples", y.Shape(), x.Dim(0))
	}
	at := x.Device()
	if c := at.Caps(); r.job != nil && !(c.Synchronous && c.HostMemory) {
		at = device.CPU() // a device with a queue would wait for the losses of others before it went on
	}
	losses := r.each("Loss", x, func(m Module, dev device.Device, from, to int) *tensor.Tensor {
		in, target := shard(x, dev, from, to), shard(y, dev, from, to)
		l := loss(m.Forward(in), target)
		if l.Size() != 1 {
			wrong("DataParallel", "Loss: the loss has shape %v, want one number", l.Shape())
		}
		flat := l.Reshape(1)
		defer tensor.Dead(flat)
		return flat.To(at)
	})
	all := tensor.Concat(0, losses...)
	tensor.Dead(losses...)
	if r.job != nil {
		all = r.ofAllRanks(all)
	}
	w := tensor.FromOn(at.Unscoped(), r.weights(x.Dim(0))).As(all.DType())
	weighted := all.Mul(w)
	mean := weighted.Sum()
	tensor.Dead(all, w, weighted)
	return mean
}

// weights returns which share of a batch each shard of all ranks is, if this rank has the given number of rows of it.
func (r *Replicas) weights(rows int) (w []float64) {
	for range r.ranks {
		for i := range r.shards {
			if from, to := r.bounds(i, rows); from < to || rows == 0 && i == 0 {
				w = append(w, float64(to-from)/float64(max(r.ranks*rows, 1)))
			}
		}
	}
	return w
}

// bounds returns the rows of shard i, of this rank's.
func (r *Replicas) bounds(i, rows int) (from, to int) {
	return i * rows / r.shards, (i + 1) * rows / r.shards
}

// shard returns the samples from up to, but not including, to of x, on a device.
func shard(x *tensor.Tensor, dev device.Device, from, to int) *tensor.Tensor {
	rows := x.Slice(0, from, to)
	y := rows.To(dev)
	tensor.Dead(rows)
	return y
}

// each calls f for each shard of x with its replica, and returns the results.
func (r *Replicas) each(name string, x *tensor.Tensor, f func(m Module, dev device.Device, from, to int) *tensor.Tensor) []*tensor.Tensor {
	if x.Rank() == 0 {
		wrong("DataParallel: "+name, "the input has no axes, want one that numbers the samples")
	}
	if p, ok := r.grads.InStep(); !ok {
		wrong("DataParallel: "+name, "parameter %d was set in some replicas only: give the Params of what DataParallel has returned to optimisers and what clips, or call Sync", p)
	}
	if r.job != nil {
		return r.eachOver(name, x.Dim(0), f)
	}
	return r.pass(x.Dim(0), f)
}

// pass calls f for the shards of this rank, which has the given number of rows.
func (r *Replicas) pass(rows int, f func(m Module, dev device.Device, from, to int) *tensor.Tensor) (results []*tensor.Tensor) {
	first := -1
	before := make([]tensor.State, len(r.devices))
	for d := range before {
		before[d] = r.remember(d)
	}
	var after tensor.State
	for i := range r.shards {
		from, to := r.bounds(i, rows)
		if from == to && (rows > 0 || i > 0) {
			continue
		}
		d := i * len(r.devices) / r.shards
		before[d].Restore()
		r.grads.Shard(i, func() { results = append(results, f(r.modules[d], r.devices[d], from, to)) })
		r.complete(d)
		if first < 0 {
			first, after = d, r.remember(d)
		}
	}
	after.Restore()
	r.copyBuffers(first)
	for _, s := range append(before, after) {
		forget(s)
	}
	return results
}

// remember returns what the buffers of replica d hold.
func (r *Replicas) remember(d int) tensor.State {
	cells := make([]tensor.Cell, len(r.buffers[d]))
	for i, b := range r.buffers[d] {
		cells[i] = b
	}
	return tensor.Snapshot(cells...)
}

func forget(s tensor.State) {
	for _, t := range s.Tensors() {
		if t != nil {
			tensor.Dead(t)
		}
	}
}

// complete gives parameters that replica d alone has drawn to the others.
func (r *Replicas) complete(d int) {
	if r.isWhole {
		return
	}
	r.isWhole = true
	for j, p := range r.params[d] {
		if !p.IsSet() {
			r.isWhole = false
			continue
		}
		for e, params := range r.params {
			if !params[j].IsSet() {
				copyCell(params[j], p, r.devices[e])
			}
		}
	}
	r.grads.InStep()
}

// copyBuffers gives all replicas the buffers of replica d.
func (r *Replicas) copyBuffers(d int) {
	for i, b := range r.buffers[d] {
		for e := range r.devices {
			if b.IsSet() && e != d {
				copyCell(r.buffers[e][i], b, r.devices[e])
			}
		}
	}
}

// copyCell sets to to the value of from, copied to a device.
func copyCell(to, from tensor.Cell, dev device.Device) {
	v := from.Value()
	x := v.Detach()
	y := x.To(dev)
	to.Set(y)
	tensor.Dead(v, x, y)
}

// Sync gives all replicas the parameters and buffers of the first one, which is the module that was
// given to [DataParallel], on rank 0 of a Job. It is needed after these were set, or restored from a [Snapshot].
// Gradients are left as they are.
//
//asyncgen:api mutate
func (r *Replicas) Sync() {
	if r.isFrozen {
		return
	}
	r.isWhole = true
	for j, p := range r.params[0] {
		if !p.IsSet() {
			r.isWhole = false
			continue
		}
		for e := range r.devices {
			copyCell(r.params[e][j], p, r.devices[e])
		}
	}
	for _, b := range r.buffers[0] {
		if b.IsSet() {
			copyCell(b, b, r.devices[0])
		}
	}
	r.copyBuffers(0)
	if r.job != nil {
		r.shareAll()
	}
	r.grads.InStep()
}

// Params implements [Module]: it lists the parameters of all replicas, one replica after the other. An
// optimiser and the functions that clip need all of them. For sums over all gradients and the like, take the parameters
// of one replica: gradients are the same in all.
//
//asyncgen:api meta
func (r *Replicas) Params() []*Param {
	var all []*Param
	for _, params := range r.params {
		all = append(all, params...)
	}
	return all
}

// Cells implements [Stateful]: it lists the cells of all replicas. To restore a [Snapshot] of one
// replica, such as the module that was given to [DataParallel], call Sync after it.
//
//asyncgen:api meta
func (r *Replicas) Cells() []tensor.Cell {
	var all []tensor.Cell
	for _, m := range r.modules {
		all = append(all, Cells(m)...)
	}
	return all
}

// Replica returns the module of the i-th device; 0 is the module that was given to [DataParallel].
//
//asyncgen:api value
func (r *Replicas) Replica(i int) Module { return r.modules[i] }
