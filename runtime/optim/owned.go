package optim

import (
	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// What an optimiser remembers about a parameter that one rank of a job updates for all is on that rank alone: see
// tensor.Reducer.Own.

// Gather gives rank 0 of a job what the optimiser remembers on other ranks, so that it can be saved there. All ranks
// call it, at the same place among their messages. Nothing waits. The next Step lets go of it. Without
// nn.Parallel.Zero, Gather does nothing.
//
//	opt.Gather()
//	if job.Rank() == 0 {
//		err = run.SaveAsync(step)
//	}
//
//asyncgen:api mutate
//go:noinline
func (o *Optimizer) Gather() {
	for _, part := range o.parts {
		part.Gather()
	}
	for i, p := range o.params {
		owner := p.Owner()
		if owner.Job == nil || owner.Rank == 0 || o.counts[1+i] == 0 {
			continue
		}
		for s := range o.state {
			if o.state[s] == nil {
				continue
			}
			b := &o.state[s][i]
			switch owner.Job.Rank() {
			case owner.Rank:
				o.mustRemember(i)
				v := b.Value()
				tensor.SendOver(owner.Job, 0, v)
				tensor.Dead(v)
			case 0:
				x := p.Value()
				v := tensor.ReceiveOver(owner.Job, owner.Rank, x.Device(), wideType(x.DType()), x.Shape()...)
				b.Set(v)
				tensor.Dead(x, v)
			}
		}
	}
}

func wideType(dt device.DType) device.DType {
	if dt.IsStorage() {
		return dt.Wide()
	}
	return dt
}

// forget lets go of what is remembered about parameter i, which another rank updates.
func (o *Optimizer) forget(i int) {
	for s := range o.state {
		if o.state[s] != nil && o.state[s][i].IsSet() {
			tensor.Changing(&o.state[s][i])
			o.state[s][i] = tensor.Buffer{}
		}
	}
}

// mustRemember panics if parameter i has been updated, and other ranks alone know what is remembered about it.
func (o *Optimizer) mustRemember(i int) {
	if o.counts[1+i] == 0 {
		return
	}
	for s := range o.state {
		if o.state[s] != nil && !o.state[s][i].IsSet() {
			wrong("Step", "parameter %d has been updated before, and its %q is not on this rank: the optimiser was loaded "+
				"from less than Gather gives, or its parameters belong to another DataParallel now", i, slot(s))
		}
	}
}

// cell is the cell of a state of parameter i.
func (o *Optimizer) cell(s slot, i int) tensor.Cell {
	b := &o.state[s][i]
	if owner := o.params[i].Owner(); owner.IsElsewhere() && !b.IsSet() && o.counts[1+i] > 0 {
		return away{b, owner.Rank}
	}
	return b
}

// away is the cell of a state that is on another rank. It can be set.
type away struct {
	*tensor.Buffer
	rank int
}

// Away returns the rank that has the value: nobody else can save it.
func (a away) Away() int { return a.rank }
