package gen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
	"github.com/asyncgen/asyncgen/gen/rewrite"
)

// An Explanation is what asyncgen explain says about a code.
type Explanation struct {
	Code  plan.Code
	Title string
	Text  string

	// Two functions in Go. For what is refused the first is refused with the
	// code and the second is not; for what is done the second is what the
	// first becomes.
	Wrong, Right string
}

// Explain returns the explanation of a code, "AG201", or of a rewrite, "defer-sum".
func Explain(name string) (Explanation, bool) {
	i := slices.IndexFunc(explanations, func(e Explanation) bool { return string(e.Code) == name || name != "" && e.Rewrite() == name })
	if i < 0 {
		return Explanation{}, false
	}
	return explanations[i], true
}

// Explanations returns the explanations of all codes, in order.
func Explanations() []Explanation { return slices.Clone(explanations) }

// Rewrite is the name of the rewrite that the remark is about when it was made, as in off=defer-sum; or "".
func (e Explanation) Rewrite() string {
	if i := slices.IndexFunc(rewrite.Pipeline, func(s *rewrite.Step) bool { return s.Code == e.Code }); i >= 0 {
		return rewrite.Pipeline[i].Name
	}
	return ""
}

// String is the page that a user reads.
func (e Explanation) String() string {
	first, second := e.captions()
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n\n%s\n", e.Code, e.Title, strings.TrimSpace(e.Text))
	if name := e.Rewrite(); name != "" {
		fmt.Fprintf(&b, "\nSwitched off for a function: //asyncgen:kernel off=%s\n", name)
	}
	for _, part := range []struct{ title, code string }{{first, e.Wrong}, {second, e.Right}} {
		if part.code != "" {
			fmt.Fprintf(&b, "\n%s\n\n\t%s\n", part.title, strings.ReplaceAll(strings.TrimSpace(part.code), "\n", "\n\t"))
		}
	}
	return b.String()
}

// captions are the titles of the two functions.
func (e Explanation) captions() (first, second string) {
	if e.Code < "AG200" {
		return "As written:", "As generated:"
	}
	return "Refused:", "Rewritten:"
}

// explanations has one entry for each code, in order. The examples are
// compiled and generated in a test.
var explanations = []Explanation{
	{
		plan.DeferredRead, "a value is read when it has arrived",
		`
The statements that look at the value run later, in the same order, when the
value is there. The loop goes on to enqueue work meanwhile. Results, output and
panics are those of the original.`,
		`
func F(xs []*tensor.Tensor) (low float64) {
	for _, x := range xs {
		l := x.Sum().Item()
		low = min(low, l)
	}
	return low
}`, `
func FAsync(xs []*tensor.Tensor) (low float64) {
	later := asyncrt.NewLater[struct{}](fWindow).KeepsReads()
	defer later.Close()
	for _, x := range xs {
		sumAt := later.Read(x.Sum())
		later.Do(func() {
			l := sumAt.Item()
			low = min(low, l)
		})
	}
	later.Flush()
	return low
}`,
	}, {
		plan.DeferredSum, "a sum grows when its values have arrived",
		`
The host adds the same numbers in the same order and precision, so the sum is
the same bit for bit. The device does not add for it.`,
		`
func F(xs []*tensor.Tensor) (total float64) {
	for _, x := range xs {
		total += x.Sum().Item()
	}
	return total
}`, `
func FAsync(xs []*tensor.Tensor) (total float64) {
	later := asyncrt.NewLater[struct{}](fWindow).KeepsReads()
	defer later.Close()
	for _, x := range xs {
		sumAt := later.Read(x.Sum())
		later.Do(func() { total += sumAt.Item() })
	}
	later.Flush()
	return total
}`,
	}, {
		plan.DeferredStore, "a value is stored when it has arrived",
		`
Appending to a slice and assigning to an element, a field or a map entry happen
later, in the same order. Nothing may look at them in the loop meanwhile.`,
		`
func F(xs []*tensor.Tensor) (all []float64) {
	for _, x := range xs {
		all = append(all, x.Sum().Item())
	}
	return all
}`, `
func FAsync(xs []*tensor.Tensor) (all []float64) {
	later := asyncrt.NewLater[struct{}](fWindow).KeepsReads()
	defer later.Close()
	for _, x := range xs {
		sumAt := later.Read(x.Sum())
		later.Do(func() { all = append(all, sumAt.Item()) })
	}
	later.Flush()
	return all
}`,
	}, {
		plan.DeferredPrint, "a value is printed when it has arrived",
		`
All that writes to the outside in the loop goes together, so that every writer
gets the same bytes in the same order.`,
		`
func F(xs []*tensor.Tensor) {
	for _, x := range xs {
		fmt.Println(x)
	}
}`, `
func FAsync(xs []*tensor.Tensor) {
	later := asyncrt.NewLater[struct{}](fWindow).KeepsReads()
	defer later.Close()
	for _, x := range xs {
		xAt := later.Read(x)
		later.Do(func() { fmt.Println(xAt) })
	}
	later.Flush()
}`,
	}, {
		plan.DeferredGuarded, "a value under a condition is read when it has arrived",
		`
A condition that needs no value stays where it is. An iteration for which it is
false only polls: it runs what has arrived since, and never waits.`,
		`
func F(xs []*tensor.Tensor) {
	for i, x := range xs {
		if i%100 == 0 {
			fmt.Println(x.Sum().Item())
		}
	}
}`, `
func FAsync(xs []*tensor.Tensor) {
	later := asyncrt.NewLater[struct{}](fWindow).KeepsReads()
	defer later.Close()
	for i, x := range xs {
		later.Poll()
		if i%100 == 0 {
			sumAt := later.Read(x.Sum())
			later.Do(func() { fmt.Println(sumAt.Item()) })
		}
	}
	later.Flush()
}`,
	}, {
		plan.ReadTogether, "the rows of a tensor are read together",
		`
A loop that looks at one row of a tensor after the other reads the tensor once. A row that there is not,
and a tensor that failed, are found in the iteration that asks for it, as before.`,
		`
func F(losses *tensor.Tensor, weights []float64) (total float64) {
	for j := range weights {
		total += weights[j] * losses.Row(j).Item()
	}
	return total
}`, `
func FAsync(losses *tensor.Tensor, weights []float64) (total float64) {
	later := asyncrt.NewLater[struct{}](fWindow)
	defer later.Close()
	lossesRows := later.Rows(len(weights), func(row asyncrt.RowOf) *tensor.Tensor { return row(losses) })
	later.Do(func() {
		for j := range weights {
			total += weights[j] * lossesRows.Item(j)
		}
	})
	later.Flush()
	return total
}`,
	}, {
		plan.StaysThere, "a value stays on the device, and what is computed with it, too",
		`
The host reads the value only to compute a number that goes back to the device.
The device computes the number, in float64 and rounding as often as the host, so
it is the same bit for bit. Where the host looks at it, it is read later. An index that
the device finds stays there as well, and selects the row, the slice or the embedding; if it
is out of range, the panic of the host comes where the host would have come to it.`,
		`
func F(w *tensor.Tensor, xs []*tensor.Tensor) *tensor.Tensor {
	for _, x := range xs {
		scale := 1 / (x.Sum().Item() + 1)
		w = w.MulScalar(scale)
		fmt.Println(scale)
	}
	return w
}`, `
func FAsync(w *tensor.Tensor, xs []*tensor.Tensor) *tensor.Tensor {
	later := asyncrt.NewLater[struct{}](fWindow).KeepsReads()
	defer later.Close()
	for _, x := range xs {
		scale := asyncrt.Const(1).Div(x.Sum().ItemF64().Add(asyncrt.Const(1)))
		w = w.MulF64(scale)
		scaleAt := later.ReadF64(scale)
		later.Do(func() { fmt.Println(scaleAt.Item()) })
	}
	later.Flush()
	return w
}`,
	}, {
		plan.LaterStamp, "the time in the log is that of the deferred call",
		`
Package log writes the time with each line. That is when the line is written,
which is later than in the original by what the device needs. The directive
option strict refuses it instead.`,
		`
func F(xs []*tensor.Tensor) {
	for _, x := range xs {
		log.Print(x.Sum().Item())
	}
}`, `
func FAsync(xs []*tensor.Tensor) {
	later := asyncrt.NewLater[struct{}](fWindow).KeepsReads()
	defer later.Close()
	for _, x := range xs {
		sumAt := later.Read(x.Sum())
		later.Do(func() { log.Print(sumAt.Item()) })
	}
	later.Flush()
}`,
	}, {
		plan.LaterClock, "the clock is read when a value has arrived",
		`
A reading of the clock that is only printed is taken when the print happens.
Readings that reach anything else are refused: see AG210.`,
		`
func F(xs []*tensor.Tensor) {
	for _, x := range xs {
		start := time.Now()
		fmt.Println(x.Sum().Item(), time.Since(start))
	}
}`, `
func FAsync(xs []*tensor.Tensor) {
	later := asyncrt.NewLater[struct{}](fWindow).KeepsReads()
	defer later.Close()
	for _, x := range xs {
		start := time.Now()
		sumAt := later.Read(x.Sum())
		later.Do(func() { fmt.Println(sumAt.Item(), time.Since(start)) })
	}
	later.Flush()
}`,
	}, {
		plan.LaterPoll, "a state outside is looked at while results are still on their way",
		`
The loop asks a context, a ticker or an atomic variable where it stands, as written; results of earlier
iterations may not have arrived then. When a cancellation is noticed is no part
of what is kept the same. A select statement only asks if it has a default, and receives from channels of contexts, tickers and
timers alone; nobody learns of that. If the loop ends there, what comes before it in the program has happened.`,
		`
func F(ctx context.Context, xs []*tensor.Tensor) (total float64) {
	for _, x := range xs {
		if ctx.Err() != nil {
			return total
		}
		total += x.Sum().Item()
	}
	return total
}`, `
func FAsync(ctx context.Context, xs []*tensor.Tensor) (total float64) {
	later := asyncrt.NewLater[struct{}](fWindow).KeepsReads()
	defer later.Close()
	for _, x := range xs {
		if ctx.Err() != nil {
			later.Flush()
			return total
		}
		sumAt := later.Read(x.Sum())
		later.Do(func() { total += sumAt.Item() })
	}
	later.Flush()
	return total
}`,
	}, {
		plan.ComputedTogether, "what is computed of one row after the other is computed for all at once",
		`
Operations on the rows of tensors that do the same in each iteration of a loop become operations on
many rows. Each row gets the bits that it gets alone. Where rows can't be
computed together after all (there are too few, operands don't fit, the device
does not promise the same bits, an operation fails) each is computed in the
iteration that asks for it, as before.`,
		`
func F(x, w *tensor.Tensor, labels []int64) (correct int) {
	for j := range labels {
		best := x.Row(j).MatMul(w).ArgMax()
		if best.ItemInt() == labels[j] {
			correct++
		}
	}
	return correct
}`, `
func FAsync(x, w *tensor.Tensor, labels []int64) (correct int) {
	later := asyncrt.NewLater[struct{}](fWindow)
	defer later.Close()
	bestRows := later.Rows(len(labels), func(row asyncrt.RowOf) *tensor.Tensor {
		best := row(x).MatMul(w).ArgMax()
		return best
	})
	later.Do(func() {
		for j := range labels {
			if bestRows.ItemInt(j) == labels[j] {
				correct++
			}
		}
	})
	later.Flush()
	return correct
}`,
	}, {
		plan.KeptTogether, "what is kept of one row after the other is computed for all at once",
		`
What a loop computes of one row of tensors in each iteration, and keeps as a tensor, is computed for many rows
at once when it asks for the first of them; the loop takes its rows. Functions of the program,
and layers of a model that the same function makes with nn.Frozen, may be a part of it if they only compute: a model
in training may draw numbers, or count. Nobody can tell the rows from those that are computed one after the
other: where somebody could (a value may make an operation fail, gradients go through them, the
device does not promise the same bits) or it can't be done (there are too few rows,
operands don't fit), each is computed in the iteration that asks for it, as before.`,
		`
func F(x, w *tensor.Tensor) *tensor.Tensor {
	var outs []*tensor.Tensor
	for i := range x.Dim(0) {
		h := x.Row(i).MatMul(w)
		outs = append(outs, h.Tanh())
	}
	return tensor.Stack(0, outs...)
}`, `
func FAsync(x, w *tensor.Tensor) *tensor.Tensor {
	var outs []*tensor.Tensor
	tanhRows := asyncrt.MapRows(x.Dim(0), func(row asyncrt.RowOf) *tensor.Tensor {
		h := row(x).MatMul(w)
		return h.Tanh()
	})
	for i := range x.Dim(0) {
		outs = append(outs, tanhRows.Row(i))
	}
	return tensor.Stack(0, outs...)
}`,
	}, {
		plan.Bounded, "the loop runs a bounded number of reads ahead",
		`
The bound, 64 unless the directive says window=N, keeps memory flat in a loop
of any length. When it is reached the loop waits once, for the read in the
middle of those on their way. With off=bound there is no bound, and what is put off
may keep as much memory as the loop is long.`,
		`
func F(xs []*tensor.Tensor) (total float64) {
	for _, x := range xs {
		total += x.Sum().Item()
	}
	return total
}`, `
func FAsync(xs []*tensor.Tensor) (total float64) {
	later := asyncrt.NewLater[struct{}](fWindow).KeepsReads()
	defer later.Close()
	for _, x := range xs {
		sumAt := later.Read(x.Sum())
		later.Do(func() { total += sumAt.Item() })
	}
	later.Flush()
	return total
}`,
	}, {
		plan.LiftedRead, "a function that reads is called in two parts",
		`
A function of the module that looks at values, but not to decide what the
device does, gets a variant. Work for the device is done where the function is
called; what needs values waits its turn in the backlog of the caller, and what
the variant returns makes the results then. So does a function literal, if a
variable stands for it and is only called: the variant takes its place, or comes
after it if something else calls it as it is written. Tensors among the results, as
in next, loss = step(w, x), are returned and assigned in their place. The variant
stands in the package of the loop, also if the function is of another package: then
it may use only what that one exports, and a method becomes a function.`,
		`
func loss(w *tensor.Tensor, xs []*tensor.Tensor) (total float64) {
	for _, x := range xs {
		total += x.MatMul(w).Mean().Item()
	}
	return total
}

func F(w *tensor.Tensor, xs []*tensor.Tensor) {
	for i := range 10 {
		w = w.MulScalar(0.9)
		fmt.Println(i, loss(w, xs))
	}
}`, `
func FAsync(w *tensor.Tensor, xs []*tensor.Tensor) {
	later := asyncrt.NewLater[struct{}](fWindow).KeepsReads()
	defer later.Close()
	for i := range 10 {
		w = w.MulScalar(0.9)
		lossAt := lossLater(later, w, xs)
		later.Do(func() { fmt.Println(i, lossAt()) })
	}
	later.Flush()
}

func lossLater(later asyncrt.Reader, w *tensor.Tensor, xs []*tensor.Tensor) func() float64 {
	var total float64
	for _, x := range xs {
		meanAt := later.Read(x.MatMul(w).Mean())
		later.Do(func() { total += meanAt.Item() })
	}
	return func() float64 { return total }
}`,
	}, {
		plan.RunsPast, "a value decides later that the loop ends",
		`
The loop runs on until the value has arrived, a bounded number of steps. If it
was to end, what was done since is dropped: work that has not begun is
cancelled, entries never run, variables, parameters and random generators get
back what they held. The first steps wait; the longer the loop, the further it
runs ahead, as far as that keeps the device busy, and no further than the
directive's ahead=N says.`,
		`
func F(x *tensor.Tensor, tol float64) (*tensor.Tensor, int) {
	for i := range 1000 {
		x = x.Sin()
		if x.Norm().Item() < tol {
			return x, i
		}
	}
	return x, -1
}`, `
func FAsync(x *tensor.Tensor, tol float64) (*tensor.Tensor, int) {
	type fEnd struct {
		x *tensor.Tensor
		i int
	}
	later := asyncrt.NewLater[fEnd](fWindow)
	defer later.Close()
	for i := range 1000 {
		x = x.Sin()
		normAt := later.Read(x.Norm())
		if end, ok := later.BreakIf(func() bool { return normAt.Item() < tol }, fEnd{x, i}); ok {
			return end.x, end.i
		}
	}
	if end, ok := later.Flush(); ok {
		return end.x, end.i
	}
	return x, -1
}`,
	}, {
		plan.ChosenThere, "the device chooses between what two sides of a choice compute",
		`
A value decides what becomes of tensors, or of numbers that stay on the device. Both
sides are computed, and the device chooses when it knows the value, so both must be cheap. What else
they do, such as counting, printing or leaving the loop, the host does later: either all of it before what the device does
on the same side or all of it behind, where it matters. A tensor that one side takes must be known not to have failed, as one
is that has been looked at, or a copy of it. Where choosing would show, the loop waits instead: if the sides give tensors of
different shapes or types, if one of them is a mistake, or if gradients go through them. A failure of the
device itself, such as one of memory, counts on both sides.`,
		`
func F(w *tensor.Tensor, gs []*tensor.Tensor) *tensor.Tensor {
	for _, g := range gs {
		norm := g.Norm().Item()
		if norm > 1 {
			g = g.DivScalar(norm)
		}
		w = w.Sub(g)
	}
	return w
}`, `
func FAsync(w *tensor.Tensor, gs []*tensor.Tensor) *tensor.Tensor {
	later := asyncrt.NewLater[struct{}](fWindow).KeepsReads()
	defer later.Close()
	for _, g := range gs {
		norm := g.Norm().ItemF64()
		normAt := later.ReadF64(norm)
		later.Do(func() { normAt.Item() }) // fails here if norm does
		asyncrt.Either(norm.Gt(asyncrt.Const(1)), func() {
			g = g.DivF64(norm)
		}, nil, &g)
		w = w.Sub(g)
	}
	later.Flush()
	return w
}`,
	}, {
		plan.GivesBack, "memory that others can see is changed ahead of values",
		`
A statement that runs ahead of values changes a field of something that others can see, such as the receiver, or a tensor in
a slice. The Later notes what these hold whenever it queues something. If a value panics, or
ends the loop, they hold again what they held there, before anybody can look: functions that are deferred, whoever recovers, or
what comes after the loop. Other goroutines are not among these.`,
		`
type Model struct{ W *tensor.Tensor }

func F(m *Model, xs []*tensor.Tensor) (total float64) {
	for _, x := range xs {
		m.W = m.W.Add(x)
		total += m.W.Sum().Item()
	}
	return total
}`, `
func FAsync(m *Model, xs []*tensor.Tensor) (total float64) {
	later := asyncrt.NewLater[struct{}](fWindow)
	defer later.Close()
	if m != nil {
		later.Undo(asyncrt.Var(&m.W))
	}
	for _, x := range xs {
		m.W = m.W.Add(x)
		sumAt := later.Read(m.W.Sum())
		later.Do(func() { total += sumAt.Item() })
	}
	later.Flush()
	return total
}`,
	}, {
		plan.PlainForm, "a loop is written in another form first",
		`
An if that goes on with the next iteration takes what comes after it into itself, and an assignment to several variables
becomes several assignments. So it is known what runs in few iterations only, and one of the variables can change later
than the others. The function is written so only if less waits then.`,
		`
func F(w *tensor.Tensor, xs []*tensor.Tensor) (means []float64) {
	sum, n := 0.0, 0
	for _, x := range xs {
		sum += w.Sub(x).Sum().Item()
		n++
		if n < 4 {
			continue
		}
		w = w.MulScalar(0.5)
		means = append(means, sum/float64(n))
		sum, n = 0, 0
	}
	return means
}`, `
func FAsync(w *tensor.Tensor, xs []*tensor.Tensor) (means []float64) {
	sum, n := 0.0, 0
	later := asyncrt.NewLater[struct{}](fWindow).KeepsReads()
	defer later.Close()
	for _, x := range xs {
		sumAt := later.Read(w.Sub(x).Sum())
		later.Do(func() { sum += sumAt.Item() })
		n++
		if n >= 4 {
			w = w.MulScalar(0.5)
			nAt := n
			later.Do(func() {
				means = append(means, sum/float64(nAt))
				sum = 0
			})
			n = 0
		}
	}
	later.Flush()
	return means
}`,
	}, {
		plan.Fused, "operations on the same elements are one command",
		`
Three or more elementwise operations of which only the last result is needed read and write memory once instead of once
each. Lazy says where they begin, and Eager where they end. The bits are the same, also those of gradients. Tensors of
less than 4096 elements are computed as before, since nothing would be gained.`,
		`
func F(w *tensor.Tensor, xs []*tensor.Tensor) (total float64) {
	for _, x := range xs {
		d := w.Sub(x)
		total += d.Mul(d).Mul(x).Sum().Item()
	}
	return total
}`, `
func FAsync(w *tensor.Tensor, xs []*tensor.Tensor) (total float64) {
	later := asyncrt.NewLater[struct{}](fWindow).KeepsReads()
	defer later.Close()
	for _, x := range xs {
		d := w.Lazy().Sub(x)
		sumAt := later.Read(d.Mul(d).Mul(x).Sum())
		later.Do(func() { total += sumAt.Item() })
	}
	later.Flush()
	return total
}`,
	}, {
		plan.FeedsDevice, "a value goes back to the device",
		`
Work that is enqueued next needs the value as a number, so it can't come
later. Often the number need not leave the device: compute with tensors, or give it to an
operation like MulScalar, which can wait for it on the device.`,
		`
func F(w *tensor.Tensor, xs []*tensor.Tensor) *tensor.Tensor {
	for _, x := range xs {
		shift := x.Sum().Item()
		fmt.Println(shift)
		w = w.Sub(tensor.From([]float64{shift, shift, shift}, 3))
	}
	return w
}`, `
func F(w *tensor.Tensor, xs []*tensor.Tensor) *tensor.Tensor {
	for _, x := range xs {
		shift := x.Sum().Item()
		fmt.Println(shift)
		w = w.SubScalar(shift)
	}
	return w
}`,
	}, {
		plan.DecidesExit, "a value decides whether the loop goes on",
		`
A continue that depends on a value and skips device work needs the value at
once, unless the device can choose (AG121), and so does a jump that ends an inner
loop only from within a statement that stays as it is. Do the device work before
it. What ends the loop itself can be decided later: see AG120.`,
		`
func F(w *tensor.Tensor, xs []*tensor.Tensor) *tensor.Tensor {
	for _, x := range xs {
		if x.Sum().Item() > 1 {
			continue
		}
		w = w.MatMul(x)
	}
	return w
}`, `
func F(w *tensor.Tensor, xs []*tensor.Tensor) *tensor.Tensor {
	for _, x := range xs {
		w = w.MatMul(x)
		if x.Sum().Item() > 1 {
			continue
		}
		fmt.Println(x)
	}
	return w
}`,
	}, {
		plan.DecidesDevice, "a value decides what the device does",
		`
Device work under a condition that needs a value can't be enqueued before it is
there. Where both sides are cheap and only assign to local variables, the device chooses, see
AG121. What costs more, such as a product of matrices, is not computed in vain unless the
program says so.`,
		`
func F(w *tensor.Tensor, xs []*tensor.Tensor) *tensor.Tensor {
	for _, x := range xs {
		norm := x.Norm()
		if norm.Item() > 1 {
			w = w.MatMul(x)
		}
		fmt.Println(norm.Item())
	}
	return w
}`, `
func F(w *tensor.Tensor, xs []*tensor.Tensor) *tensor.Tensor {
	for _, x := range xs {
		norm := x.Norm()
		w = tensor.Where(norm.Gt(tensor.Scalar(1)), w.MatMul(x), w)
		fmt.Println(norm.Item())
	}
	return w
}`,
	}, {
		plan.UnknownEffects, "a function that is called has unknown effects",
		`
What a function of another module, a function value or a method of an interface
does is not known; it may need everything before it to have happened. Say what
it does where it is declared, or at a named type of functions what all of them do
("type Loss func(pred, y *tensor.Tensor) *tensor.Tensor"): //asyncgen:pure if it only computes, of its
arguments and what they lead to, or //asyncgen:effects with output (it writes to
the outside), input (it may wait for the outside), device (it enqueues work),
stamps (output with the time of the call), builds (adds to a text that a later
call puts out), formats (calls the methods of its arguments that make text of
them) or changes (changes what its arguments or its receiver lead to). The directive of a kernel says so of parameters that
are functions, iterators among them: //asyncgen:kernel pure=batches device=loss output=report. For code
of other people the file asyncgen.json, beside go.mod, says the same, with full import paths:

	{
		"effects": {
			"image/png.Encode": "output",
			"github.com/acme/metrics.Observe": "output",
			"(*github.com/acme/metrics.Gauge).*": "output"
		}
	}

Either is a promise: it is not checked. Much of the standard library and some modules that many use are known;
encoders, for one, are not, since what they write to may be anything.`,
		`
func F(note func(float64), xs []*tensor.Tensor) {
	for _, x := range xs {
		note(x.Sum().Item())
	}
}`, `
type Notes struct {
	//asyncgen:effects output
	Note func(float64)
}

func F(n Notes, xs []*tensor.Tensor) {
	for _, x := range xs {
		n.Note(x.Sum().Item())
	}
}`,
	}, {
		plan.Blocks, "something in every iteration may wait for the outside",
		`
Before a channel, a lock, a pause or input, everything must have happened that
happens before it in the program. In every iteration that leaves nothing to
gain. That holds for a select statement with a default as well: the goroutine at the other end of the channel may go on, and look
at what the loop has done. To be told to stop, ask a context (ctx.Err(), or select with ctx.Done() and a default) or an
atomic variable: nobody learns of that. What is sent on a channel from which others only receive can be sent later, if
the directive says that it is output: //asyncgen:kernel output=losses. A loop that takes its work from a channel or an
input waits for that anyway, and stays as it is. So does one that recovers in each iteration; to go on after a tensor has
failed, ask it: if err := t.Wait(); err != nil.`,
		`
func F(xs []*tensor.Tensor) (total float64) {
	for _, x := range xs {
		total += x.Sum().Item()
		time.Sleep(time.Millisecond)
	}
	return total
}`, `
func F(xs []*tensor.Tensor) (total float64) {
	for i, x := range xs {
		total += x.Sum().Item()
		if i%100 == 99 {
			time.Sleep(time.Millisecond)
		}
	}
	return total
}`,
	}, {
		plan.SharedMemory, "running ahead would show in memory that others can see",
		`
A statement that enqueues work also changes something outside the function, or
a result that a deferred call can see. If a value panics, the caller would find
it further than in the original. Fields and tensors in slices that can be named before the loop are given back what they
held; what is in a map, or behind a pointer that the loop sets, is not. Keep such state in local variables until the
loop is done. A function that uses package unsafe, or calls one that does, is left as it is: any memory may be any other there.`,
		`
func F(sums map[string]*tensor.Tensor, xs []*tensor.Tensor) (total float64) {
	for _, x := range xs {
		sums["all"] = sums["all"].Add(x)
		total += sums["all"].Sum().Item()
	}
	return total
}`, `
func F(sums map[string]*tensor.Tensor, xs []*tensor.Tensor) (total float64) {
	all := sums["all"]
	for _, x := range xs {
		all = all.Add(x)
		total += all.Sum().Item()
	}
	sums["all"] = all
	return total
}`,
	}, {
		plan.OnlyNow, "a wait of this form can't be put off",
		`
Some forms have no counterpart for a value that comes later: methods with a
context (without one, the wait no longer ends with it), %T and %p, Wait for its own sake, a struct with tensors that
is printed whole, results whose size depends on values: NonZero, MaskedSelect, Unique.`,
		`
func F(ctx context.Context, xs []*tensor.Tensor) (total float64) {
	for _, x := range xs {
		v, _ := x.Sum().ItemContext(ctx)
		total += v
	}
	return total
}`, `
func F(ctx context.Context, xs []*tensor.Tensor) (total float64) {
	for _, x := range xs {
		total += x.Sum().Item()
	}
	return total
}`,
	}, {
		plan.WaitsInside, "the wait is inside a function that is called",
		`
A function in the loop reads a value itself, and does something with it that
can't come later, or it is none that can be called in two parts: a function literal
that no variable stands for alone, a function of another package that uses what
that package keeps for itself or declares a type, a function of another module, or
one in a file with another build constraint. A loop in a function literal stays as it is, too. The remark says what. Let it return the tensor, and
read that in the loop. A function that ends a loop of its own by a value waits for it.`,
		`
func mean(x *tensor.Tensor) *tensor.Tensor {
	m := x.Mean()
	fmt.Println(m.Item())
	return m.Neg()
}

func F(xs []*tensor.Tensor) (total float64) {
	for _, x := range xs {
		total += mean(x).Item()
	}
	return total
}`, `
func mean(x *tensor.Tensor) *tensor.Tensor { return x.Mean() }

func F(xs []*tensor.Tensor) (total float64) {
	for _, x := range xs {
		m := mean(x)
		fmt.Println(m.Item())
		total += m.Neg().Item()
	}
	return total
}`,
	}, {
		plan.DeferInLoop, "the loop defers calls",
		`
A call that is deferred in the loop would run before what is put off, when the
function panics. Move the body of the loop into a function.`,
		`
func F(xs []*tensor.Tensor) {
	for _, x := range xs {
		defer fmt.Println("done")
		fmt.Println(x.Sum().Item())
	}
}`, `
func F(xs []*tensor.Tensor) {
	defer fmt.Println("done")
	for _, x := range xs {
		fmt.Println(x.Sum().Item())
	}
}`,
	}, {
		plan.Timing, "the loop measures time",
		`
A loop that computes with readings of the clock measures the waits that would
go away. Take the times outside the loop, or only print them.`,
		`
func F(xs []*tensor.Tensor) (total float64, spent time.Duration) {
	for _, x := range xs {
		start := time.Now()
		total += x.Sum().Item()
		spent += time.Since(start)
	}
	return total, spent
}`, `
func F(xs []*tensor.Tensor) (total float64, spent time.Duration) {
	start := time.Now()
	for _, x := range xs {
		total += x.Sum().Item()
	}
	return total, time.Since(start)
}`,
	}, {
		plan.Jumps, "the function uses goto",
		`
The loops of a function with goto are not only those that the syntax shows.`,
		`
func F(xs []*tensor.Tensor) (total float64) {
	i := 0
again:
	for _, x := range xs {
		total += x.Sum().Item()
	}
	if i++; i < 2 {
		goto again
	}
	return total
}`, `
func F(xs []*tensor.Tensor) (total float64) {
	for range 2 {
		for _, x := range xs {
			total += x.Sum().Item()
		}
	}
	return total
}`,
	}, {
		plan.ReadsCell, "what is put off uses a parameter that changes",
		`
A parameter, a gradient or a random generator would hold something else by the
time. Take its tensor in a variable: tensors never change. The generator does so
itself with Value and Snapshot of variables that have been used before.`,
		`
func F(p *nn.Param, xs []*tensor.Tensor) (steepest *tensor.Tensor) {
	most := 0.0
	for _, x := range xs {
		p.ZeroGrad()
		loss := x.Sub(p.Value()).Square().Sum()
		loss.Backward()
		if l := loss.Item(); l > most {
			most, steepest = l, p.Grad()
		}
	}
	return steepest
}`, `
func F(p *nn.Param, xs []*tensor.Tensor) (steepest *tensor.Tensor) {
	most := 0.0
	for _, x := range xs {
		p.ZeroGrad()
		loss := x.Sub(p.Value()).Square().Sum()
		loss.Backward()
		grad := p.Grad()
		if l := loss.Item(); l > most {
			most, steepest = l, grad
		}
	}
	return steepest
}`,
	}, {
		plan.SwitchedOff, "the rewrite is switched off",
		`
The directive says off= with the rewrite that the statement needs. The rewrites that put off
statements share them out: each statement has one, and no other takes its place.`,
		`
//asyncgen:kernel off=defer-sum
func F(xs []*tensor.Tensor) (total float64) {
	for _, x := range xs {
		total += x.Sum().Item()
	}
	return total
}`, `
//asyncgen:kernel
func F(xs []*tensor.Tensor) (total float64) {
	for _, x := range xs {
		total += x.Sum().Item()
	}
	return total
}`,
	}, {
		plan.Entangled, "the tensor is computed in the middle of a statement",
		`
The read is under a condition that needs another value, or follows a call with
effects in its statement; computing its tensor must stay there. Name the tensor
before the statement, if it may be computed always.`,
		`
func F(xs []*tensor.Tensor) {
	for _, x := range xs {
		if x.Sum().Item() > 0 {
			fmt.Println(x.Mean().Item())
		}
	}
}`, `
func F(xs []*tensor.Tensor) {
	for _, x := range xs {
		mean := x.Mean()
		if x.Sum().Item() > 0 {
			fmt.Println(mean.Item())
		}
	}
}`,
	}, {
		plan.LoopHeader, "the head of the loop depends on a value",
		`
How often the loop runs, or what it runs over, is known only when a value is that
the loop computes. What a loop reads once, before its first iteration, is in the
way of a loop around it only. The condition of a for statement can be decided later,
see AG120, but not what its iterations hand to each other in a variable that the
for statement itself declares: declare it before the loop. What the loop ranges over may also be memory into which a value is put: the slices in a map
that the caller made, or the elements of another slice, of the same type or of a type parameter. A copy is not.`,
		`
func F(x *tensor.Tensor) *tensor.Tensor {
	for moved := 1.0; moved > 1e-6; {
		next := x.MulScalar(0.5)
		moved = next.Sub(x).Norm().Item()
		x = next
	}
	return x
}`, `
func F(x *tensor.Tensor) *tensor.Tensor {
	moved := 1.0
	for moved > 1e-6 {
		next := x.MulScalar(0.5)
		moved = next.Sub(x).Norm().Item()
		x = next
	}
	return x
}`,
	}, {
		plan.Exempt, "strict forbids a difference in time",
		`
With strict, what would differ only in when it happens is refused, too: the time
in a log, a reading of the clock, the moment at which a context is asked.`,
		`
//asyncgen:kernel strict
func F(xs []*tensor.Tensor) {
	for _, x := range xs {
		log.Print(x.Sum().Item())
	}
}`, `
//asyncgen:kernel strict
func F(xs []*tensor.Tensor) {
	for _, x := range xs {
		fmt.Println(x.Sum().Item())
	}
}`,
	}, {
		plan.Hidden, "a variable can't be declared earlier",
		`
What runs later sets a variable that other statements use, too, so the variable
has to be declared before that. From there on its name would mean it, also where
the statement that sets it means another variable of the same name, which
changes later: give one of them another name. Nor can it be declared earlier if
its type has no name, because another package keeps it for itself.`,
		`
func F(xs []*tensor.Tensor) (sum float64, w *tensor.Tensor) {
	w = tensor.Ones(2)
	for _, x := range xs {
		sum += x.Sum().Item()
		sum := sum / 2
		w = w.Add(x)
		fmt.Println(sum)
	}
	return sum, w
}`, `
func F(xs []*tensor.Tensor) (sum float64, w *tensor.Tensor) {
	w = tensor.Ones(2)
	for _, x := range xs {
		sum += x.Sum().Item()
		half := sum / 2
		w = w.Add(x)
		fmt.Println(half)
	}
	return sum, w
}`,
	}, {
		plan.InTest, "functions in test files stay as they are",
		`
What is generated stands beside the function in the same package, and is built without its tests: it could not use what these declare.
Move the function to another file; the test may call it there.`,
		"", "",
	}, {
		plan.NoNumber, "the device has no form of what the host computes",
		`
The value goes back to the device, and could stay there if the host only computed
+ - * / and functions of package math, in local variables of type float64 or in local slices of
them that are not cut, between
reading it and giving it back. Of an index it is + - * in local variables of type int64 or
int, and the device can select rows with it, slices of a length that is known, and what takes
a tensor of indices. Where the device chooses, it takes all that is chosen from: a tensor whose computation has
failed would spoil a variable that the program would have left alone. So the program must have looked at a value of
a tensor that only one side uses, or uses it on both sides, as with tensor.Where.`,
		`
func half(x float64) float64 { return x / 2 }

func F(w *tensor.Tensor, xs []*tensor.Tensor) *tensor.Tensor {
	for _, x := range xs {
		w = w.MulScalar(half(x.Sum().Item()))
	}
	return w
}`, `
func F(w *tensor.Tensor, xs []*tensor.Tensor) *tensor.Tensor {
	for _, x := range xs {
		w = w.MulScalar(x.Sum().Item() / 2)
	}
	return w
}`,
	}, {
		plan.OneRounding, "what the host computes may be rounded otherwise on another platform",
		`
Go may compute x*y + z with one rounding, also over several statements, and does so on
arm64 and on amd64 with GOAMD64=v3. The device rounds twice. What is generated is for all platforms,
so the product has to be rounded by a conversion. The same holds for the result
of a function, or a field, which may be a product.`,
		`
func F(w *tensor.Tensor, xs []*tensor.Tensor) *tensor.Tensor {
	mean := 0.0
	for _, x := range xs {
		mean = 0.9*mean + x.Mean().Item()
		w = w.SubScalar(mean)
	}
	return w
}`, `
func F(w *tensor.Tensor, xs []*tensor.Tensor) *tensor.Tensor {
	mean := 0.0
	for _, x := range xs {
		mean = float64(0.9*mean) + x.Mean().Item()
		w = w.SubScalar(mean)
	}
	return w
}`,
	}, {
		plan.PastFails, "past the end of the loop, something may fail",
		`
A loop that a value ends would run on past its end until the value is there.
Something in it might fail then that the original never comes to. A panic there, such as that of
an index out of range, is dropped, as long as only values and the end of the body end an iteration. But
an inner loop without end, memory without measure, or a function that does more than compute can't be
taken back. What is the same in every iteration has shown that it does not fail.`,
		`
func F(x *tensor.Tensor, sizes []int) int {
	for i := 0; ; i++ {
		x = x.Add(tensor.Ones(sizes[i]).Sum())
		if x.Norm().Item() > 100 {
			return i
		}
	}
}`, `
func F(x *tensor.Tensor, sizes []int) int {
	for i := 0; ; i++ {
		x = x.AddScalar(float64(sizes[i]))
		if x.Norm().Item() > 100 {
			return i
		}
	}
}`,
	}, {
		plan.PastCells, "the loop changes cells that can't be given back",
		`
Parameters, their gradients, buffers, learning rates and random generators that
a loop changes past its end get back what they held. What else is a tensor.Cell
may be of a type of yours, which has to be known before the loop: a variable, a
field of a variable, what the method Cells() []tensor.Cell of a variable lists.`,
		`
func F(cells []tensor.Cell) int {
	for i := range 100 {
		for _, c := range cells {
			c.Set(c.Value().MulScalar(0.5))
		}
		if cells[0].Value().Norm().Item() < 0.001 {
			return i
		}
	}
	return -1
}`, `
func F(ps []*nn.Param) int {
	for i := range 100 {
		for _, p := range ps {
			p.Set(p.Value().MulScalar(0.5))
		}
		if ps[0].Value().Norm().Item() < 0.001 {
			return i
		}
	}
	return -1
}`,
	}, {
		plan.PastMemory, "the loop changes memory that can't be given back",
		`
Elements that a loop changes past its end would keep what it gave them. Elements
that are appended do no harm: the slice gets its length back.`,
		`
func F(x *tensor.Tensor) []*tensor.Tensor {
	last := make([]*tensor.Tensor, 1)
	for range 100 {
		x = x.MulScalar(0.5)
		last[0] = x
		if x.Norm().Item() < 0.001 {
			break
		}
	}
	return last
}`, `
func F(x *tensor.Tensor) []*tensor.Tensor {
	var all []*tensor.Tensor
	for range 100 {
		x = x.MulScalar(0.5)
		all = append(all, x)
		if x.Norm().Item() < 0.001 {
			break
		}
	}
	return all
}`,
	}, {
		plan.PastRandom, "the loop draws random numbers on the host",
		`
Numbers that a generator of package rand has given past the end of the loop can't
be put back. Generators of package tensor can: they get back their position.`,
		`
func F(x *tensor.Tensor) int {
	for i := range 100 {
		x = x.MulScalar(rand.Float64())
		if x.Norm().Item() < 0.001 {
			return i
		}
	}
	return -1
}`, `
func F(x *tensor.Tensor) int {
	for i := range 100 {
		x = x.Mul(tensor.Rand(1))
		if x.Norm().Item() < 0.001 {
			return i
		}
	}
	return -1
}`,
	}, {
		plan.ExitForm, "the way out of the loop has a form that can't be moved",
		`
What a return in the loop computes is computed where it turns out that the loop
has ended, which may be after it. That needs the names that it uses: no function
literal, no type or constant of the loop, no variable that another one of
the same name hides.`,
		`
func F(xs []*tensor.Tensor) func() int {
	for i, x := range xs {
		if x.Sum().Item() > 1 {
			return func() int { return i }
		}
	}
	return nil
}`, `
func F(xs []*tensor.Tensor) func() int {
	found := -1
	for i, x := range xs {
		if x.Sum().Item() > 1 {
			found = i
			break
		}
	}
	at := found
	return func() int { return at }
}`,
	}, {
		plan.Unchecked, "the check can't execute the function",
		`
The generator executes its output beside the original before it is written, on
values of which it only knows how they were made. The hint says what in the
function it can't execute. Write that in another way, or move it into a function
that the loop calls.`,
		`
func F(xs []*tensor.Tensor) {
	first, other := []float64{0}, []float64{0}
	sums := [][]float64{first, other}
	for _, x := range xs {
		slices.Reverse(sums)
		first[0] += x.Sum().Item()
	}
	fmt.Println(sums)
}`, `
func F(xs []*tensor.Tensor) {
	first, other := []float64{0}, []float64{0}
	sums := [][]float64{first, other}
	for _, x := range xs {
		sums[0], sums[1] = sums[1], sums[0]
		first[0] += x.Sum().Item()
	}
	fmt.Println(sums)
}`,
	}, {
		plan.NoRead, "there is nothing to rewrite",
		`
The marked function has no loop that waits for the device, or it has a Later of
its own: then it says itself what runs later. Its generated version calls it.`,
		`
func F(x *tensor.Tensor) float64 {
	for range 10 {
		x = x.MulScalar(0.5)
	}
	return x.Sum().Item()
}`, `
func F(x *tensor.Tensor) (total float64) {
	for range 10 {
		x = x.MulScalar(0.5)
		total += x.Sum().Item()
	}
	return total
}`,
	}, {
		plan.Diverged, "the check of the output failed",
		`
The generator compiles its output and executes it beside the original before it
is written. Here the rewritten function did not do the same, or did not compile,
and was left out: the result is correct, but the loop still waits. This is a
mistake of asyncgen; please report it with the function.`, "", "",
	},
}
