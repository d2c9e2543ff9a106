package nn

import (
	"fmt"
	"slices"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// DataParallel on several ranks: what makes Replicas of one rank the same as those of the others. All that is done
// here is done on all ranks, in the same order.

// others is what a rank has to know of the other ones.
type others struct {
	generators []*tensor.Generator // that layers may draw from
	draws      map[int][]int64     // by samples of a rank, and by generator: how many elements a pass draws
	isShared   []bool              // by parameter: its value is that of rank 0
}

// begin agrees with the other ranks on how to train.
func (r *Replicas) begin(how Parallel) {
	o := &others{generators: []*tensor.Generator{tensor.DefaultGenerator()}, isShared: make([]bool, len(r.params[0]))}
	for _, c := range Cells(r.modules[0]) {
		if g, ok := c.(*tensor.Generator); ok && !slices.Contains(o.generators, g) {
			o.generators = append(o.generators, g)
		}
	}
	o.draws = map[int][]int64{}
	r.others = o
	what := fmt.Sprintf("DataParallel: %d shards on %d devices, buckets of %d, Zero %d, %d buffers, parameters", r.shards, len(r.devices), how.Bucket, how.Zero, len(r.buffers[0]))
	for _, p := range r.params[0] {
		if p.IsSet() {
			v := p.Value()
			what += fmt.Sprint(" ", v.DType(), v.Shape())
		} else {
			what += " none"
		}
	}
	r.job.Agree(what)
}

// eachOver is each over several ranks.
//
// What a rank draws depends on where its generators are when its turn would have come, if one rank computed all
// shards. So a rank first moves them on by what the ranks before it draw. How much that is, it knows from an
// earlier pass, since all ranks draw the same. If the pass draws something else, it is computed again, on all
// ranks.
//
// A pass that draws weights, too, is computed again with those of rank 0, behind all that it has drawn: so no number
// is drawn twice. Then it draws no more weights, which shows how much of what rank 0 drew before was for weights. All
// ranks leave as much room for the rest as one rank with all shards would have.
func (r *Replicas) eachOver(name string, rows int, f func(m Module, dev device.Device, from, to int) *tensor.Tensor) []*tensor.Tensor {
	if rows < r.shards {
		wrong("DataParallel: "+name, "%d samples on a rank that computes %d shards, want one for each", rows, r.shards)
	}
	o := r.others
	r.job.Agree(fmt.Sprintf("%s of %d samples", name, rows))
	if o.draws[rows] == nil {
		o.draws[rows] = make([]int64, len(o.generators))
	}
	passes := int64(0) // how many have drawn weights, since one has not
	for {
		undo, start := r.buffersNow(), o.positions()
		o.move(start, o.draws[rows], r.job.Rank())
		results, drawn := r.pass(rows, f), o.since(start, o.draws[rows], r.job.Rank())
		again := r.shareNew()
		if again {
			passes++
			for i := range start {
				start[i] += drawn[i]
			}
		} else {
			again = r.ranks > 1 && (!slices.Equal(drawn, o.draws[rows]) || passes > 0 && slices.Max(drawn) > 0)
			for i := range start {
				start[i] += passes * int64(r.ranks-1) * drawn[i]
			}
			passes, o.draws[rows] = 0, drawn
		}
		if !again {
			o.move(start, drawn, r.ranks)
			r.shareBuffers()
			return results
		}
		o.move(start, drawn, 0)
		r.job.Agree(fmt.Sprint("draws ", start, drawn))
		tensor.Dead(results...)
		undo()
	}
}

// buffersNow returns a function that gives the buffers back what they hold now.
func (r *Replicas) buffersNow() (undo func()) {
	var states []tensor.State
	for d := range r.devices {
		states = append(states, r.remember(d))
	}
	return func() {
		for _, s := range states {
			s.Restore()
			forget(s)
		}
	}
}

// positions returns where the generators are.
func (o *others) positions() []int64 {
	at := make([]int64, len(o.generators))
	for i, g := range o.generators {
		v := g.Value()
		at[i] = v.Int64s()[1]
		tensor.Dead(v)
	}
	return at
}

// since returns how many elements have been drawn since the move.
func (o *others) since(start, draws []int64, ranks int) []int64 {
	drawn := o.positions()
	for i := range drawn {
		drawn[i] -= start[i] + int64(ranks)*draws[i]
	}
	return drawn
}

// move moves the generators to where they are when the given number of ranks have drawn so many elements each, from
// start on.
func (o *others) move(start, draws []int64, ranks int) {
	for i, g := range o.generators {
		at := start[i] + int64(ranks)*draws[i]
		v := g.Value()
		if state := v.Int64s(); state[1] != at {
			g.Set(tensor.FromOn(device.CPU(), []int64{state[0], at}))
		}
		tensor.Dead(v)
	}
}

// ofAllRanks returns the numbers that all ranks have in the place of mine, those of rank 0 first. Mine stay tracked.
func (r *Replicas) ofAllRanks(mine *tensor.Tensor) *tensor.Tensor {
	known := mine.Detach()
	parts := tensor.AllGatherOver(r.job, known)
	tensor.Dead(known, parts[r.job.Rank()])
	parts[r.job.Rank()] = mine
	all := tensor.Concat(0, parts...)
	tensor.Dead(parts...)
	return all
}

// shareNew gives all ranks the parameters of rank 0 that have got a value since the last time. It reports whether there
// are some.
func (r *Replicas) shareNew() (some bool) {
	for j, p := range r.params[0] {
		if p.IsSet() && !r.others.isShared[j] {
			r.others.isShared[j], some = true, true
			r.job.Agree(fmt.Sprint("parameter ", j))
			r.share(p, func(e int) tensor.Cell { return r.params[e][j] })
		}
	}
	if some {
		r.grads.InStep()
	}
	return some
}

// shareAll gives all ranks all that rank 0 has.
func (r *Replicas) shareAll() {
	clear(r.others.isShared)
	r.shareNew()
	r.shareBuffers()
}

func (r *Replicas) shareBuffers() {
	for j, b := range r.buffers[0] {
		if b.IsSet() {
			r.share(b, func(e int) tensor.Cell { return r.buffers[e][j] })
		}
	}
}

// share sets the cells of all replicas, which of lists by replica, to what from holds on rank 0. from is the first.
func (r *Replicas) share(from tensor.Cell, of func(e int) tensor.Cell) {
	if r.ranks == 1 {
		return
	}
	v := from.Value()
	x := v.Detach()
	y := tensor.BroadcastOver(r.job, 0, x)
	for e, dev := range r.devices {
		z := y.To(dev)
		of(e).Set(z)
		tensor.Dead(z)
	}
	tensor.Dead(v, x, y)
}
