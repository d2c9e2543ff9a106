// Package files keeps models and tensors in files: safetensors, alone or in shards, NumPy's npy and npz, and
// checkpoints, from which training goes on as if it had not been interrupted.
//
//	err := files.Save("net.safetensors", net) // names and tensors, as nn.Named has them
//	err = files.Load("net.safetensors", net)  // into a model that was built in the same way
//
//	w, err := files.Open("net.safetensors")   // reads names, types and shapes
//	t, err := w.Tensor("0.weight")            // reads this tensor
//
//	run := files.NewCheckpoints("run1", files.Parts{"model": net, "optimizer": opt, "epoch": &epoch})
//	step, err := run.Resume()                 // 0 if there is no checkpoint yet
//	err = run.SaveAsync(step)                 // training goes on while the file is written
//	err = run.Wait()
//
// # What waits
//
// Whatever writes a tensor waits until it has been computed: [Save], [Write], [WriteTo], [WriteShards], [WriteNPY],
// [EncodeNPY], [WriteNPZ] and [Checkpoints.Save]. [Checkpoints.SaveAsync] waits for nothing but the save before it.
// Whatever reads files waits for the files only: the tensors that it returns have been computed.
//
// # Files of others
//
// Files may come from strangers. What a file says is held against its length before memory is allocated for it, and
// nothing in a file is run: pickled objects are refused. A file that is not what it should be is a [*FormatError],
// which names it. Only regular files are opened for reading, and symbolic links to them.
//
// # Files that are written
//
// A file is written under another name in the same folder, is forced to the disk and then takes the place of what was
// there. So there is always a whole file, the old one or the new one, and an error leaves the old one, and no other
// file. A symbolic link is replaced, and not followed. A file that not everybody may read stays so. The folder must
// exist, and the program must be able to read it.
package files

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A FormatError says that a file does not contain what its format demands, or something that is refused.
type FormatError struct {
	Path string // the file; "" if it was read from an [io.Reader]
	Text string // what is wrong
}

// Error names the file and says what is wrong with it.
//
//asyncgen:api pure
func (e *FormatError) Error() string {
	if e.Path == "" {
		return "files: " + e.Text
	}
	return "files: " + strconv.Quote(e.Path) + ": " + e.Text
}

// malformed returns an error about a file that is not known yet; in puts its path there.
func malformed(format string, args ...any) error {
	return &FormatError{Text: fmt.Sprintf(format, args...)}
}

// in returns err as one about the file at path.
func in(path string, err error) error {
	if f, ok := err.(*FormatError); ok && f.Path == "" {
		return &FormatError{Path: path, Text: f.Text}
	}
	return err
}

// maxQuoted bounds how much of a name from a file an error shows.
const maxQuoted = 200

// quoted is a name in an error.
func quoted(name string) string {
	if len(name) > maxQuoted {
		return strconv.Quote(name[:maxQuoted]) + "..."
	}
	return strconv.Quote(name)
}

// A MismatchError lists everything in which a file differs from what is loaded from it.
type MismatchError struct {
	Path       string
	Missing    []string // names that the file lacks
	Unexpected []string // names that only the file has
	Wrong      []string // a line for each tensor of another shape or element type
}

// maxListed bounds how many names of a kind an error shows.
const maxListed = 100

// Error lists all names, but no more than 100 of a kind.
//
//asyncgen:api pure
func (e *MismatchError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "files: %q does not fit", e.Path)
	list := func(kind string, lines []string, show func(string) string) {
		for i, line := range lines {
			if i == maxListed {
				fmt.Fprintf(&b, "\n\t... and %d more", len(lines)-i)
				break
			}
			fmt.Fprintf(&b, "\n\t%s%s", kind, show(line))
		}
	}
	list("missing in the file: ", e.Missing, quoted)
	list("only in the file: ", e.Unexpected, quoted)
	list("", e.Wrong, func(line string) string { return line })
	return b.String()
}

// wrong panics with a [tensor.Mistake] about the function with the given name.
func wrong(name, format string, args ...any) {
	panic(&tensor.Mistake{Package: "files", Op: name, Text: fmt.Sprintf(format, args...)})
}

// only returns the options that a function was given, or none. It panics if there are more than one.
func only[T any](name string, options []T) (o T) {
	switch len(options) {
	case 0:
	case 1:
		o = options[0]
	default:
		wrong(name, "%d structs of options, want one", len(options))
	}
	return o
}

// SaveOptions are options of [Save].
type SaveOptions struct {
	// Metadata are words about the model that the file keeps. Some libraries want to find {"format": "pt"} there.
	Metadata map[string]string
	// Shard is how many bytes of tensors a file holds at most. If it is set, Save writes shards: see [WriteShards]. 0:
	// there is one file.
	Shard int64
}

// Save writes the parameters and buffers of a model to a safetensors file, by their names: see [nn.Named]. Gradients
// are not saved. Save waits until the values have been computed, and returns the *asyncrt.OpError of one that failed
// without writing anything. It panics with a [tensor.Mistake] if a parameter or buffer has no value yet.
//
//asyncgen:api save 1
//go:noinline
func Save(path string, m any, options ...SaveOptions) error {
	o := only("Save", options)
	tensors := map[string]*tensor.Tensor{}
	defer func() { dead(tensors) }()
	for name, c := range nn.Named(m) {
		if !isSet(c) {
			wrong("Save", "%s has no value yet: layers give theirs a value at their first Forward", name)
		}
		tensors[name] = snapshot(c)
	}
	if o.Shard != 0 {
		return writeShards("Save", path, tensors, o.Metadata, o.Shard)
	}
	return write("Save", path, tensors, o.Metadata)
}

// dead lets go of tensors that nobody else has.
func dead(tensors map[string]*tensor.Tensor) {
	for _, t := range tensors {
		tensor.Dead(t)
	}
}

// isSet reports whether a cell has a value. Only parameters and buffers may have none.
func isSet(c tensor.Cell) bool {
	s, ok := c.(interface{ IsSet() bool })
	return !ok || s.IsSet()
}

// snapshot returns a handle of its own of what c holds now, untracked.
func snapshot(c tensor.Cell) *tensor.Tensor {
	v := c.Value()
	t := v.Detach()
	if isOurs(c) {
		tensor.Dead(v) // cells of other types may have that handle themselves
	}
	return t
}

// LoadOptions are options of [Load].
type LoadOptions struct {
	// Prefix is what the names of the model's tensors begin with in the file: "model." for a model in a checkpoint.
	// Other tensors of the file are not the model's, and not unexpected.
	Prefix string
	// Partial says that the model and the file may each have names that the other lacks. Those of the model keep their
	// values.
	Partial bool
	// Convert says that element types may differ: values are converted to those of the model.
	Convert bool
	// Map, if it is set, is given each tensor of the file, on the CPU, with its name without Prefix. It returns what
	// the model is to see instead: another name, a transposed tensor. An empty name leaves the tensor out.
	//
	// A tensor of a type that tensors don't have is an error. If Partial is set, and the model has no such name, it is
	// left out before.
	Map func(name string, t *tensor.Tensor) (string, *tensor.Tensor)
}

// Load gives the parameters and buffers of a model the values that a file has for their names: see [nn.Named]. The file
// is safetensors, or the index of its shards, whose name ends with ".json". All names must be the same, and shapes and
// element types those of the present values; if not, Load returns a [*MismatchError] that lists all differences. A
// parameter without a value yet, as layers have before their first Forward, takes any shape that the layer can have,
// see [tensor.LazyParam], and is put on the default device. Others stay on their devices. On any error the model is
// left as it was. Load panics with a [tensor.Mistake], and changes nothing, if a parameter or buffer is frozen.
//
// PyTorch's weight of a Linear has the shape (out, in), where [nn.Dense] has (in, out), and so have those of LSTM, GRU
// and RNN; a square one would be loaded as it is. Its BatchNorm counts in num_batches_tracked, for which there is
// nothing here. Map is for that:
//
//	files.Load(path, net, files.LoadOptions{Map: func(name string, t *tensor.Tensor) (string, *tensor.Tensor) {
//		if name == "head.weight" {
//			t = t.T()
//		}
//		return name, t
//	}})
//
// Load takes the memory of the new values beside that of the old ones. It does not wait for tensors, unless Map does.
//
//asyncgen:api control
//go:noinline
func Load(path string, m any, options ...LoadOptions) error {
	o := only("Load", options)
	p := part{path: path, loose: o.Partial, convert: o.Convert}
	ofModel := map[string]bool{}
	for name, c := range nn.Named(m) {
		p.slots = append(p.slots, cellSlot(name, c))
		ofModel[name] = true
	}
	mustSet("Load", p.slots)
	f, err := Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	all := map[string]*tensor.Tensor{}
	defer func() { dead(all) }()
	infos := map[string]Info{}
	if o.Map == nil { // nothing is read of a file that doesn't fit
		infos = f.infos(o.Prefix)
		err = p.check(infos)
	}
	wanted := func(name string) bool {
		info, _ := f.Info(o.Prefix + name)
		isForMap := o.Map != nil && !(o.Partial && info.DType == device.Invalid)
		return isForMap || ofModel[name]
	}
	for name, t := range f.each(o.Prefix, &err, wanted) {
		if o.Map != nil {
			if name, t = remapped(o.Map, name, t); name == "" {
				continue
			}
			if all[name] != nil {
				return in(path, malformed("Map gives two tensors the name %s", quoted(name)))
			}
			infos[name] = Info{DType: t.DType(), Shape: t.Shape()}
		}
		all[name] = t
	}
	if o.Map != nil && err == nil {
		err = p.check(infos)
	}
	if err != nil {
		return err
	}
	if err := p.set(all, func(string) device.Device { return device.Default() }); err != nil {
		return err
	}
	inStep(m)
	return nil
}

// remapped returns what f, a [LoadOptions.Map], makes of t, and lets go of t. The result is a handle of our own, as the
// program may use what f has returned again.
func remapped(f func(string, *tensor.Tensor) (string, *tensor.Tensor), name string, t *tensor.Tensor) (string, *tensor.Tensor) {
	to, made := f(name, t)
	switch {
	case to == "":
		tensor.Dead(t)
		return "", nil
	case made == nil:
		wrong("Load", "Map returns no tensor for %q", name)
	case made == t:
		return to, t
	}
	own := made.Detach()
	tensor.Dead(t)
	return to, own
}

// infos describes the tensors whose names begin with prefix, by their names without it.
func (f *File) infos(prefix string) map[string]Info {
	infos := map[string]Info{}
	for _, full := range f.names {
		if name, ok := strings.CutPrefix(full, prefix); ok {
			infos[name], _ = f.Info(full)
		}
	}
	return infos
}

// inStep makes all replicas of m hold what the first one holds.
func inStep(m any) {
	if r, ok := m.(*nn.Replicas); ok {
		r.Sync()
	}
}

// each goes over the tensors whose names begin with prefix and pass wanted, on the CPU, by their names without prefix.
// It ends at the first error, and is empty if there is one already.
func (f *File) each(prefix string, err *error, wanted func(name string) bool) iter.Seq2[string, *tensor.Tensor] {
	return func(yield func(string, *tensor.Tensor) bool) {
		if *err != nil {
			return
		}
		for _, full := range f.names {
			name, ok := strings.CutPrefix(full, prefix)
			if !ok || !wanted(name) {
				continue
			}
			t, e := f.TensorOn(device.CPU(), full)
			if e != nil {
				*err = e
				return
			}
			if !yield(name, t) {
				return
			}
		}
	}
}

// A part is what takes values from a file by their names.
type part struct {
	path           string // of the file
	slots          []slot
	loose, convert bool // see LoadOptions.Partial and Convert
}

// A slot is one thing that has a value in a file.
type slot struct {
	name string
	turn turn
	cell tensor.Cell // nil: it is a value of the program

	isOpen bool         // it takes any element type, and lengths where shape has -1
	dtype  device.DType // what it takes if it is not open
	shape  device.Shape // nil: any shape
	float  bool         // if it is open, it takes floating-point numbers only
	bytes  bool         // so, too, but any number of bytes

	get func() (*tensor.Tensor, error) // a handle of its own, or nil if there is no value
	set func(t *tensor.Tensor) error   // t is on the CPU, unless it is for a cell
}

// A turn says which slots get their values before which.
type turn int

const (
	values turn = iota
	models
	others
)

// cellSlot returns the slot of a cell.
func cellSlot(name string, c tensor.Cell) slot {
	s := slot{name: name, turn: others, cell: c, isOpen: !isSet(c)}
	if !s.isOpen {
		v := snapshot(c)
		defer tensor.Dead(v)
		s.dtype, s.shape = v.DType(), v.Shape()
	}
	if p, ok := c.(*tensor.Param); ok {
		s.float = true
		if s.isOpen {
			s.shape = p.Awaits()
		}
	}
	s.get = func() (*tensor.Tensor, error) {
		if !isSet(c) {
			return nil, nil
		}
		return snapshot(c), nil
	}
	s.set = func(t *tensor.Tensor) error {
		c.Set(t)
		return nil
	}
	return s
}

// mustSet panics, about the function with the given name, if a cell is frozen: it can't be given a value.
func mustSet(name string, slots []slot) {
	for _, s := range slots {
		if c, ok := s.cell.(interface{ IsFrozen() bool }); ok && c.IsFrozen() {
			wrong(name, "%s is frozen: give the model its values before nn.Frozen, or keep that part out by the tag `nn:\"-\"`", quoted(s.name))
		}
	}
}

// takes reports whether s can have a value of a shape.
func (s *slot) takes(shape device.Shape) bool {
	return s.shape == nil && s.isOpen || slices.EqualFunc(s.shape, shape, func(want, n int) bool { return want == n || want < 0 })
}

// wantedShape is the shape in an error.
func (s *slot) wantedShape() string { return strings.ReplaceAll(s.shape.String(), "-1", "?") }

// check returns a MismatchError if the slots cannot have such values.
func (p *part) check(all map[string]Info) error {
	e := &MismatchError{Path: p.path}
	known := make(map[string]bool, len(p.slots))
	for _, s := range p.slots {
		known[s.name] = true
		t, ok := all[s.name]
		switch {
		case !ok:
			e.Missing = append(e.Missing, s.name)
			continue
		case !s.takes(t.Shape):
			e.Wrong = append(e.Wrong, fmt.Sprintf("%s has the shape %v in the file, want %s", quoted(s.name), t.Shape, s.wantedShape()))
		}
		isRight, want := s.dtype == t.DType, s.dtype.String()
		switch {
		case s.bytes:
			isRight, want = t.DType == tensor.Uint8 && len(t.Shape) == 1, "uint8 on one axis"
		case s.isOpen:
			isRight, want = !s.float || t.DType.IsFloat(), "floating-point numbers"
		}
		if !isRight && !(p.convert && s.cell != nil && t.DType != device.Invalid) {
			e.Wrong = append(e.Wrong, fmt.Sprintf("%s is of %s in the file, want %s", quoted(s.name), t.typeName(), want))
		}
	}
	for name := range all {
		if !known[name] {
			e.Unexpected = append(e.Unexpected, name)
		}
	}
	slices.Sort(e.Missing)
	slices.Sort(e.Unexpected)
	slices.Sort(e.Wrong)
	if p.loose {
		e.Missing, e.Unexpected = nil, nil
	}
	if len(e.Missing)+len(e.Unexpected)+len(e.Wrong) > 0 {
		return e
	}
	return nil
}

// set gives the slots their values, which have passed check. A cell without a value gets its own on the device that
// where returns for its name.
func (p *part) set(all map[string]*tensor.Tensor, where func(name string) device.Device) error {
	for _, s := range p.slots {
		t := all[s.name]
		if t == nil {
			continue
		}
		if s.cell == nil {
			if err := s.set(t); err != nil {
				return err
			}
			continue
		}
		dtype, dev := s.dtype, device.Device{}
		if !s.isOpen {
			dev = deviceOf(s.cell)
		} else {
			dev, dtype = where(s.name), t.DType()
			if s.float && !dtype.IsFloat() {
				dtype = device.Float32
			}
		}
		converted := t
		if t.DType() != dtype {
			converted = t.As(dtype)
		}
		moved := converted.To(dev)
		if err := s.set(moved); err != nil {
			return err
		}
		if converted != t {
			tensor.Dead(converted)
		}
		if isOurs(s.cell) {
			tensor.Dead(moved) // others may keep the handle
		}
	}
	return nil
}

// isOurs reports whether a cell gives away and keeps handles that nobody else has.
func isOurs(c tensor.Cell) bool {
	switch c.(type) {
	case *tensor.Param, *tensor.Buffer:
		return true
	}
	return false
}

// deviceOf returns the device of what a cell holds.
func deviceOf(c tensor.Cell) device.Device {
	v := snapshot(c)
	defer tensor.Dead(v)
	return v.Device().Unscoped()
}
