package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/asyncgen/asyncgen/device"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// steps are training steps of whole models: forward, loss, backward, optimiser. The first of Sizes is the size of
// a batch.
var steps = []workload{
	{Name: "perceptron 784-512-512-10, momentum, batch 1024", Work: "train", Op: "mlp", Sizes: []int{1024}},
	{Name: "perceptron 784-512-512-10, momentum, batch 64", Work: "train", Op: "mlp", Sizes: []int{64}},
	{Name: "two convolutions of 28 x 28, Adam, batch 64", Work: "train", Op: "cnn", Sizes: []int{64}},
	{Name: "transformer, two blocks of 256, AdamW, 8 x 256 tokens", Work: "train", Op: "transformer", Sizes: []int{8}},
	{Name: "ResNet of six blocks, 32 x 32, momentum, batch 32", Work: "train", Op: "resnet", Sizes: []int{32}},
	{Name: "program mlp: perceptron 512-2048-512-1, batch 1024", Work: "train", Op: "program mlp", Sizes: []int{1024}},
	{Name: "program mnist: two small convolutions, AdamW, batch 64", Work: "train", Op: "program mnist", Sizes: []int{64}},
	{Name: "program chargpt: two blocks of 64, AdamW, 16 x 64 tokens", Work: "train", Op: "program chargpt", Sizes: []int{16}},
}

// stepsAtOnce is how many steps are taken between two waits.
const stepsAtOnce = 5

// captured is ours with a captured step. eager and compiled are PyTorch without and with torch.compile.
const captured, eager, compiled = "asyncgen, captured", "PyTorch", "PyTorch, compiled"

// A training is the model that this process trains.
type training struct {
	step   func() *tensor.Tensor
	before int64 // what was resident before
}

var current *training

// newTraining makes a model. Before, a step of the smallest one does what a process does once, such as starting
// workers and, in Python, imports.
func newTraining(q question, isCaptured bool) *training {
	models["tiny"].trainer(2, false)()
	waitAll()
	debug.FreeOSMemory()
	t := &training{before: resident("VmRSS")}
	t.step = models[q.Op].trainer(q.Sizes[0], isCaptured)
	waitAll()
	debug.FreeOSMemory()
	os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // the peak begins anew, after the first weights were made
	return t
}

// resident returns what Linux says of this process, in bytes: VmRSS, what it has in memory, or VmHWM, the peak of
// this. Pages of files don't count, such as code that has run for the first time. It is 0 on other systems.
func resident(key string) int64 {
	status, _ := os.ReadFile("/proc/self/status")
	kib := map[string]int64{}
	for line := range strings.Lines(string(status)) {
		k, v, _ := strings.Cut(line, ":")
		kib[k], _ = strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(v), " kB"), 10, 64)
	}
	return (kib[key] - kib["RssFile"]) << 10
}

func waitAll() {
	if err := asyncrt.WaitAll(); err != nil {
		panic(err)
	}
}

// train takes the next steps of the model that q names. A process has one model.
func train(q question, isCaptured bool) answer {
	if current == nil {
		current = newTraining(q, isCaptured)
	}
	var losses [stepsAtOnce]*tensor.Tensor
	start := time.Now()
	for i := range losses {
		losses[i] = current.step()
	}
	waitAll()
	a := answer{Seconds: time.Since(start).Seconds() / stepsAtOnce}
	for _, l := range losses {
		a.Losses = append(a.Losses, l.Item())
	}
	if a.Bytes = resident("VmHWM") - current.before; isGPU() {
		a.Bytes = device.MemoryOf(backend()).Stats().Peak
	}
	return a
}

// measureSteps asks our library and PyTorch for steps of each model in turn, each in a process of its own, and
// compares the losses.
func measureSteps(o options) (*results, error) {
	r := &results{options: o, machine: machine()}
	c := newCommands(o)
	for _, n := range o.threads {
		for _, w := range steps {
			if !o.only.MatchString(w.Name) {
				continue
			}
			row, err := r.stepsOf(c, w, n)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", w.Name, err)
			}
			r.rows = append(r.rows, row)
			fmt.Fprintf(os.Stderr, "%s, threads: %d: %s\n", w.Name, n, row.summary(r.peers))
		}
	}
	if len(r.rows) == 0 {
		return nil, errors.New("there are no such models")
	}
	return r, nil
}

// stepsOf is the row of a model. A peer that does not start is left out of it.
func (r *results) stepsOf(c *commands, w workload, threads int) (row, error) {
	row := row{workload: w, threads: threads, answers: map[string]answer{}}
	q := question{workload: w}
	times := map[string][]float64{}
	var peers []*peer
	for _, name := range slices.DeleteFunc([]string{ours, captured, eager, compiled}, func(name string) bool { return !r.has(name) }) {
		p, err := c.start(name, threads)
		if err == nil {
			defer p.close()
			row.answers[name], err = p.ask(q) // to get warm
			if text := row.answers[name].Missing; err == nil && text != "" {
				err = errors.New(text)
			}
		}
		if err != nil {
			delete(row.answers, name)
			r.miss(fmt.Sprintf("%s, %s, threads: %d", name, w.Name, threads), err)
			continue
		}
		if err := sameLosses(row.answers[ours].Losses, row.answers[name].Losses); err != nil {
			return row, fmt.Errorf("%s: %w", name, err)
		}
		peers = append(peers, p)
		if !slices.Contains(r.peers, name) {
			r.peers, r.versions = append(r.peers, name), append(r.versions, p.Version)
		}
	}
	for end := time.Now().Add(20 * r.budget); len(times[ours]) < 3 || time.Now().Before(end); {
		for _, p := range peers {
			a, err := p.ask(q)
			if err != nil {
				return row, fmt.Errorf("%s: %w", p.name, err)
			}
			times[p.name] = append(times[p.name], a.Seconds)
			row.answers[p.name] = a
		}
	}
	for name, all := range times {
		slices.Sort(all)
		a := row.answers[name]
		a.Seconds = all[len(all)/2]
		row.answers[name] = a
	}
	return row, nil
}

// sameLosses compares the losses of the first steps from the same weights.
func sameLosses(ours, theirs []float64) error {
	const tolerance = 1e-3
	if len(ours) != stepsAtOnce || len(theirs) != stepsAtOnce {
		return fmt.Errorf("there are %d and %d losses, want %d", len(ours), len(theirs), stepsAtOnce)
	}
	for i, l := range ours {
		if !(math.Abs(l-theirs[i]) <= tolerance*math.Abs(l)) { // NaN fails
			return fmt.Errorf("the loss of step %d is %v, and ours %v", i, theirs[i], l)
		}
	}
	return nil
}

// stepsHeading is what the table of steps begins with.
const stepsHeading = "## Training steps\n"

// markdownSteps is the table of steps.
func (r *results) markdownSteps() string {
	var b strings.Builder
	memory := "Memory is the peak of what is resident (VmHWM) in these steps, less what was resident before the model was made, without pages of files."
	if r.isGPU() {
		memory = "Memory is the peak of what was allocated on the device."
	}
	fmt.Fprintf(&b, "%s\nMeasured on %s. A step is forward, loss, backward and optimiser. Times are medians of windows of %d steps. "+
		"%s All take the same steps from the same weights, and have the same losses.\n\n", stepsHeading, r.machine, stepsAtOnce, memory)
	r.markdownPeers(&b)
	fmt.Fprintf(&b, "\n| float32 | threads | %s | %s |\n| --- | ---: |%s\n", strings.Join(r.peers, " | "),
		"memory of "+strings.Join(r.withMemory(), " | memory of "), strings.Repeat(" ---: |", len(r.peers)+len(r.withMemory())))
	for i := range r.rows {
		row := &r.rows[i]
		fmt.Fprintf(&b, "| %s | %d |", row.Name, row.threads)
		for _, p := range r.peers {
			fmt.Fprintf(&b, " %s |", row.cell(p))
		}
		for _, p := range r.withMemory() {
			fmt.Fprintf(&b, " %s |", row.memory(p))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// withMemory are the peers whose memory is compared: that of the compiler would count as the model's.
func (r *results) withMemory() []string {
	return slices.DeleteFunc(slices.Clone(r.peers), func(p string) bool { return p == compiled })
}

// memory is a peer's memory, and for others than us how many times ours it is.
func (r *row) memory(p string) string {
	a, mine := r.answers[p], r.answers[ours]
	if a.Bytes <= 0 {
		return ""
	}
	text := fmt.Sprintf("%s MB", digits(float64(a.Bytes)/1e6))
	if p != ours && mine.Bytes > 0 {
		text += fmt.Sprintf(", %s×", digits(float64(a.Bytes)/float64(mine.Bytes)))
	}
	return text
}
