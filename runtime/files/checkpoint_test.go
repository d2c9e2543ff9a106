package files_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/sim"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/files"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A loader gives batches in an order of its own, which is drawn anew when all have been seen.
type loader struct {
	order []int
	at    int
	draws *tensor.Generator
}

func (l *loader) next() int {
	if l.at == len(l.order) {
		l.at, l.order = 0, l.order[:0]
		for _, i := range l.draws.Permutation(4).Int64s() {
			l.order = append(l.order, int(i))
		}
	}
	l.at++
	return l.order[l.at-1]
}

// MarshalBinary implements encoding.BinaryMarshaler.
func (l *loader) MarshalBinary() ([]byte, error) {
	b := binary.AppendVarint(nil, int64(l.at))
	for _, i := range l.order {
		b = binary.AppendVarint(b, int64(i))
	}
	return b, nil
}

// UnmarshalBinary implements encoding.BinaryUnmarshaler.
func (l *loader) UnmarshalBinary(b []byte) error {
	var list []int
	for len(b) > 0 {
		v, n := binary.Varint(b)
		if n <= 0 {
			return errors.New("no position of a loader")
		}
		list, b = append(list, int(v)), b[n:]
	}
	l.at, l.order = list[0], list[1:]
	return nil
}

// A training is all that a run of training has.
type training struct {
	net     nn.Module
	opt     *optim.Optimizer
	average *optim.Average
	loader  *loader
	step    int
	best    float64
	name    string
	isLast  bool
	x, y    []*tensor.Tensor
	run     *files.Checkpoints
}

var optimisers = map[string]func(params []*nn.Param) *optim.Optimizer{
	"SGD": func(params []*nn.Param) *optim.Optimizer {
		return optim.SGD(params, 0.05, optim.SGDOptions{Momentum: 0.9})
	},
	"Adam": func(params []*nn.Param) *optim.Optimizer {
		o := optim.Adam(params, 0.01)
		o.Guard = true
		return o
	},
	"AdamW": func(params []*nn.Param) *optim.Optimizer {
		o := optim.AdamW(params, 0.01)
		o.Schedule = optim.Warmup(3, optim.Cosine(20, 0.1))
		return o
	},
	"Plateau": func(params []*nn.Param) *optim.Optimizer {
		o := optim.RMSProp(params, 0.01)
		o.Plateau = &optim.Plateau{Patience: 1, Factor: 0.5}
		return o
	},
	"Group": func(params []*nn.Param) *optim.Optimizer {
		return optim.Group(optim.AdaDelta(params[:1], 1), optim.SGD(params[1:], 0.01))
	},
}

// start begins a run in a folder, from the beginning.
func start(dir, optimiser string, keep int) *training {
	tensor.Seed(11)
	r := &training{net: nn.Sequential(nn.Dense(6), nn.BatchNorm(), nn.ReLU(), nn.Dropout(0.3), nn.Dense(1)), best: math.Inf(1)}
	data := tensor.NewGenerator(12)
	for range 4 {
		x := data.Randn(5, 3)
		r.x, r.y = append(r.x, x), append(r.y, x.Sum(1).Unsqueeze(1))
	}
	r.opt = optimisers[optimiser](r.net.Params())
	r.average = optim.EMA(r.net.Params(), 0.9)
	r.loader = &loader{draws: tensor.NewGenerator(13)}
	r.run = files.NewCheckpoints(dir, files.Parts{
		"model": r.net, "optimizer": r.opt, "average": r.average, "loader": r.loader, "draws": r.loader.draws,
		"step": &r.step, "best": &r.best, "name": &r.name, "last": &r.isLast,
	}, files.CheckpointOptions{Keep: keep})
	return r
}

// train makes steps until there were so many in all.
func (r *training) train(steps int) {
	for r.step < steps {
		i := r.loader.next()
		loss := nn.MSELoss(r.net.Forward(r.x[i]), r.y[i])
		r.opt.Minimize(loss)
		r.average.Update()
		if r.opt.Plateau != nil {
			r.opt.Plateau.Observe(loss)
		}
		r.step++
		if r.step%4 == 0 {
			r.best = min(r.best, loss.Item())
		}
		r.name, r.isLast = fmt.Sprint("step ", r.step), r.step == steps
	}
}

// contents returns what a checkpoint has when it is saved now, in a folder of its own.
func (r *training) contents(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	other := *r
	other.run = files.NewCheckpoints(dir, files.Parts{
		"model": r.net, "optimizer": r.opt, "average": r.average, "loader": r.loader, "draws": r.loader.draws,
		"step": &r.step, "best": &r.best, "name": &r.name, "last": &r.isLast})
	must(t, other.run.Save(1))
	b, err := os.ReadFile(filepath.Join(dir, "step-0000000001.safetensors"))
	must(t, err)
	return b
}

// A run that goes on from a checkpoint has the bits of one that was not interrupted: weights, statistics, what the
// optimiser remembers, draws, the order of batches, all of it, from whichever step.
func TestResume(t *testing.T) {
	const steps = 12
	for name := range optimisers {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			r := start(dir, name, 0)
			for step := range steps {
				r.train(step)
				must(t, r.run.SaveAsync(step))
			}
			r.train(steps)
			must(t, r.run.Wait())
			want := r.contents(t)
			for step := range steps {
				r := start(filepath.Join(dir, "none"), name, 0)
				if step%2 == 1 { // with or without values before
					r.train(1)
				}
				got, err := r.run.Load(filepath.Join(dir, fmt.Sprintf("step-%010d.safetensors", step)))
				must(t, err)
				if got != step || r.step != step {
					t.Fatalf("Load returns %d, and the step is %d, want %d", got, r.step, step)
				}
				r.train(steps)
				if !bytes.Equal(r.contents(t), want) {
					t.Errorf("from step %d the run ends with other bits", step)
				}
			}
			mustBeClean(t, dir)
		})
	}
}

// Resume takes the latest checkpoint that is not damaged, and none is the beginning.
func TestLatest(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	r := start(dir, "SGD", 3)
	if step, err := r.run.Resume(); step != 0 || err != nil {
		t.Errorf("Resume without a folder: %d, %v", step, err)
	}
	if _, _, err := files.Latest(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Latest without a folder: %v", err)
	}
	for step := range 6 {
		r.train(step)
		must(t, r.run.Save(step))
	}
	must(t, os.WriteFile(filepath.Join(dir, "step-7.safetensors"), nil, 0o666)) // no name of ours
	path := func(step int) string { return filepath.Join(dir, fmt.Sprintf("step-%010d.safetensors", step)) }
	if list, err := filepath.Glob(filepath.Join(dir, "step-0*")); err != nil || len(list) != 3 || list[0] != path(3) {
		t.Errorf("three are to be kept: %q", list)
	}
	latest := func(want int) {
		t.Helper()
		if p, step, err := files.Latest(dir); p != path(want) || step != want || err != nil {
			t.Errorf("Latest is %q, %d, %v, want step %d", p, step, err, want)
		}
	}
	latest(5)
	good, err := os.ReadFile(path(5))
	must(t, err)
	for at := 0; at < len(good); at += 7 { // any damage is found
		bad := bytes.Clone(good)
		bad[at] ^= 0x10
		must(t, os.WriteFile(path(5), bad, 0o666))
		latest(4)
		must(t, os.WriteFile(path(5), good[:at], 0o666))
		latest(4)
	}
	must(t, os.Remove(path(5)))
	must(t, os.Mkdir(path(5), 0o777))
	latest(4)
	must(t, os.WriteFile(path(6), good, 0o666)) // the checkpoint of another step
	latest(4)
	if step, err := start(dir, "SGD", 3).run.Resume(); step != 4 || err != nil {
		t.Errorf("Resume: %d, %v", step, err)
	}
	must(t, os.WriteFile(path(4), nil, 0o666))
	must(t, os.WriteFile(path(3), nil, 0o666))
	if step, err := start(dir, "SGD", 3).run.Resume(); step != 0 || err == nil || strings.Count(err.Error(), "files: ") != 3 {
		t.Errorf("Resume from damaged files only: %d, %v", step, err)
	}
	if os.Symlink(filepath.Join(dir, "nothing"), path(9)) == nil {
		must(t, os.RemoveAll(path(5)))
		for _, step := range []int{3, 4, 6} {
			must(t, os.Remove(path(step)))
		}
		if step, err := start(dir, "SGD", 3).run.Resume(); err == nil {
			t.Errorf("Resume from a link to nothing: %d", step)
		}
	}
}

// A run that goes back keeps what it saves, whatever checkpoints of greater steps there are.
func TestKeepAfterGoingBack(t *testing.T) {
	dir := t.TempDir()
	n := 0
	run := files.NewCheckpoints(dir, files.Parts{"n": &n}, files.CheckpointOptions{Keep: 1})
	must(t, run.Save(10))
	must(t, run.Save(5))
	for _, step := range []int{5, 10} {
		if _, err := os.Stat(filepath.Join(dir, fmt.Sprintf("step-%010d.safetensors", step))); err != nil {
			t.Error(err)
		}
	}
}

// Training goes on while a checkpoint is written, and what it changes is not in the file.
func TestSaveAsync(t *testing.T) {
	dir := t.TempDir()
	r := start(dir, "Adam", 0)
	r.train(3)
	want := r.contents(t)
	must(t, r.run.SaveAsync(1))
	r.train(9)
	must(t, r.run.Wait())
	got, err := os.ReadFile(filepath.Join(dir, "step-0000000001.safetensors"))
	must(t, err)
	if !bytes.Equal(got, want) {
		t.Error("the file has something of later steps")
	}
	must(t, r.run.Wait())

	// It waits for nothing on the way.
	asyncrt.ForbidSync(func() { must(t, r.run.SaveAsync(2)) })
	must(t, r.run.Wait())
}

// No error of a save in the background is lost, and the next save is made all the same.
func TestSaveAsyncErrors(t *testing.T) {
	dir := t.TempDir()
	b := nn.NewBuffer(tensor.From([]int{1}).Div(tensor.From([]int{0})))
	run := files.NewCheckpoints(dir, files.Parts{"b": b})
	must(t, run.SaveAsync(1))
	b.Set(tensor.From([]int{2}))
	var op *asyncrt.OpError
	if err := run.SaveAsync(2); !errors.As(err, &op) {
		t.Errorf("the second save returns %v, want the error of the first", err)
	}
	must(t, run.Wait())
	if _, step, err := files.Latest(dir); step != 2 || err != nil {
		t.Errorf("the latest is %d, %v", step, err)
	}
	b.Set(tensor.From([]int{1}).Div(tensor.From([]int{0})))
	must(t, run.SaveAsync(3))
	if err := run.Wait(); !errors.As(err, &op) {
		t.Errorf("Wait returns %v", err)
	}
	must(t, run.SaveAsync(4-4)) // step 0 with a failed tensor: the error comes out at Save
	if err := run.Save(1); !errors.As(err, &op) {
		t.Errorf("Save returns %v", err)
	}
	mustBeClean(t, dir)

	refuses := files.NewCheckpoints(dir, files.Parts{"l": refusing{}})
	if err := refuses.SaveAsync(1); err == nil || !strings.Contains(err.Error(), `part "l": not now`) {
		t.Errorf("a part that can't be saved: %v", err)
	}
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, nil, 0o666))
	n := 1
	if err := files.NewCheckpoints(file, files.Parts{"n": &n}).Save(1); err == nil {
		t.Error("a file is taken for a folder")
	}
}

type refusing struct{}

func (refusing) MarshalBinary() ([]byte, error) { return nil, errors.New("not now") }
func (refusing) UnmarshalBinary([]byte) error   { return nil }

// What an interrupted save left is removed, and nothing else.
func TestUnfinished(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, "step-0000000003.safetensors.unfinished-0123abcd")
	other := filepath.Join(dir, "mine.unfinished-0123abcd")
	must(t, os.WriteFile(left, nil, 0o666))
	must(t, os.WriteFile(other, nil, 0o666))
	n := 1
	must(t, files.NewCheckpoints(dir, files.Parts{"n": &n}).Save(4))
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is left: %v", err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
}

// A checkpoint that doesn't fit, or that a part refuses, changes nothing.
func TestLoadChangesNothing(t *testing.T) {
	dir := t.TempDir()
	r := start(dir, "Adam", 0)
	r.train(2)
	must(t, r.run.Save(2))
	path := filepath.Join(dir, "step-0000000002.safetensors")
	r.train(5)
	want := r.contents(t)
	more := 1
	var mismatch *files.MismatchError
	other := files.NewCheckpoints(dir, files.Parts{"model": r.net, "optimizer": r.opt, "more": &more})
	if _, err := other.Load(path); !errors.As(err, &mismatch) || len(mismatch.Missing) != 1 || len(mismatch.Unexpected) == 0 {
		t.Errorf("other parts: %v", err)
	}
	if _, err := start(dir, "SGD", 0).run.Load(path); !errors.As(err, &mismatch) {
		t.Errorf("another optimiser: %v", err)
	}
	tensor.Seed(11)
	if _, err := r.run.Load("testdata/types.safetensors"); err == nil || !strings.Contains(err.Error(), "this is no checkpoint") {
		t.Error(err)
	}
	r2 := start(dir, "Adam", 0)
	if _, err := r2.run.Load(path); err != nil { // so that the default generator is as in the file
		t.Fatal(err)
	}
	r = start(dir, "Adam", 0)
	r.train(5)
	if !bytes.Equal(r.contents(t), want) {
		t.Error("a run from the beginning ends elsewhere")
	}

	a, z := 1, refusingLater{}
	parts := files.Parts{"a": &a, "z": &z, "g": tensor.NewGenerator(1)}
	run := files.NewCheckpoints(dir, parts)
	must(t, run.Save(7))
	a, z.refuses = 2, true
	if _, err := run.Load(filepath.Join(dir, "step-0000000007.safetensors")); err == nil || a != 2 {
		t.Errorf("a part refused, and a is %d: %v", a, err)
	}
}

type refusingLater struct{ refuses bool }

func (refusingLater) MarshalBinary() ([]byte, error) { return []byte{1}, nil }
func (r *refusingLater) UnmarshalBinary([]byte) error {
	if r.refuses {
		return errors.New("no")
	}
	return nil
}

// A checkpoint is a file of tensors, of which a model can be taken.
func TestCheckpointIsSafetensors(t *testing.T) {
	dir := t.TempDir()
	r := start(dir, "AdamW", 0)
	r.train(3)
	must(t, r.run.Save(3))
	path, _, err := files.Latest(dir)
	must(t, err)
	fresh := start(dir, "AdamW", 0).net
	must(t, files.Load(path, fresh, files.LoadOptions{Prefix: "model."}))
	mustBeSame(t, "model", named(fresh), named(r.net))
	all, err := files.Read(path)
	must(t, err)
	for name, want := range map[string]*tensor.Tensor{
		"step": tensor.Of([]int64{3}, 1).Reshape(), "name": tensor.Of([]byte("step 3")), "last": tensor.Of([]bool{true}).Reshape(),
		"optimizer.rate": tensor.Of([]float64{0.01}),
	} {
		if got := all[name]; got == nil || bits(got) != bits(want) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}

// A noisy model draws from a generator of its own.
type noisy struct {
	Draws *tensor.Generator
	Out   nn.Module
}

func (n *noisy) Forward(x *tensor.Tensor) *tensor.Tensor {
	return n.Out.Forward(x).Add(n.Draws.Randn(x.Dim(0), 1))
}
func (n *noisy) Params() []*nn.Param { return nn.Params(n) }

// Generators in the fields of a model are in its checkpoints, and so are cells on their own.
func TestResumeGenerators(t *testing.T) {
	dir := t.TempDir()
	x := tensor.Ones(3, 2)
	build := func() (*noisy, *nn.Buffer, *files.Checkpoints) {
		m, b := &noisy{tensor.NewGenerator(1), nn.Dense(1)}, nn.NewBuffer(nil)
		return m, b, files.NewCheckpoints(dir, files.Parts{"model": m, "buffer": b, "plateau": &optim.Plateau{}})
	}
	m, b, run := build()
	m.Forward(x)
	b.Set(tensor.Scalar(7))
	must(t, run.Save(1))
	want := m.Forward(x)
	again, b, run := build()
	if step, err := run.Resume(); step != 1 || err != nil || b.Value().Item() != 7 {
		t.Fatal(step, err)
	}
	mustBeSame(t, "what is drawn next", map[string]*tensor.Tensor{"y": again.Forward(x)}, map[string]*tensor.Tensor{"y": want})
}

// What had no value goes where its model is.
func TestResumeElsewhere(t *testing.T) {
	dir := t.TempDir()
	dev := device.Wrap("there", device.KindSimulated, sim.New(sim.Options{}))
	x := tensor.On(dev).Randn(4, 2)
	build := func() (*nn.Replicas, *optim.Optimizer, *files.Checkpoints) {
		tensor.Seed(3)
		m := nn.DataParallel(nn.Sequential(nn.Dense(3), nn.Dense(1)), nn.Parallel{Shards: 2, Devices: []device.Device{dev, device.CPU()}})
		opt := optim.Adam(m.Params(), 0.1)
		return m, opt, files.NewCheckpoints(dir, files.Parts{"model": m, "optimizer": opt})
	}
	step := func(m *nn.Replicas, opt *optim.Optimizer) {
		opt.ZeroGrad()
		m.Loss(nn.MSELoss, x, tensor.On(dev).Ones(4, 1)).Backward()
		opt.Step()
	}
	m, opt, run := build()
	step(m, opt)
	must(t, run.Save(1))
	step(m, opt)
	again, opt, run := build()
	if _, err := run.Resume(); err != nil {
		t.Fatal(err)
	}
	for name, c := range opt.State() {
		if strings.HasPrefix(name, "mean.") {
			want := dev
			if name >= "mean.4" {
				want = device.CPU()
			}
			if got := c.Value().Device(); got != want {
				t.Errorf("%s is on %v, want %v", name, got, want)
			}
		}
	}
	step(again, opt)
	for i := range 2 {
		mustBeSame(t, fmt.Sprint("replica ", i), named(again.Replica(i)), named(m.Replica(i)))
	}
}

// A folder of others may have folders with names of ours: they are none of our files.
func TestFoldersOfOthers(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"step-0000000003.safetensors", "step-0000000004.safetensors.unfinished-0123abcd", "step-0000000009.safetensors"} {
		must(t, os.MkdirAll(filepath.Join(dir, name, "x"), 0o777))
	}
	n := 1
	run := files.NewCheckpoints(dir, files.Parts{"n": &n}, files.CheckpointOptions{Keep: 1})
	for step := 5; step < 7; step++ {
		must(t, run.Save(step))
	}
	if step, err := run.Resume(); step != 6 || err != nil {
		t.Errorf("Resume: %d, %v", step, err)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 4 {
		t.Errorf("the folder has %v, %v", list, err)
	}
}

// What is frozen could not get its value back, so it is no part of a checkpoint. Load changes nothing of such a model.
func TestFrozen(t *testing.T) {
	dir := t.TempDir()
	x := tensor.Ones(2, 3)
	type model struct{ A, B nn.Module }
	m := &model{nn.Dense(6), nn.Dense(5)}
	m.A.Forward(x)
	m.B.Forward(x)
	path := filepath.Join(dir, "m.safetensors")
	must(t, files.Save(path, m))
	m.B = nn.Frozen(m.B)
	m.A.Params()[0].Set(tensor.Zeros(3, 6))
	must(t, files.Save(filepath.Join(dir, "frozen.safetensors"), m))
	want := named(m)
	mistake(t, "b.weight\" is frozen", func() { _ = files.Load(path, m) })
	mustBeSame(t, "after Load", named(m), want)
	run := files.NewCheckpoints(filepath.Join(dir, "run"), files.Parts{"m": m})
	mistake(t, "m.b.weight\" is frozen", func() { _ = run.Save(1) })
	b := nn.NewBuffer(tensor.Ones(1))
	mistake(t, "is frozen", func() { _ = files.NewCheckpoints(dir, files.Parts{"b": b.Frozen()}).SaveAsync(1) })
	must(t, files.NewCheckpoints(dir, files.Parts{"b": b}).Save(1))
	mistake(t, "is frozen", func() { _, _ = files.NewCheckpoints(dir, files.Parts{"b": b.Frozen()}).Resume() })
}

// Layers without weights yet know how many outputs they have: weights of other layers are no weights of theirs.
func TestOtherLayers(t *testing.T) {
	dir := t.TempDir()
	x := map[string]*tensor.Tensor{
		"vectors": tensor.Ones(2, 6), "images": tensor.Ones(2, 4, 5, 5), "steps": tensor.Ones(2, 4, 6), "words": tensor.From([]int64{1, 2}),
	}
	for _, c := range []struct {
		input       string
		saved, want nn.Module
		n           int      // of tensors that don't fit
		wrong       []string // what is said of some
	}{
		{"vectors", nn.Dense(6), nn.Dense(7), 2, []string{`"bias" has the shape [6] in the file, want [7]`,
			`"weight" has the shape [6 6] in the file, want [? 7]`}},
		{"images", nn.Conv2D(6, tensor.Pair{3, 3}, tensor.Conv{}), nn.Conv2D(6, tensor.Pair{5, 3}, tensor.Conv{}), 1,
			[]string{`"weight" has the shape [6 4 3 3] in the file, want [6 ? 5 3]`}},
		{"images", nn.ConvTranspose2D(6, tensor.Pair{3, 3}, tensor.ConvTranspose{}), nn.ConvTranspose2D(8, tensor.Pair{3, 3}, tensor.ConvTranspose{}), 2,
			[]string{`"weight" has the shape [4 6 3 3] in the file, want [? 8 3 3]`}},
		{"words", nn.Embedding(9, 4), nn.Embedding(8, 4), 1, []string{`"weight" has the shape [9 4] in the file, want [8 4]`}},
		{"vectors", nn.PReLU(6), nn.PReLU(1), 1, []string{`"weight" has the shape [6] in the file, want [1]`}},
		{"steps", nn.Bidirectional(nn.LSTM(3, 2)), nn.Bidirectional(nn.LSTM(4, 2)), 16, []string{
			`"bias_hh_l1_reverse" has the shape [12] in the file, want [16]`,
			`"weight_ih_l0" has the shape [6 12] in the file, want [? 16]`,
			`"weight_ih_l1_reverse" has the shape [6 12] in the file, want [8 16]`}},
		{"steps", nn.GRU(3, 1), nn.RNN(3, 1), 4, []string{`"weight_hh_l0" has the shape [3 9] in the file, want [3 3]`}},
	} {
		c.saved.Forward(x[c.input])
		path := filepath.Join(dir, "x.safetensors")
		must(t, files.Save(path, c.saved))
		again := nn.Clone(c.want)
		for _, m := range []nn.Module{c.want, again} {
			err := files.Load(path, m)
			var mismatch *files.MismatchError
			if !errors.As(err, &mismatch) || len(mismatch.Wrong) != c.n || len(mismatch.Missing)+len(mismatch.Unexpected) > 0 {
				t.Fatalf("%v into %v: %v", c.saved, c.want, err)
			}
			for _, text := range c.wrong {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%v into %v: %v, want %s", c.saved, c.want, err, text)
				}
			}
		}
		c.want.Forward(x[c.input]) // it has drawn its own weights, which fit
		must(t, files.Save(path, c.want))
		must(t, files.Load(path, again))
		mustBeSame(t, "loaded", named(again), named(c.want))
	}
}

// A layer that gets some of its weights from a file draws the others at its first Forward.
func TestPartOfLayer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.safetensors")
	for _, name := range []string{"weight", "bias", "running_var", "running_mean"} {
		for _, c := range []struct {
			m nn.Module
			x *tensor.Tensor
		}{
			{nn.Dense(3), tensor.Ones(2, 3)}, {nn.Conv1D(3, 1, tensor.Conv{}), tensor.Ones(2, 3, 4)}, {nn.LayerNorm(), tensor.Ones(2, 3)},
			{nn.BatchNorm(), tensor.Randn(4, 3)}, {nn.GroupNorm(1), tensor.Ones(2, 3)},
		} {
			whole := nn.Clone(c.m)
			whole.Forward(c.x)
			value := named(whole)[name]
			if value == nil {
				continue
			}
			value = value.AddScalar(7)
			must(t, files.Write(path, map[string]*tensor.Tensor{name: value}, nil))
			must(t, files.Load(path, c.m, files.LoadOptions{Partial: true}))
			c.m.Forward(c.x)
			if strings.HasPrefix(name, "running") { // it has moved
				continue
			}
			if got := named(c.m)[name]; bits(got) != bits(value) {
				t.Errorf("%v: %s is %v, want %v", c.m, name, got, value)
			}
		}
	}
}
