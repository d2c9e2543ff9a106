package loopcall

import (
	"batch"
	"fmt"
	"gauges"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Functions that read what the step before has left, when this one has been enqueued.

func lateBySend(data []Batch, out chan<- float64) {
	var before *tensor.Tensor
	emit := func() {
		if before != nil {
			out <- before.Item()
		}
	}
	for _, b := range data {
		p := batch.Loss(w, b)
		emit()
		before = p
	}
	emit()
}

func lateAndCleared(data []Batch) (total float64) {
	var before *tensor.Tensor
	flush := func() {
		if before != nil {
			total += before.Item()
			before = nil
		}
	}
	for _, b := range data {
		p := batch.Loss(w, b)
		flush()
		before = p
	}
	flush()
	return total
}

type lateRunner struct {
	prev  *tensor.Tensor
	at    int
	total float64
	queue []*tensor.Tensor
}

func (r *lateRunner) inField(data []Batch) {
	for _, b := range data {
		p := batch.Loss(w, b)
		if r.prev != nil {
			r.total += r.prev.Item()
		}
		r.prev = p
	}
}

func (r *lateRunner) emit() {
	if r.prev != nil {
		r.total += r.prev.Item()
	}
}

func (r *lateRunner) byMethod(data []Batch) {
	for _, b := range data {
		p := batch.Loss(w, b)
		r.emit()
		r.prev = p
	}
	r.emit()
}

func (r *lateRunner) push(p *tensor.Tensor) {
	if r.prev != nil {
		r.total += r.prev.Item()
	}
	r.prev = p
}

func (r *lateRunner) byPush(data []Batch) {
	for _, b := range data {
		r.push(batch.Loss(w, b))
	}
}

func lateStruct(data []Batch) (total float64) {
	var prev struct {
		loss *tensor.Tensor
		n    int
	}
	show := func() {
		if prev.loss != nil {
			fmt.Println(prev.n, prev.loss)
		}
	}
	for i, b := range data {
		p := batch.Loss(w, b)
		show()
		prev.loss, prev.n = p, i
	}
	show()
	return total
}

func lateSwap(data []Batch) (total float64) {
	var prev, cur *tensor.Tensor
	for _, b := range data {
		prev, cur = cur, batch.Loss(w, b)
		if prev != nil {
			total += prev.Item()
		}
	}
	return total + cur.Item()
}

func lateHook(data []Batch) (total float64) {
	var last *tensor.Tensor
	eachLoss(data, func(loss *tensor.Tensor) {
		if last != nil {
			total += last.Item()
		}
		last = loss
	})
	return total + last.Item()
}

func eachLoss(data []Batch, f func(loss *tensor.Tensor)) {
	for _, b := range data {
		f(batch.Loss(w, b))
	}
}

func lateClosure(data []Batch) (total float64) {
	var last *tensor.Tensor
	late := func(t *tensor.Tensor) float64 {
		prev := last
		last = t
		if prev == nil {
			return 0
		}
		return prev.Item()
	}
	for _, b := range data {
		total += late(batch.Loss(w, b))
	}
	return total + last.Item()
}

func (r *lateRunner) next(t *tensor.Tensor) float64 {
	prev := r.prev
	r.prev = t
	if prev == nil {
		return 0
	}
	return prev.Item()
}

func (r *lateRunner) byNext(data []Batch) (total float64) {
	for _, b := range data {
		total += r.next(batch.Loss(w, b))
	}
	return total
}

func (r *lateRunner) byQueue(data []Batch) (total float64) {
	for _, b := range data {
		r.queue = append(r.queue, batch.Loss(w, b))
		if len(r.queue) > 2 {
			total += r.queue[0].Item()
			r.queue = r.queue[1:]
		}
	}
	return total
}

func (r *lateRunner) put(p *tensor.Tensor) {
	r.queue = append(r.queue, p)
	if len(r.queue) > 2 {
		r.total += r.queue[0].Item()
		r.queue = r.queue[1:]
	}
}

func (r *lateRunner) byPut(data []Batch) {
	for _, b := range data {
		r.put(batch.Loss(w, b))
	}
}

func lateRun(data []Batch, out chan<- float64) {
	r := &lateRunner{}
	for _, b := range data {
		p := batch.Loss(w, b)
		if r.prev != nil {
			out <- r.prev.Item()
		}
		r.prev = p
	}
}

func lateValue(data []Batch) (total float64) {
	last := batch.Loss(w, data[0])
	value := func() float64 { return last.Item() }
	for _, b := range data[1:] {
		p := batch.Loss(w, b)
		total += value()
		last = p
	}
	return total + value()
}

func lateGetter(data []Batch) (total float64) {
	r := &lateRunner{}
	for _, b := range data {
		p := batch.Loss(w, b)
		total += r.value()
		r.prev = p
	}
	return total
}

func (r *lateRunner) value() float64 {
	if r.prev == nil {
		return 0
	}
	return r.prev.Item()
}

func lateFunc(data []Batch) (total float64) {
	var wait func() float64
	for _, b := range data {
		p := batch.Loss(w, b)
		if wait != nil {
			total += wait()
		}
		wait = func() float64 { return p.Item() }
	}
	return total + wait()
}

func lateMethodValue(data []Batch) (total float64) {
	wait := func() float64 { return 0 }
	for _, b := range data {
		p := batch.Loss(w, b)
		total += wait()
		wait = p.Item
	}
	return total + wait()
}

func lateLog(before *tensor.Tensor) {
	if before != nil {
		fmt.Println(before)
	}
}

func lateHelper(data []Batch) {
	var before *tensor.Tensor
	for _, b := range data {
		p := batch.Loss(w, b)
		lateLog(before)
		before = p
	}
	lateLog(before)
}

type lateBox struct{ r *lateRunner }

func (x *lateBox) ofOther(data []Batch) {
	for _, b := range data {
		p := batch.Loss(w, b)
		x.r.emit()
		x.r.prev = p
	}
}

func lateAfterFirst(data []Batch) (total float64) {
	var last *tensor.Tensor
	read := func() {
		total += last.Item()
	}
	for i, b := range data {
		p := batch.Loss(w, b)
		if i > 0 {
			read()
		}
		last = p
	}
	read()
	return total
}

// Reads of this step, and reads while the device has nothing to do.

func thisStep(data []Batch) (total float64) {
	var last *tensor.Tensor
	read := func() {
		total += last.Item()
	}
	for _, b := range data {
		last = batch.Loss(w, b)
		read() // want `read waits for the device in each iteration`
	}
	return total
}

func beforeWork(data []Batch) (total float64) {
	last := batch.Loss(w, data[0])
	read := func() {
		total += last.Item()
	}
	for _, b := range data[1:] {
		read() // want `read waits for the device in each iteration`
		last = batch.Loss(w, b)
	}
	return total
}

func (r *lateRunner) thisStepByMethod(data []Batch) {
	for _, b := range data {
		r.prev = batch.Loss(w, b)
		r.emit() // want `r.emit waits for the device in each iteration`
	}
}

func (r *lateRunner) thisStepInField(data []Batch) {
	for _, b := range data {
		r.prev = batch.Loss(w, b)
		r.total += r.prev.Item()
	}
}

func (r *lateRunner) beforeWorkByMethod(data []Batch) {
	for _, b := range data {
		r.emit() // want `r.emit waits for the device in each iteration`
		r.prev = batch.Loss(w, b)
	}
}

// Methods of another package.
func behind(data []Batch, late *gauges.Behind, now *gauges.Ahead) {
	for _, b := range data {
		loss := batch.Loss(w, b)
		late.Push(loss)
		now.Push(loss) // want `now.Push waits for the device in each iteration`
	}
}

// A method that clears what it has read leaves nothing for the next step.
func (r *lateRunner) take(Batch) {
	r.total += r.prev.Item()
	r.prev = nil
}

func (r *lateRunner) taken(data []Batch) {
	for _, b := range data {
		r.prev = batch.Loss(w, b)
		r.take(b) // want `r.take waits for the device in each iteration`
	}
}
