package tensor

import (
	"slices"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/wire"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// Parameters that one rank of a job updates for all: the stages 1 and 2 of ZeRO (Rajbhandari and others 2020).
//
// Owners are chosen when gradients travel for the first time. Those that travel together have one owner, so that
// their sum goes to one rank, and so do their next values in one message. It is the rank that owns the fewest bytes
// so far. All ranks choose alike, as they send the same gradients in the same order.

// An Owner is the rank of a job that updates a [Param] for all ranks, see [Reducer.Own].
type Owner struct {
	Job  *wire.Job
	Rank int
	// Grads says that only this rank has the gradient.
	Grads bool
}

// IsElsewhere reports whether the owner is another rank than this one.
//
//asyncgen:api meta
func (o Owner) IsElsewhere() bool { return o.Job != nil && o.Rank != o.Job.Rank() }

// owned is what the copies of one parameter have in common.
type owned struct {
	first *Param   // of the copies
	Owner          // Job is nil until there is one
	r     *Reducer // nil: there will be none
	param int
	group int // parameters with the same number have been sent together
}

// Own has each parameter be updated by one rank of the job, its owner, from the next Backward on. If grads is set, sums
// of gradients go to the owners alone: [Param.Grad] is nil on the other ranks. All ranks call it alike. In a Reducer
// without a job, or with one rank, Own does nothing.
//
// An optimiser has to know of it, as those of package optim do: it updates those Params that are not elsewhere
// ([Param.Owner]) and calls [Renew] for all.
//
//asyncgen:api mutate
func (r *Reducer) Own(grads bool) {
	if r.job == nil || r.job.Size() == 1 {
		return
	}
	r.owns, r.ownsGrads = make([]*owned, len(r.copies[0])), grads
	r.load = make([]int, r.job.Size())
	for j := range r.owns {
		r.owns[j] = &owned{first: r.copies[0][j], r: r, param: j}
		for _, c := range r.copies {
			c[j].owned = r.owns[j]
		}
	}
}

// Owner returns which rank updates the Param for all. Its Job is nil if each rank does, or if that is not known
// before the first Backward.
//
//asyncgen:api meta
func (p *Param) Owner() Owner {
	if p.owned == nil {
		return Owner{}
	}
	return p.owned.Owner
}

// First returns the first one of the copies of the Param that a [Reducer] trains, or the Param if it is in none. Copies
// have the same gradient after Backward: what adds up something of all gradients counts one of them.
//
//asyncgen:api meta
func (p *Param) First() *Param {
	if p.owned == nil {
		return p
	}
	return p.owned.first
}

// HasGrad reports whether the Param has a gradient, here or where it is updated.
//
//asyncgen:api value
func (p *Param) HasGrad() bool {
	seeGrad(p)
	return p.grad != nil || p.hasGradElsewhere
}

// choose gives parameters that travel together an owner. It returns the rank that their gradients go to; -1: to all.
func (r *Reducer) choose(params []int) int {
	if r.owns == nil {
		return -1
	}
	least := slices.Index(r.load, slices.Min(r.load))
	r.groups++
	for _, j := range params {
		if o := r.owns[j]; o.Job == nil {
			o.Owner, o.group = Owner{r.job, least, r.ownsGrads}, r.groups
			v := r.copies[0][j].value
			r.load[least] += v.size * v.dtype.Size()
		}
	}
	to := r.owns[params[0]].Rank
	for _, j := range params {
		if !r.ownsGrads || r.owns[j].Rank != to {
			return -1
		}
	}
	return to
}

// Renew sends parameters that are updated by one rank, and have a gradient, from there to all others. It leaves all
// other parameters alone. set gives them the values that arrive. What is enqueued before set need not wait for them,
// also on a device with a queue. All ranks call Renew, and set, alike.
//
//asyncgen:api mutate none
func Renew(params ...*Param) (set func()) {
	type journey struct { // what goes into one message
		r     *Reducer
		group int
		rank  int
		dtype device.DType
	}
	var order []journey
	together := map[journey][]*Param{}
	for _, p := range params {
		if o := p.owned; o != nil && o.Job != nil && p.HasGrad() {
			j := journey{o.r, o.group, o.Rank, p.value.dtype}
			if together[j] == nil {
				order = append(order, j)
			}
			together[j] = append(together[j], p)
		}
	}
	var late []func()
	for _, j := range order {
		late = append(late, renew(together[j]))
	}
	return func() {
		for _, f := range late {
			f()
		}
	}
}

// renew is Renew of parameters that travel together. Copies of a parameter have one value, which travels once.
func renew(params []*Param) (set func()) {
	owner, on, dt := params[0].Owner(), params[0].value.storage.Device(), params[0].value.dtype
	size, from := 0, map[*owned]int{} // where the value of a parameter begins
	var flats []*Tensor
	for _, p := range params {
		if _, ok := from[p.owned]; ok {
			continue
		}
		from[p.owned] = size
		size += p.value.size
		if !owner.IsElsewhere() {
			flat := planned(op.Reshape, op.Attr{Shape: device.Shape{p.value.size}}, operands{p.value}, false)
			flats = append(flats, flat.move(on))
			flat.letGo()
		}
	}
	if !owner.IsElsewhere() {
		all := concat("Renew", 0, flats)
		there := all.move(hostOf(on))
		broadcast(owner.Job, owner.Rank, there, there.shape, dt, hostOf(on))
		letGo(append(flats, all, there)...)
		return func() {}
	}
	all := broadcast(owner.Job, owner.Rank, nil, device.Shape{size}, dt, hostOf(on))
	return func() {
		for _, p := range params {
			at, v := from[p.owned], p.value
			part := planned(op.Slice, op.Attr{From: at, To: at + v.size}, operands{all}, false)
			shaped := planned(op.Reshape, op.Attr{Shape: v.shape}, operands{part}, false)
			there := shaped.move(v.storage.Device())
			p.Set(there)
			letGo(part, shaped, there)
		}
		all.letGo()
	}
}
