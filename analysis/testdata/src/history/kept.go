package history

import (
	"batch"
	"fmt"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Lists.

func embed(net nn.Module, data []batch.Batch) *tensor.Tensor {
	var parts, cut, classes []*tensor.Tensor
	byIndex := make([]*tensor.Tensor, len(data))
	now := nn.Frozen(net)
	var plain []*tensor.Tensor
	for i, b := range data {
		parts = append(parts, net.Forward(b.X))   // want `parts keeps the history of net.Forward\(b.X\) of every iteration, and is only read; keep net.Forward\(b.X\).Detach\(\), or compute it with frozen layers`
		loss := nn.MSELoss(net.Forward(b.X), b.Y) // want `net.Forward\(b.X\) keeps what a gradient needs`
		byIndex[i] = loss                         // want `byIndex keeps the history of loss`
		loss = loss.Detach()
		cut = append(cut, loss)
		classes = append(classes, net.Forward(b.X).ArgMax(1)) // want `net.Forward\(b.X\) keeps what a gradient needs`
		plain = append(plain, now.Forward(b.X))
	}
	fmt.Println(tensor.Stack(0, byIndex...).Mean().Item(), tensor.Stack(0, cut...).Item())
	fmt.Println(tensor.Stack(0, classes...), tensor.Concat(0, plain...))
	return tensor.Concat(0, parts...).Detach()
}

func lists(net nn.Module, opt *optim.Optimizer, data []batch.Batch) []*tensor.Tensor {
	var losses, returned, later, released []*tensor.Tensor
	for _, b := range data {
		losses = append(losses, nn.MSELoss(net.Forward(b.X), b.Y))
		returned = append(returned, net.Forward(b.X))
	}
	opt.Minimize(tensor.Stack(0, losses...).Mean())
	for _, b := range data {
		later = append(later, net.Forward(b.X))
	}
	var sum *tensor.Tensor
	for _, y := range later {
		sum = y.Sum()
	}
	sum.Backward()
	for _, b := range data {
		loss := nn.MSELoss(net.Forward(b.X), b.Y)
		opt.Minimize(loss)
		released = append(released, loss) // Minimize has released it
	}
	fmt.Println(tensor.Stack(0, released...).Mean().Item())
	return returned
}

func norms(net nn.Module) float64 {
	var parts, values []*tensor.Tensor
	for _, p := range net.Params() {
		values = append(values, p.Value())
		parts = append(parts, p.Value().Square().Sum())
	}
	return tensor.Stack(0, parts...).Sum().Item() + tensor.Stack(0, values...).Item()
}

// Fields.

type meter struct {
	sum, kept, seen *tensor.Tensor
	Shown           *tensor.Tensor
	byName          map[string]*tensor.Tensor
}

// Update is called by others.
func (m *meter) Update(loss, other *tensor.Tensor) {
	m.sum = m.sum.Add(loss)   // want `m.sum keeps the history of loss of every call, and is only read; add loss.Detach\(\)`
	m.seen = m.seen.Add(loss) // seen is returned
	m.sum = m.sum.Add(other)
	m.Shown = m.Shown.Add(loss) // want `m.Shown keeps the history of loss`
	loss = loss.Detach()
	m.kept = m.kept.Add(loss)
}

func (m *meter) add(part *tensor.Tensor) { m.kept = m.kept.Add(part) } // want `m.kept keeps the history of part`

func (m *meter) addCut(part *tensor.Tensor) { m.kept = m.kept.Add(part) }

func (m *meter) name(loss *tensor.Tensor, name string) {
	m.byName[name] = m.byName[name].Add(loss) // want `m.byName\[name\] keeps the history of loss`
}

func (m *meter) Seen() *tensor.Tensor { return m.seen }

func (m *meter) Value() float64 {
	for name, t := range m.byName {
		fmt.Println(name, t.Item())
	}
	return m.sum.Item() + m.kept.MulScalar(2).Item()
}

type accumulator struct {
	opt   *optim.Optimizer
	total *tensor.Tensor
}

func (a *accumulator) Add(loss *tensor.Tensor) { a.total = a.total.Add(loss) }

func (a *accumulator) Step() { a.opt.Minimize(a.total) }

func (m *model) meters(data []batch.Batch, of *meter) {
	for _, b := range data {
		of.add(m.loss(b))
		of.name(m.loss(b), "loss")
		of.addCut(m.loss(b).Detach())
	}
}

// Averages of what is trained.

func average(net nn.Module, opt *optim.Optimizer, data []batch.Batch, ema, right []*tensor.Tensor) []*tensor.Tensor {
	for _, b := range data {
		opt.Minimize(nn.MSELoss(net.Forward(b.X), b.Y))
		for i, p := range net.Params() {
			ema[i] = ema[i].MulScalar(0.99).AddScaled(p.Value(), 0.01) // want `ema\[i\] keeps the history of p.Value\(\) of every iteration, although the loop trains; add p.Value\(\).Detach\(\)`
			right[i] = right[i].MulScalar(0.99).AddScaled(p.Value().Detach(), 0.01)
		}
	}
	return ema
}

func penalty(net nn.Module, data []batch.Batch, parts []*tensor.Tensor) []*tensor.Tensor {
	for range data {
		for i, p := range net.Params() {
			parts[i] = parts[i].Add(p.Value().Square().Sum()) // who calls may differentiate it
		}
	}
	return parts
}

func gathered(net nn.Module, opt *optim.Optimizer, data []batch.Batch, total []*tensor.Tensor) {
	for i, b := range data {
		total[0] = total[0].Add(nn.MSELoss(net.Forward(b.X), b.Y))
		if i%4 == 3 {
			opt.Minimize(total[0])
			total[0] = tensor.Zeros()
		}
	}
}

// States.

type cell struct {
	Emb  *nn.Param
	Body nn.Module
}

func (c *cell) Next(token, state *tensor.Tensor) (scores, next *tensor.Tensor) {
	h := c.Body.Forward(c.Emb.Value().Take(0, token).Add(state))
	return h.MatMul(c.Emb.Value().T()), h
}

func chat(c *cell, state *tensor.Tensor, most int) []int64 {
	token := tensor.FullInt(1, 1)
	var tokens []*tensor.Tensor
	for range most {
		scores, next := c.Next(token, state)
		token = scores.ArgMax(-1).Reshape(1)
		tokens = append(tokens, token)
		state = next // want `state keeps the history of every iteration before, and nothing is differentiated through it; assign next.Detach\(\), or compute it with frozen layers`
	}
	return tensor.Concat(0, tokens...).Int64s()
}

func chatFrozen(c *cell, state *tensor.Tensor, most int) []int64 {
	f := &cell{c.Emb.Frozen(), nn.Frozen(c.Body)}
	token := tensor.FullInt(1, 1)
	var tokens []*tensor.Tensor
	for range most {
		scores, next := f.Next(token, state)
		token = scores.ArgMax(-1).Reshape(1)
		tokens = append(tokens, token)
		state = next
	}
	return tensor.Concat(0, tokens...).Int64s()
}

func chatDetached(c *cell, state *tensor.Tensor, most int) (sum float64) {
	token := tensor.FullInt(1, 1)
	for range most {
		scores, next := c.Next(token, state)
		token = scores.ArgMax(-1).Reshape(1)
		state = next.Detach()
	}
	return token.Item()
}

type nexter interface {
	Next(token, state *tensor.Tensor) (scores, next *tensor.Tensor)
}

func chatAny(c nexter, state *tensor.Tensor, most int) float64 {
	token := tensor.FullInt(1, 1)
	for range most {
		scores, next := c.Next(token, state)
		token, state = scores.ArgMax(-1).Reshape(1), next
	}
	return token.Item()
}

// through differentiates the whole sequence.
func through(c *cell, opt *optim.Optimizer, tokens []*tensor.Tensor, state *tensor.Tensor) {
	total := tensor.Zeros()
	for i, token := range tokens[1:] {
		scores, next := c.Next(tokens[i], state)
		total = total.Add(nn.CrossEntropy(scores, token))
		state = next
	}
	opt.Minimize(total)
}

// truncated does so for some steps at a time.
func truncated(c *cell, opt *optim.Optimizer, tokens []*tensor.Tensor, state *tensor.Tensor) float64 {
	total := tensor.Zeros()
	for i, token := range tokens[1:] {
		scores, next := c.Next(tokens[i], state)
		total = total.Add(nn.CrossEntropy(scores, token))
		state = next
		if i%16 == 15 {
			opt.Minimize(total)
			total, state = tensor.Zeros(), state.Detach()
		}
	}
	return state.Item()
}

func layered(layers []*model, net nn.Module, x *tensor.Tensor) float64 {
	h, g := x, x
	for i := range layers {
		h = layers[i].forward(h)
	}
	for _, l := range layers {
		f := l
		g = f.forward(g)
	}
	return h.Item() + g.Item()
}

func descent(f func(*tensor.Tensor) *tensor.Tensor, x *tensor.Tensor, rate float64, n int) *tensor.Tensor {
	x = x.Track()
	for range n {
		g := tensor.Grad(f(x), x)[0]
		x = x.AddScaled(g, -rate) // want `x keeps the history of every iteration before`
	}
	return x.Detach()
}

func descentCut(f func(*tensor.Tensor) *tensor.Tensor, x *tensor.Tensor, rate float64, n int) *tensor.Tensor {
	for range n {
		t := x.Detach().Track()
		x = t.AddScaled(tensor.Grad(f(t), t)[0], -rate)
	}
	y := x
	for range n {
		t := y.Track()
		y = y.Sub(tensor.Grad(f(t), t)[0].Detach())
	}
	return y.Detach()
}

// meta differentiates through the descent.
func meta(f func(w *tensor.Tensor) *tensor.Tensor, opt *optim.Optimizer, start *nn.Param, n int) {
	w := start.Value()
	for range n {
		w = w.AddScaled(tensor.Grad(f(w), w)[0], -0.1)
	}
	opt.Minimize(f(w))
	first := start.Value()
	v := first
	for range n {
		v = v.AddScaled(f(v), -0.1)
		fmt.Println(tensor.Grad(f(v), first)[0].Item())
	}
}

// Structs.

type trial struct {
	rate       float64
	held, used *tensor.Tensor
}

func search(data []batch.Batch, rates []float64, opt *optim.Optimizer) []trial {
	var out []trial
	var best *tensor.Tensor
	for _, r := range rates {
		net := build()
		t := trial{
			rate: r,
			held: nn.MSELoss(net.Forward(data[0].X), data[0].Y), // want `trial.held keeps the history of nn.MSELoss\(net.Forward\(data\[0\].X\), data\[0\].Y\) of every iteration`
			used: nn.MSELoss(net.Forward(data[0].X), data[0].Y),
		}
		now := trial{held: net.Forward(data[0].X)}
		best = now.held.Detach()
		out = append(out, t)
		out = append(out, trial{held: nn.Frozen(net).Forward(data[0].X)})
	}
	opt.Minimize(out[0].used)
	fmt.Println(out[0].held.Item(), best)
	return out
}

type Transition struct{ Obs, LogP, Value *tensor.Tensor }

type Replay struct{ buf []Transition }

func (r *Replay) Push(t Transition) { r.buf = append(r.buf, t) }

func (r *Replay) Obs(i int) *tensor.Tensor { return r.buf[i].Obs }

func (r *Replay) learn(opt *optim.Optimizer) {
	for _, t := range r.buf {
		opt.Minimize(t.LogP.Mul(t.Obs))
	}
}

func play(policy nn.Module, r *Replay, obs []*tensor.Tensor) {
	f := nn.Frozen(policy)
	for _, o := range obs {
		q := policy.Forward(o)
		r.Push(Transition{o, q.Min(1), q.Max(1)}) // want `Transition.Value keeps the history of q.Max\(1\)`
		r.Push(Transition{Obs: o, Value: f.Forward(o)})
		r.Push(Transition{Obs: o, Value: q.Detach()})
	}
}

// Rollout is for other packages, which may differentiate.
type Rollout struct{ Obs, LogP *tensor.Tensor }

func Collect(policy nn.Module, obs []*tensor.Tensor) (steps []Rollout) {
	for _, o := range obs {
		steps = append(steps, Rollout{o, policy.Forward(o)})
	}
	return steps
}

// Lists of fields, functions that keep what they are given, results that callers read.

type recorder struct {
	outputs, kept []*tensor.Tensor
	all           []*tensor.Tensor
}

func (r *recorder) run(net nn.Module, data []batch.Batch) {
	for _, b := range data {
		r.outputs = append(r.outputs, net.Forward(b.X)) // want `outputs keeps the history of net.Forward\(b.X\)`
		r.all = append(r.all, net.Forward(b.X))
		r.record(net.Forward(b.X)) // want `r.record keeps the history of net.Forward\(b.X\) of every iteration, of which only values are read; give it net.Forward\(b.X\).Detach\(\)`
		r.record(net.Forward(b.X).Detach())
		var mean batch.Mean
		mean.Add(net.Forward(b.X))
	}
	for range 2 {
		r.record(net.Forward(data[0].X))
	}
}

func (r *recorder) record(y *tensor.Tensor) { r.kept = append(r.kept, y) }

func (r *recorder) trained(net nn.Module, opt *optim.Optimizer, data []batch.Batch) {
	for _, b := range data {
		loss := nn.MSELoss(net.Forward(b.X), b.Y)
		opt.Minimize(loss)
		r.record(loss)
	}
}

func (r *recorder) All() []*tensor.Tensor { return r.all }

func (r *recorder) show() { fmt.Println(tensor.Stack(0, r.outputs...), tensor.Stack(0, r.kept...)) }

func measured(net nn.Module, data []batch.Batch) float64 {
	var mean batch.Mean
	for _, b := range data {
		mean.Add(nn.MSELoss(net.Forward(b.X), b.Y)) // want `mean.Add keeps the history of nn.MSELoss\(net.Forward\(b.X\), b.Y\)`
		mean.Add(nn.MSELoss(nn.Frozen(net).Forward(b.X), b.Y))
	}
	return mean.Value()
}

func outputs(net nn.Module, data []batch.Batch) []*tensor.Tensor {
	var list []*tensor.Tensor
	for _, b := range data {
		list = append(list, net.Forward(b.X)) // want `list keeps the history of net.Forward\(b.X\)`
	}
	return list
}

func outputsOf(net nn.Module, data []batch.Batch) []*tensor.Tensor {
	var list []*tensor.Tensor
	for _, b := range data {
		list = append(list, net.Forward(b.X))
	}
	return list
}

func readsOutputs(net nn.Module, opt *optim.Optimizer, data []batch.Batch) []float32 {
	for _, y := range outputs(net, data) {
		fmt.Println(y.Item())
	}
	for _, y := range outputsOf(net, data) {
		opt.Minimize(y.Mean())
	}
	list := outputs(net, data)
	return tensor.Concat(0, list...).Float32s()
}

// An optimiser that is made for each step goes through the same parameters.
func rising(net nn.Module, x *tensor.Tensor) float64 {
	rate, total := 1e-6, tensor.Zeros()
	for range 100 {
		loss := net.Forward(x).Mean()
		total = total.Add(loss) // want `total keeps the history of loss of every iteration`
		optim.SGD(net.Params(), rate).Minimize(loss)
		rate *= 1.2
	}
	return total.Item() / 100
}

func inPairs(net nn.Module, data []batch.Batch) (sum float64) {
	var pairs [][2]*tensor.Tensor
	for _, b := range data {
		y := net.Forward(b.X).Mean()
		pairs = append(pairs, [2]*tensor.Tensor{y, b.Y}) // want `pairs keeps the history of y of every iteration`
	}
	for _, p := range pairs {
		sum += p[0].Item()
	}
	return sum
}

func followed(averages []*tensor.Tensor, params []*nn.Param) {
	for i, p := range params {
		averages[i] = averages[i].MulScalar(0.99).AddScaled(p.Value(), 0.01) // want `averages\[i\] keeps the history of each p.Value\(\) that it averages`
	}
	for i, p := range params {
		averages[i] = averages[i].MulScalar(0.99).AddScaled(p.Value().Detach(), 0.01)
	}
}

// Two states that one statement assigns: the first is reported.

func (c *cell) step(x, h *tensor.Tensor) (y, state *tensor.Tensor) {
	y = c.Body.Forward(x)
	return y, y.Add(h)
}

func rollOut(c *cell, x *tensor.Tensor, n int) float64 {
	y, h := c.step(x, x)
	for range n {
		y, h = c.step(y, h) // want `^y keeps`
	}
	a, b := c.step(x, x)
	for range n {
		a, b = c.step(a, b) // want `^a keeps`
	}
	top, state := c.step(x, x)
	for range n {
		top, state = c.step(top, state) // want `^top keeps`
	}
	return y.Add(h).Add(a).Add(b).Add(top).Add(state).Item()
}

// A queue holds a few losses, however many there were.

type lateQueue struct {
	net   nn.Module
	queue []*tensor.Tensor
	total float64
}

func (l *lateQueue) put(loss *tensor.Tensor) {
	l.queue = append(l.queue, loss)
	if len(l.queue) > 2 {
		l.total += l.queue[0].Item()
		l.queue = l.queue[1:]
	}
}

func (l *lateQueue) all(net *nn.Replicas, data []batch.Batch) {
	for _, b := range data {
		l.put(nn.MSELoss(net.Forward(b.X), b.Y))
		l.queue = append(l.queue, nn.MSELoss(net.Forward(b.X), b.Y))
	}
}

// Meters with a field that others see.

type LossMeter struct {
	Total *tensor.Tensor
	count int
}

func (m *LossMeter) Update(loss *tensor.Tensor) {
	m.count++
	if m.Total == nil {
		m.Total = loss
		return
	}
	m.Total = m.Total.Add(loss) // want `m.Total keeps the history of loss`
}

type CutMeter struct{ Total *tensor.Tensor }

func (m *CutMeter) Update(loss *tensor.Tensor) { m.Total = m.Total.Add(loss.Detach()) }

type LearningMeter struct{ Total *tensor.Tensor }

func (m *LearningMeter) Update(loss *tensor.Tensor) { m.Total = m.Total.Add(loss) }

func (m *LearningMeter) Step(opt *optim.Optimizer) { opt.Minimize(m.Total) }

type Objective struct{ Total *tensor.Tensor }

func (o *Objective) Include(loss *tensor.Tensor) { o.Total = o.Total.Add(loss) }
