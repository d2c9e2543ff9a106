package loopread

import (
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"

	"batch"
	"lists"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Functions that are values.

type lossFunc func(pred, target *tensor.Tensor) *tensor.Tensor

type layer interface {
	Forward(x *tensor.Tensor) *tensor.Tensor
	Size() *tensor.Tensor
}

type runner struct {
	loss lossFunc
	last func() *tensor.Tensor
}

func functions(r runner, f lossFunc, l layer, data []Batch, layers []layer) (total float64) {
	for _, b := range data {
		total += f(b.X, b.Y).Item()      // want `only kept`
		total += r.loss(b.X, b.Y).Item() // want `only kept`
		y := b.X
		for _, l := range layers {
			y = l.Forward(y)
		}
		total += y.Item()           // want `only kept`
		total += l.Size().Item()    // want `only kept`
		total += r.last().Item()    // want `only kept`
		total += lookUp(b.X).Item() // known: it returns w
	}
	return
}

func lookUp(*tensor.Tensor) *tensor.Tensor { return w }

func onlyUnknown(l layer, data []Batch) (total float64) {
	for _, b := range data {
		total += l.Forward(b.X).Item() // want `only kept`
	}
	return
}

func continued(l layer, ids []int64) []int64 {
	for range 100 {
		window := ids[max(0, len(ids)-32):]
		next := l.Forward(tensor.From(window)).Sum().ItemInt() // want `ItemInt waits for the device in each iteration, and the next tensor is made of its value; make it of the tensor, and read after the loop \[AT001\]`
		ids = append(ids, next)
	}
	return ids
}

func continuedAtOnce(l layer, x []float32) []float32 {
	for range 100 {
		x = append(x[1:], float32(l.Forward(tensor.From(x)).Sum().Item())) // want `, and the next tensor is made of its value; `
	}
	return x
}

// Iterators.

func results(data []Batch) iter.Seq[*tensor.Tensor] {
	return func(yield func(*tensor.Tensor) bool) {
		for _, b := range data {
			if !yield(step(b)) {
				return
			}
		}
	}
}

func iterators(data []Batch, given []*tensor.Tensor) (total float64) {
	for t := range results(data) {
		total += t.Item() // AT012
	}
	for i, t := range batch.Steps(w, data) {
		total += t.Item() / float64(i) // AT012
	}
	seq := results(data)
	for t := range seq {
		total += t.Item() // AT012
	}
	for _, t := range slices.All(given) {
		step(data[0])
		total += t.Item() // older than the loop
	}
	for _, b := range data {
		for _, t := range slices.Backward([]*tensor.Tensor{step(b), step(b)}) {
			total += t.Item() // want `only kept`
		}
	}
	batch.Visits(data[0], func(t *tensor.Tensor) {
		total += t.Item() // AT012
	})
	batch.All(given, func(t *tensor.Tensor) bool {
		step(data[0])
		total += t.Item() // older than the loop
		return true
	})
	return
}

// Reads that are late enough.

func oneLate(data []Batch) (total float64) {
	var prev *tensor.Tensor
	for _, b := range data {
		loss := step(b)
		if prev != nil {
			total += prev.Item()
		}
		prev = loss
	}
	for _, b := range data {
		if prev != nil {
			total += prev.Item() // before anything is enqueued // want `only kept`
		}
		prev = step(b)
	}
	for i, b := range data {
		if i > len(data) {
			prev = step(b)
		}
		step(b)
		total += prev.Item() // want `only kept`
		prev = step(b)
	}
	return
}

type entry struct {
	step int
	loss *tensor.Tensor
}

func windows(data []Batch, n int) (total float64) {
	var queue []entry
	for i, b := range data {
		queue = append(queue, entry{i, step(b)})
		if len(queue) > 8 {
			first := queue[0]
			total += first.loss.Item()
			queue = queue[1:]
		}
	}
	for i, b := range data {
		queue = append(queue, entry{i, step(b)})
		for len(queue) >= n {
			total += queue[0].loss.Item()
			queue = queue[1:]
		}
	}
	for i, b := range data {
		queue = append(queue, entry{i, step(b)})
		total += queue[0].loss.Item() // want `only kept`
		queue = queue[1:]
	}
	losses := make([]*tensor.Tensor, len(data))
	for i, b := range data {
		losses[i] = step(b)
		if i >= 4 {
			total += losses[i-4].Item()
		}
		total += losses[i].Item() // want `only kept`
	}
	ring := make([]*tensor.Tensor, 8)
	for i, b := range data {
		loss := step(b)
		if old := ring[i%8]; old != nil {
			total += old.Item()
		}
		ring[i%8] = loss
	}
	for i, b := range data {
		if old := ring[i%8]; old != nil {
			total += old.Item() // seven younger ones are enqueued
		}
		ring[i%8] = step(b)
	}
	for i, b := range data {
		if i >= 4 {
			total += losses[i-4].Item()
		}
		losses[i] = step(b)
	}
	for i, b := range data {
		if i >= 1 {
			total += losses[i-1].Item() // want `only kept`
		}
		losses[i] = step(b)
	}
	for i, b := range data {
		if old := ring[i%1]; old != nil {
			total += old.Item() // want `only kept`
		}
		ring[i%1] = step(b)
	}
	return
}

// What is ready is not waited for.
func ready(data []Batch) (total float64) {
	var queue []*tensor.Tensor
	for _, b := range data {
		queue = append(queue, step(b))
		for len(queue) > 0 && queue[0].Ready() {
			total += queue[0].Item()
			queue = queue[1:]
		}
	}
	for _, b := range data {
		loss := step(b)
		if loss.Ready() {
			total += loss.Item()
		}
		for !loss.Ready() {
			total += step(b).Item() // want `only kept`
		}
	}
	for _, b := range data {
		loss := step(b)
		for len(queue) > 0 || loss.Ready() {
			total += step(b).Item() // want `only kept`
			queue = queue[1:]
		}
	}
	return
}

// Values that have to go out at once.

func stream(w http.ResponseWriter, conn net.Conn, data []Batch) {
	flusher := w.(http.Flusher)
	for _, b := range data {
		fmt.Fprintln(w, step(b).Item())
		flusher.Flush()
	}
	rc := http.NewResponseController(w)
	for _, b := range data {
		fmt.Fprintln(w, step(b).Item())
		rc.Flush()
	}
	for _, b := range data {
		text, _ := json.Marshal(step(b).Item())
		conn.Write(text)
	}
	for _, b := range data {
		fmt.Fprintln(conn, step(b).Item())
	}
}

// More conditions that hold rarely.

func rareToo(data []Batch, every int) (total float64) {
	next := every
	for i, b := range data {
		loss := step(b)
		if rand.Float64() < 0.01 || rand.IntN(1000) == 0 {
			total += loss.Item()
		}
		if i&(i-1) == 0 {
			total += loss.Item()
		}
		if i == next {
			total += loss.Item()
			next += every
		}
		switch i % 100 {
		case 0:
			total += loss.Item()
		}
	}
	var group []*tensor.Tensor
	for _, b := range data {
		group = append(group, step(b))
		if len(group) == 64 {
			for _, t := range group {
				total += t.Item()
			}
			group = group[:0]
		}
	}
	for _, b := range data {
		group = append(group, step(b))
		if len(group) >= every {
			total += group[0].Sum().Item()
			group = nil
		}
		if len(group) > 0 {
			total += step(b).Item() // want `only kept`
			group = make([]*tensor.Tensor, 0, 8)
		}
		if len(group) == every {
			total += step(b).Item() // want `only kept`
			group = group[1:]
		}
	}
	for i, b := range data {
		loss := step(b)
		if i >= next {
			total += loss.Item()
			next *= 2
		}
	}
	for i, b := range data {
		loss := step(b)
		if i == next {
			total += loss.Item() // want `only kept`
		}
		next = b.X.Dim(0)
		if rand.Float64() > 0.01 {
			total += step(b).Item() // want `only kept`
		}
	}
	return
}

func countdowns(data []Batch, every int, milestones map[int]bool, names map[string]bool, at []int) (total float64) {
	left := every
	for i, b := range data {
		loss := step(b)
		left--
		if left == 0 {
			left = every
			total += loss.Item()
		}
		if milestones[i] || slices.Contains(at, i+1) {
			total += loss.Item()
		}
	}
	for left = every; left > 0; {
		loss := step(data[0])
		if left -= 1; left <= 0 {
			total += loss.Item()
			left = 100
		}
	}
	for _, b := range data {
		if names[fmt.Sprint(b.X.Dim(0))] {
			total += step(b).Item() // want `only kept`
		}
	}
	for _, b := range data {
		loss := step(b)
		left = b.X.Dim(0)
		if left--; left == 0 {
			total += loss.Item() // want `only kept`
			left = every
		}
	}
	for i, b := range data {
		loss := step(b)
		if !milestones[i] {
			total += loss.Item() // want `only kept`
		}
	}
	for i, b := range data {
		loss := step(b)
		if i%2 == 0 {
			total += loss.Item() // want `only kept`
		}
		if i&1 == 1 {
			total += step(b).Item() // want `only kept`
		}
		if i%3 == 0 {
			total += step(b).Item()
		}
	}
	return
}

type clock struct{ n int }

func (c *clock) ticks() bool {
	c.n++
	return c.n%50 == 0
}

func (c *clock) odd() bool { return c.n%2 == 1 }

func reports(i int) bool { return i%100 == 0 }

func answers(data []Batch, c *clock) (total float64) {
	last, size := -1, 0
	for i, b := range data {
		loss := step(b)
		if reports(i) || c.ticks() {
			total += loss.Item()
		}
		if percent := 100 * i / len(data); percent != last {
			total += loss.Item()
			last = percent
		}
	}
	for i, b := range data {
		loss := step(b)
		if !reports(i) {
			total += loss.Item() // want `only kept`
		}
		if c.odd() {
			total += step(b).Item() // want `only kept`
		}
		if n := b.X.Dim(0); n != size {
			total += step(b).Item() // want `only kept`
			size = n
		}
		if percent := 100 * i / len(data); percent != last {
			total += step(b).Item() // want `only kept`
		}
	}
	return
}

// The case of a select statement that brings the work is no rare one.
func selects(in <-chan Batch, quit, report <-chan struct{}, queries chan Batch) (total float64) {
	sum := tensor.Zeros()
	for {
		select {
		case b, ok := <-in:
			if !ok {
				return total
			}
			total += step(b).Item() // want `only kept`
			sum = sum.Add(step(b))
		case <-report:
			total += sum.Item()
		case <-quit:
			return total
		}
		select {
		case b := <-queries:
			total += step(b).Item()
		default:
			sum = sum.Add(sum)
		}
		select {
		case b := <-queries:
			total += sum.AddScalar(1).Item()
			queries <- b
		case <-quit:
		}
	}
}

// A callback of a function that trains is called in each step.
func fit(data []Batch, opt *optim.Optimizer, report func(*tensor.Tensor)) {
	for _, b := range data {
		loss := step(b)
		opt.Minimize(loss)
		report(loss)
	}
}

func callback(data []Batch, opt *optim.Optimizer) (total float64) {
	fit(data, opt, func(loss *tensor.Tensor) {
		total += loss.Item() // AT012
	})
	return
}

// A loop over layers is one computation, one over batches is an epoch.
func deep(data []Batch, layers []layer, blocks []func(*tensor.Tensor) *tensor.Tensor) (total float64) {
	for _, b := range data {
		x := b.X
		for _, l := range layers {
			x = l.Forward(x)
		}
		for _, f := range blocks {
			x = f(x)
		}
		total += x.Item() // want `only kept`
	}
	for range 10 {
		sum := tensor.Zeros()
		for _, b := range data {
			sum = sum.Add(step(b))
		}
		total += sum.Item()
	}
	return
}

// The first read may not happen.
func perhaps(data []Batch, more bool) (total float64) {
	for _, b := range data {
		loss := step(b)
		good := more && loss.Item() > 1 // want `only kept`
		total += loss.Item()            // want `only kept`
		if good {
			total++
		}
	}
	return
}

type question struct {
	Batch
	answer chan float64
}

// A client waits for each answer.
func serve(questions chan question) (total float64) {
	for q := range questions {
		q.answer <- step(q.Batch).Item() // info // want `read after the loop`
	}
	for {
		q, ok := <-questions
		if !ok {
			return
		}
		q.answer <- step(q.Batch).Item() // info // want `read after the loop`
	}
}

// A stage of a pipeline could send the tensor.
func stage(in chan Batch, out chan float64) {
	for b := range in {
		out <- step(b).Item() // want `read after the loop`
	}
}

func wrapped(data []Batch) (total float64, err error) {
	for _, b := range data {
		err = lists.Retry(3, func() error {
			total += step(b).Item() // want `only kept`
			return nil
		})
		lists.Later(func() { total += step(b).Item() })
	}
	return
}

// What a backlog takes is there when its functions run, not before.
func backlog(data []Batch) (total float64) {
	later := asyncrt.NewLater[struct{}](16)
	for _, b := range data {
		lossAt := later.Read(step(b))
		later.Do(func() { total += lossAt.Item() })
	}
	for _, b := range data {
		lossAt := later.Read(step(b))
		total += lossAt.Item() // want `only kept`
	}
	lossAt := later.Read(step(data[0]))
	for _, b := range data {
		step(b)
		total += lossAt.Item() // AT006
	}
	return total
}
