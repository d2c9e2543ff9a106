package files

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/asyncgen/asyncgen/device"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Parts is what a checkpoint consists of, by names. A part is
//
//   - a model, see [nn.Named]: parameters and buffers, and the generators in its fields,
//   - what has a method State, with names for its cells: an optimiser with its rate, counts of steps and Plateau, an
//     average of weights,
//   - a [tensor.Cell], such as a generator, or another [nn.Stateful],
//   - what implements [encoding.BinaryMarshaler] and [encoding.BinaryUnmarshaler], such as the position of a loader,
//   - a pointer to a number of the program: *int, *int64, *float64, *bool or *string.
//
// The default generator is a part of each checkpoint, called "default_generator".
type Parts map[string]any

// CheckpointOptions are options of [NewCheckpoints].
type CheckpointOptions struct {
	// Keep is how many checkpoints are kept. 0: all of them.
	Keep int
}

// Checkpoints is a folder of checkpoints of one run of training. Resume makes all parts what they were at a Save, so
// that training gives the same bits as if it had gone on then:
//
//	run := files.NewCheckpoints("run1", files.Parts{
//		"model": net, "optimizer": opt, "loader": loader, "best": &best,
//	}, files.CheckpointOptions{Keep: 3})
//	step, err := run.Resume()
//	...
//	for ; step < steps; step++ {
//		if step%1000 == 0 {
//			if err := run.SaveAsync(step); err != nil {
//				return err
//			}
//		}
//		...
//	}
//	return run.Wait()
//
// Gradients are no part of it: save between one Step and the next Backward. Schedules are functions of the number of
// steps, and need no state. What else the program draws from or counts must be among the parts.
//
// A checkpoint is a safetensors file, step-0000001000.safetensors. The tensors of a part have its name and a dot in
// front: "model.0.weight". A value or the bytes of a marshaler are one tensor with the name of the part. Other programs
// can open it, and [Load] with LoadOptions.Prefix takes a model out of it. The file has a checksum.
//
// Files take their places whole, see the package comment: a program that is killed, or a full disk, leaves the
// checkpoints before. What an interrupted save leaves is removed by the next one. One program at a time may save to a
// folder. Checkpoints is for one goroutine at a time.
type Checkpoints struct {
	dir   string
	parts Parts
	keep  int
	saved chan error // of the save under way, which sends its error; nil: there is none
}

// NewCheckpoints returns the checkpoints of a folder, which is made by the first save. It looks at no file. It panics
// with a [tensor.Mistake] if a part is nil or none of the kinds that [Parts] lists, or if its name is empty, has a dot
// or is "default_generator".
//
//asyncgen:api pure
func NewCheckpoints(dir string, parts Parts, options ...CheckpointOptions) *Checkpoints {
	o := only("NewCheckpoints", options)
	if o.Keep < 0 {
		wrong("NewCheckpoints", "%d checkpoints to keep", o.Keep)
	}
	c := &Checkpoints{dir: dir, parts: maps.Clone(parts), keep: o.Keep}
	for name, p := range parts {
		switch {
		case name == "" || strings.Contains(name, ".") || name == generatorName:
			wrong("NewCheckpoints", "a part can't be called %q", name)
		case isNil(p):
			wrong("NewCheckpoints", "the part %q is nil", name)
		case !isPart(p):
			wrong("NewCheckpoints", "the part %q is of type %T, want a pointer to a number, a model, an optimiser or what else files.Parts has", name, p)
		}
	}
	return c
}

const generatorName = "default_generator"

// named is what lists its cells with names.
type named interface {
	State() iter.Seq2[string, tensor.Cell]
}

// marshaler is what turns itself into bytes and back.
type marshaler interface {
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}

func isNil(p any) bool {
	v := reflect.ValueOf(p)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// isPart reports whether p, which is not nil, can be a part. Whether a model is one is said by nn.Named.
func isPart(p any) bool {
	switch p.(type) {
	case *int, *int64, *float64, *bool, *string, tensor.Cell, named, marshaler, nn.Stateful:
		return true
	}
	return len(nn.Cells(p)) > 0 || isModule(p)
}

func isModule(p any) bool {
	_, ok := p.(nn.Module)
	return ok
}

// slots lists what the parts consist of: first what can refuse its value, then models, then what follows models to
// their devices.
func (c *Checkpoints) slots() []slot {
	list := []slot{cellSlot(generatorName, tensor.DefaultGenerator())}
	for _, name := range slices.Sorted(maps.Keys(c.parts)) {
		list = append(list, slotsOf(name, c.parts[name])...)
	}
	slices.SortStableFunc(list, func(a, b slot) int { return cmp.Compare(a.turn, b.turn) })
	return list
}

// slotsOf lists what one part consists of.
func slotsOf(name string, p any) (list []slot) {
	switch p := p.(type) {
	case *int:
		return []slot{valueSlot(name, tensor.Int64, func() *tensor.Tensor { return number(int64(*p)) },
			func(t *tensor.Tensor) { *p = int(t.ItemInt()) })}
	case *int64:
		return []slot{valueSlot(name, tensor.Int64, func() *tensor.Tensor { return number(*p) },
			func(t *tensor.Tensor) { *p = t.ItemInt() })}
	case *float64:
		return []slot{valueSlot(name, tensor.Float64, func() *tensor.Tensor { return number(*p) },
			func(t *tensor.Tensor) { *p = t.Item() })}
	case *bool:
		return []slot{valueSlot(name, tensor.Bool, func() *tensor.Tensor { return number(*p) },
			func(t *tensor.Tensor) { *p = tensor.ItemOf[bool](t) })}
	case *string:
		return []slot{bytesSlot(name, func() ([]byte, error) { return []byte(*p), nil }, func(b []byte) error {
			*p = string(b)
			return nil
		})}
	case tensor.Cell:
		return []slot{cellSlot(name, p)}
	case named:
		for cell, c := range p.State() {
			list = append(list, cellSlot(name+"."+cell, c))
		}
		return list
	case marshaler:
		return []slot{bytesSlot(name, p.MarshalBinary, p.UnmarshalBinary)}
	}
	isNamed := map[tensor.Cell]bool{}
	var cells []tensor.Cell
	if isModel(p) {
		for cell, c := range nn.Named(p) {
			s := cellSlot(name+"."+cell, c)
			s.turn = models
			list = append(list, s)
		}
		cells = nn.Cells(p)
	} else {
		cells = p.(nn.Stateful).Cells()
	}
	for _, s := range list {
		isNamed[s.cell] = true
	}
	if r, ok := p.(*nn.Replicas); ok {
		cells = nn.Cells(r.Replica(0)) // others hold the same
	}
	n := 0 // of cells without a name
	for _, c := range cells {
		if !isNamed[c] {
			list = append(list, cellSlot(fmt.Sprintf("%s.cells.%d", name, n), c))
			n++
		}
	}
	return list
}

// isModel reports whether nn.Named finds the cells of p: it is a module, or no Stateful.
func isModel(p any) bool {
	_, isStateful := p.(nn.Stateful)
	return isModule(p) || !isStateful
}

func number[T int64 | float64 | bool](v T) *tensor.Tensor {
	t := tensor.OfOn(device.CPU(), []T{v})
	defer tensor.Dead(t)
	return t.Reshape()
}

// valueSlot is the slot of a number of the program.
func valueSlot(name string, dt tensor.DType, get func() *tensor.Tensor, set func(t *tensor.Tensor)) slot {
	return slot{name: name, turn: values, dtype: dt, shape: device.Shape{},
		get: func() (*tensor.Tensor, error) { return get(), nil },
		set: func(t *tensor.Tensor) error {
			set(t)
			return nil
		}}
}

// bytesSlot is the slot of something of any length.
func bytesSlot(name string, get func() ([]byte, error), set func(b []byte) error) slot {
	return slot{name: name, turn: values, isOpen: true, bytes: true,
		get: func() (*tensor.Tensor, error) {
			b, err := get()
			if err != nil {
				return nil, fmt.Errorf("files: part %q: %w", name, err)
			}
			return tensor.OfOn(device.CPU(), b), nil
		},
		set: func(t *tensor.Tensor) error {
			if err := set(tensor.SliceOf[uint8](t)); err != nil {
				return fmt.Errorf("files: part %q: %w", name, err)
			}
			return nil
		}}
}

// A description is what the header of a checkpoint says beside its tensors.
type description struct {
	Version int `json:"version"`
	Step    int `json:"step"`
	// Devices has the device of each tensor that was on another one than the default device.
	Devices map[string]string `json:"devices,omitempty"`
}

const (
	descriptionKey = "checkpoint"
	checksumKey    = "checksum"
	// checksumStart comes before the 8 digits of the checksum. Elsewhere in a header these quotes have a backslash.
	checksumStart = `"` + checksumKey + `":"crc32c:`
	noChecksum    = "00000000"
	version       = 1
)

// Save writes a checkpoint with the given number, which is usually that of steps that were made, and from 0 on. Then
// it removes those that are not among the last that are to be kept: of this number and below. Save first waits for a
// SaveAsync before it, and returns its error, too. It waits until all values have been computed, and returns the
// *asyncrt.OpError of one that failed without writing anything. It panics with a [tensor.Mistake] if a parameter or
// buffer is frozen, which no Resume could set: keep the part with it out of the model by the tag `nn:"-"`. It does so
// too if other ranks have what an optimiser remembers (nn.Parallel.Zero): they all call its Gather before.
//
//asyncgen:api save
//go:noinline
func (c *Checkpoints) Save(step int) error {
	before := c.Wait()
	about, tensors, err := c.snapshot(step)
	if err == nil {
		err = c.write(about, tensors)
	}
	return errors.Join(before, err)
}

// SaveAsync is [Checkpoints.Save] in a goroutine. It takes note of what the parts hold now, which costs a few handles,
// and returns: training may go on and change everything. Values of the program and the bytes of marshalers are copied
// at once; tensors keep their memory until they have been written. If an earlier save has not ended, SaveAsync waits
// for it. It returns the error of that save, and begins the new one all the same. The last save ends with Wait.
//
//asyncgen:api control
//go:noinline
func (c *Checkpoints) SaveAsync(step int) error {
	before := c.Wait()
	about, tensors, err := c.snapshot(step)
	if err != nil {
		return errors.Join(before, err)
	}
	saved := make(chan error, 1)
	c.saved = saved
	go func() {
		asyncrt.AllowSync(func() { err = c.write(about, tensors) })
		saved <- err
	}()
	return before
}

// Wait waits until the save under way has ended and returns its error. It returns nil if there is none.
//
//asyncgen:api waitall
//go:noinline
func (c *Checkpoints) Wait() error {
	if c.saved == nil {
		return nil
	}
	err := <-c.saved
	c.saved = nil
	return err
}

// snapshot returns what the parts hold now.
func (c *Checkpoints) snapshot(step int) (about description, tensors map[string]*tensor.Tensor, err error) {
	if step < 0 {
		wrong("Save", "a checkpoint with the number %d", step)
	}
	about = description{Version: version, Step: step, Devices: map[string]string{}}
	tensors = map[string]*tensor.Tensor{}
	slots := c.slots()
	mustSet("Save", slots)
	for _, s := range slots {
		if tensors[s.name] != nil {
			wrong("Save", "two parts are called %q", s.name)
		}
		if c, ok := s.cell.(interface{ Away() int }); ok {
			wrong("Save", "%s is on rank %d: all ranks call Gather of the optimiser before one saves it", quoted(s.name), c.Away())
		}
		t, err := s.get()
		if err != nil {
			dead(tensors)
			return about, nil, err
		}
		if t == nil {
			continue
		}
		if dev := t.Device().Unscoped(); s.cell != nil && dev != device.Default() {
			about.Devices[s.name] = dev.String()
		}
		tensors[s.name] = t
	}
	return about, tensors, nil
}

// write writes a checkpoint of tensors, and lets go of them.
func (c *Checkpoints) write(about description, tensors map[string]*tensor.Tensor) error {
	defer dead(tensors)
	text, err := json.Marshal(about)
	if err != nil {
		return err
	}
	path := filepath.Join(c.dir, fileName(about.Step))
	e, err := prepared("Save", tensors, map[string]string{descriptionKey: string(text), checksumKey: "crc32c:" + noChecksum})
	if err != nil {
		return in(path, err)
	}
	if err := makeFolder(c.dir); err != nil {
		return err
	}
	if err := removeUnfinished(c.dir); err != nil {
		return err
	}
	err = writeFile(path, func(f *os.File) error {
		sum := crc32.New(castagnoli)
		if err := e.write(io.MultiWriter(f, sum)); err != nil {
			return in(path, err)
		}
		at := bytes.Index(e.head, []byte(checksumStart)) + len(checksumStart)
		if _, err := f.WriteAt(fmt.Appendf(nil, "%08x", sum.Sum32()), int64(at)); err != nil {
			return fmt.Errorf("files: %w", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.prune(about.Step)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// fileName is that of a checkpoint.
func fileName(step int) string { return fmt.Sprintf("step-%010d.safetensors", step) }

// stepOf is the inverse of fileName.
func stepOf(name string) (step int, ok bool) {
	digits, _ := strings.CutPrefix(strings.TrimSuffix(name, ".safetensors"), "step-")
	step, err := strconv.Atoi(digits)
	return step, err == nil && step >= 0 && fileName(step) == name
}

// removeUnfinished removes what saves that were interrupted have left.
func removeUnfinished(dir string) error {
	list, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("files: %w", err)
	}
	for _, e := range list {
		name, isUnfinished := unfinished(e.Name())
		if _, ok := stepOf(name); !ok || !isUnfinished || e.IsDir() { // folders are not ours
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("files: %w", err)
		}
	}
	return nil
}

// prune removes checkpoints until Keep are left of those up to step.
func (c *Checkpoints) prune(step int) error {
	if c.keep == 0 {
		return nil
	}
	steps, err := stepsIn(c.dir)
	if err != nil {
		return err
	}
	steps = slices.DeleteFunc(steps, func(s int) bool { return s > step })
	for _, s := range steps[min(c.keep, len(steps)):] {
		if err := os.Remove(filepath.Join(c.dir, fileName(s))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("files: %w", err)
		}
	}
	return nil
}

// stepsIn lists the numbers of the checkpoints in a folder, the last first.
func stepsIn(dir string) ([]int, error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("files: %w", err)
	}
	var steps []int
	for _, e := range list {
		if step, ok := stepOf(e.Name()); ok && !e.IsDir() {
			steps = append(steps, step)
		}
	}
	slices.SortFunc(steps, func(a, b int) int { return cmp.Compare(b, a) })
	return steps, nil
}

// Latest returns the path of the checkpoint with the greatest number in a folder, and that number. It reads whole files
// to check them, and skips those that are damaged. If all are, Latest returns an error that lists what is wrong with
// them; if there are none, or no folder, it is an [fs.ErrNotExist].
//
//asyncgen:api control
func Latest(dir string) (path string, step int, err error) {
	f, about, err := latest(dir)
	if err != nil {
		return "", 0, err
	}
	return f.path, about.Step, f.Close()
}

// latest opens the latest checkpoint that is not damaged.
func latest(dir string) (*File, description, error) {
	steps, err := stepsIn(dir)
	if err != nil {
		return nil, description{}, err
	}
	var damaged []error
	for _, step := range steps {
		path := filepath.Join(dir, fileName(step))
		f, about, err := openCheckpoint(path)
		if err == nil && about.Step != step {
			err = cmp.Or(f.Close(), in(path, malformed("the checkpoint is that of step %d", about.Step)))
		}
		if err == nil {
			return f, about, nil
		}
		if errors.Is(err, fs.ErrNotExist) { // it is a link to nothing, or was removed just now
			err = &FormatError{path, "there is no such file"}
		}
		if _, isDamaged := err.(*FormatError); !isDamaged {
			return nil, description{}, err
		}
		damaged = append(damaged, err)
	}
	if len(damaged) == 0 {
		return nil, description{}, fmt.Errorf("files: no checkpoint in %s: %w", quoted(dir), fs.ErrNotExist)
	}
	return nil, description{}, errors.Join(damaged...)
}

// openCheckpoint opens a checkpoint and holds it against its checksum.
func openCheckpoint(path string) (f *File, about description, err error) {
	if f, err = Open(path); err != nil {
		return nil, about, err
	}
	text, ok := f.metadata[descriptionKey]
	switch {
	case !ok:
		err = malformed("this is no checkpoint")
	case json.Unmarshal([]byte(text), &about) != nil:
		err = malformed("the description of the checkpoint is damaged")
	case about.Version != version || about.Step < 0:
		err = malformed("a checkpoint of version %d and step %d, want version %d", about.Version, about.Step, version)
	default:
		err = f.shards[0].check()
	}
	if err != nil {
		f.Close()
		return nil, about, in(path, err)
	}
	return f, about, nil
}

// check holds the file against its checksum.
func (s *shard) check() error {
	return guarded(func() error {
		want, ok := strings.CutPrefix(s.metadata[checksumKey], "crc32c:")
		if !ok || len(want) != len(noChecksum) {
			return malformed("the checkpoint has no checksum")
		}
		head, err := s.bytes(0, s.header)
		if err != nil {
			return err
		}
		at := bytes.Index(head, []byte(checksumStart))
		if at < 0 {
			return malformed("the checkpoint has no checksum")
		}
		at += len(checksumStart)
		sum := crc32.Update(0, castagnoli, head[:at])
		sum = crc32.Update(sum, castagnoli, []byte(noChecksum))
		sum = crc32.Update(sum, castagnoli, head[at+len(noChecksum):])
		const piece = 1 << 22
		for at := s.header; at < s.size(); at += piece {
			b, err := s.bytes(at, min(piece, s.size()-at))
			if err != nil {
				return err
			}
			sum = crc32.Update(sum, castagnoli, b)
		}
		if got := fmt.Sprintf("%08x", sum); got != want {
			return malformed("the file is damaged: its checksum is %s, want %s", got, want)
		}
		return nil
	})
}

// Resume makes the parts what they were when the latest checkpoint was saved, and returns its number: see [Latest] and
// [Checkpoints.Load]. If there is no checkpoint, Resume changes nothing and returns 0. It first waits for a SaveAsync
// before it.
//
//asyncgen:api control
//go:noinline
func (c *Checkpoints) Resume() (step int, err error) {
	if err := c.Wait(); err != nil {
		return 0, err
	}
	f, about, err := latest(c.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return about.Step, c.load(f, about)
}

// Load makes the parts what they were when the checkpoint at path was saved, and returns its number. The parts must
// have been made in the same way: names, shapes and element types are as in the file, or Load returns a
// [*MismatchError] that lists all differences. It does too if something has a value now and had none at the Save. A
// cell without a value, as layers and optimisers have at first, gets its own on the device of the same name as then if
// parts are there, or else on the default device. On any error the parts are left as they were.
//
//asyncgen:api control
//go:noinline
func (c *Checkpoints) Load(path string) (step int, err error) {
	if err := c.Wait(); err != nil {
		return 0, err
	}
	f, about, err := openCheckpoint(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return about.Step, c.load(f, about)
}

// load gives the parts the values in f.
func (c *Checkpoints) load(f *File, about description) (err error) {
	p, infos := part{path: f.path, slots: c.slots()}, f.infos("")
	mustSet("Load", p.slots)
	p.slots = slices.DeleteFunc(p.slots, func(s slot) bool { // cells may have no value on both sides
		_, hasValue := infos[s.name]
		return s.isOpen && s.cell != nil && !hasValue
	})
	if err := p.check(infos); err != nil {
		return err
	}
	all := map[string]*tensor.Tensor{}
	defer func() { dead(all) }()
	for name, t := range f.each("", &err, func(string) bool { return true }) {
		all[name] = t
	}
	if err != nil {
		return err
	}
	n := 0 // of values of the program
	for n < len(p.slots) && p.slots[n].turn == values {
		n++
	}
	if err := setValues(p.slots[:n], all); err != nil {
		return err
	}
	p.slots = p.slots[n:]
	return c.setCells(&p, all, about.Devices)
}

// setValues gives values of the program to slots. If one refuses, all stay as they were.
func setValues(slots []slot, all map[string]*tensor.Tensor) error {
	var undo []func()
	for _, s := range slots {
		old, err := s.get()
		if err == nil {
			undo = append(undo, func() {
				_ = s.set(old) // it is what the part itself has said
			})
			err = s.set(all[s.name])
		}
		if err != nil {
			for _, u := range slices.Backward(undo) {
				u()
			}
			return err
		}
	}
	return nil
}

// setCells gives cells their values, those of models first. What devices says holds if models are on these devices.
func (c *Checkpoints) setCells(p *part, all map[string]*tensor.Tensor, devices map[string]string) error {
	var known map[string]device.Device
	where := func(name string) device.Device {
		if d, ok := known[devices[name]]; ok {
			return d
		}
		return device.Default()
	}
	n := 0 // of cells of models
	for n < len(p.slots) && p.slots[n].turn == models {
		n++
	}
	rest := part{slots: p.slots[n:]}
	p.slots = p.slots[:n]
	known = c.devices()
	if err := p.set(all, where); err != nil {
		return err
	}
	for _, m := range c.parts {
		inStep(m)
	}
	known = c.devices()
	return rest.set(all, where)
}

// devices returns the devices of all that the parts hold, by their names.
func (c *Checkpoints) devices() map[string]device.Device {
	known := map[string]device.Device{}
	add := func(c tensor.Cell) {
		if isSet(c) {
			d := deviceOf(c)
			known[d.String()] = d
		}
	}
	for _, s := range c.slots() {
		if s.cell != nil {
			add(s.cell)
		}
	}
	for _, p := range c.parts {
		if r, ok := p.(*nn.Replicas); ok { // only the first one has slots
			for _, cell := range r.Cells() {
				add(cell)
			}
		}
	}
	return known
}
