package files_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
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

// everyType has tensors of every type, with every value of those with 16 bits or fewer.
func everyType() map[string]*tensor.Tensor {
	half, brain, bytes := make([]tensor.Float16Bits, 1<<16), make([]tensor.BFloat16Bits, 1<<16), make([]uint8, 256)
	for i := range half {
		half[i], brain[i] = tensor.Float16Bits(i), tensor.BFloat16Bits(i)
	}
	for i := range bytes {
		bytes[i] = uint8(i)
	}
	nan := math.Float32frombits(0x7fc12345)
	return map[string]*tensor.Tensor{
		"float32":  tensor.Of([]float32{0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), nan, 1e-45, math.MaxFloat32}, 2, 3),
		"float64":  tensor.Of([]float64{math.Pi, math.Inf(-1), math.Float64frombits(0xfff8000000000001), 5e-324}),
		"float16":  tensor.Of(half, 256, 256),
		"bfloat16": tensor.Of(brain, 2, 1<<15),
		"int64":    tensor.Of([]int64{math.MinInt64, -1, 0, math.MaxInt64}, 4, 1),
		"int32":    tensor.Of([]int32{math.MinInt32, -1, 7, math.MaxInt32}),
		"uint8":    tensor.Of(bytes, 16, 16),
		"bool":     tensor.Of([]bool{true, false, true}),
		"number":   tensor.Scalar(2.5),
		"empty":    tensor.Zeros(0, 3),
		"view":     tensor.Arange(0, 12, 1).Reshape(3, 4).T().Slice(0, 1, 3),
		"spread":   tensor.Scalar(3).BroadcastTo(2, 2),
		"a/ü":      tensor.Of([]uint8{1}),
	}
}

// shortTypes are the names of element types in safetensors.
var shortTypes = map[tensor.DType]string{tensor.Float32: "F32", tensor.Float64: "F64", tensor.Float16: "F16",
	tensor.BFloat16: "BF16", tensor.Int64: "I64", tensor.Int32: "I32", tensor.Uint8: "U8", tensor.Bool: "BOOL"}

// bits is what t consists of: its type and shape, and its elements as unsigned numbers.
func bits(t *tensor.Tensor) string {
	var list any
	switch t.DType() {
	case tensor.Float32:
		list = each(t.Float32s(), math.Float32bits)
	case tensor.Float64:
		list = each(t.Float64s(), math.Float64bits)
	case tensor.Float16:
		list = each(tensor.SliceOf[tensor.Float16Bits](t), func(b tensor.Float16Bits) uint16 { return uint16(b) })
	case tensor.BFloat16:
		list = each(tensor.SliceOf[tensor.BFloat16Bits](t), func(b tensor.BFloat16Bits) uint16 { return uint16(b) })
	case tensor.Int32:
		list = tensor.SliceOf[int32](t)
	case tensor.Uint8:
		list = tensor.SliceOf[uint8](t)
	case tensor.Bool:
		list = t.Bools()
	default:
		list = t.Int64s()
	}
	return fmt.Sprint(t.DType(), t.Shape(), list)
}

func each[T, U any](list []T, f func(T) U) []U {
	to := make([]U, len(list))
	for i, v := range list {
		to[i] = f(v)
	}
	return to
}

// mustBeSame compares tensors bit by bit.
func mustBeSame(t *testing.T, what string, got, want map[string]*tensor.Tensor) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d tensors, want %d", what, len(got), len(want))
	}
	for name, w := range want {
		if g := got[name]; g == nil {
			t.Errorf("%s: no tensor %q", what, name)
		} else if bits(g) != bits(w) {
			t.Errorf("%s: %q has other bits or another shape: %i, want %i", what, name, g, w)
		}
	}
}

// mustBeClean checks that no unfinished files are in a folder.
func mustBeClean(t *testing.T, dir string) {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "*unfinished*"))
	if err != nil || len(list) > 0 {
		t.Errorf("files are left: %q, %v", list, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// What is written is read with the same bits, whatever the format.
func TestRoundTrip(t *testing.T) {
	dir := t.TempDir()
	all := everyType()
	all["quote\" <\n\\>"] = tensor.Zeros(1)
	one := filepath.Join(dir, "all.safetensors")
	must(t, files.Write(one, all, map[string]string{"a": "b\"ü<", "": ""}))
	got, err := files.Read(one)
	must(t, err)
	mustBeSame(t, "safetensors", got, all)
	f, err := files.Open(one)
	must(t, err)
	if m := f.Metadata(); !reflect.DeepEqual(m, map[string]string{"a": "b\"ü<", "": ""}) {
		t.Errorf("metadata: %q", m)
	}
	info, ok := f.Info("bfloat16")
	if want := (files.Info{Type: "BF16", DType: tensor.BFloat16, Shape: device.Shape{2, 1 << 15}, Bytes: 1 << 17}); !ok || !reflect.DeepEqual(info, want) {
		t.Errorf("Info is %v, %v", info, ok)
	}
	if _, err := f.Tensor("x"); err == nil {
		t.Error("there is a tensor x")
	}
	must(t, f.Close())
	if _, err := f.Tensor("number"); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Tensor after Close: %v", err)
	}
	text, err := os.ReadFile(one)
	must(t, err)
	var again strings.Builder
	must(t, files.WriteTo(&again, got, map[string]string{"a": "b\"ü<", "": ""}))
	if again.String() != string(text) {
		t.Error("what was read is written in another way")
	}

	index := filepath.Join(dir, "all.safetensors.index.json")
	must(t, files.WriteShards(index, all, map[string]string{"a": "b"}, 100_000))
	got, err = files.Read(index)
	must(t, err)
	mustBeSame(t, "shards", got, all)
	if shards, err := filepath.Glob(filepath.Join(dir, "all-*-of-00005.safetensors")); err != nil || len(shards) != 5 {
		t.Errorf("the shards are %q, want 5: two tensors are larger than a shard, and three are not between them", shards)
	}

	delete(all, "bfloat16")
	delete(all, "quote\" <\n\\>")
	npz := filepath.Join(dir, "all.npz")
	must(t, files.WriteNPZ(npz, all))
	got, err = files.ReadNPZ(npz)
	must(t, err)
	mustBeSame(t, "npz", got, all)
	for name, x := range all {
		npy := filepath.Join(dir, "x.npy")
		must(t, files.WriteNPY(npy, x))
		y, err := files.ReadNPY(npy)
		must(t, err)
		mustBeSame(t, "npy", map[string]*tensor.Tensor{name: y}, map[string]*tensor.Tensor{name: x})
	}
	mustBeClean(t, dir)
}

// A failed tensor leaves the old file, and its error is the tensor's. What can't be written does so, too.
func TestFailedWrites(t *testing.T) {
	dir := t.TempDir()
	failed := tensor.From([]int{1}).Div(tensor.From([]int{0}))
	path := filepath.Join(dir, "x")
	must(t, os.WriteFile(path, []byte("old"), 0o666))
	index := filepath.Join(dir, "x.safetensors.index.json")
	for what, write := range map[string]func(x *tensor.Tensor) error{
		"Write": func(x *tensor.Tensor) error { return files.Write(path, map[string]*tensor.Tensor{"x": x}, nil) },
		"WriteShards": func(x *tensor.Tensor) error {
			return files.WriteShards(index, map[string]*tensor.Tensor{"x": x}, nil, 1)
		},
		"WriteNPY": func(x *tensor.Tensor) error { return files.WriteNPY(path, x) },
		"WriteNPZ": func(x *tensor.Tensor) error { return files.WriteNPZ(path, map[string]*tensor.Tensor{"x": x}) },
		"Save":     func(x *tensor.Tensor) error { return files.Save(path, &struct{ X *nn.Buffer }{nn.NewBuffer(x)}) },
	} {
		var op *asyncrt.OpError
		if err := write(failed); !errors.As(err, &op) {
			t.Errorf("%s of a failed tensor: %v", what, err)
		}
	}
	x := tensor.Zeros(1)
	for what, err := range map[string]error{
		"a folder that isn't there": files.WriteNPY(filepath.Join(dir, "none", "x"), x),
		"a folder as a file":        files.WriteNPY(dir, x),
		"bfloat16 as npy":           files.WriteNPY(path, x.As(tensor.BFloat16)),
		"bfloat16 as npz":           files.WriteNPZ(path, map[string]*tensor.Tensor{"x": x, "y": x.As(tensor.BFloat16)}),
		"a name outside":            files.WriteNPZ(path, map[string]*tensor.Tensor{"../x": x}),
		"a name that is no text":    files.Write(path, map[string]*tensor.Tensor{"\xff": x}, nil),
		"words that are no text":    files.Write(path, nil, map[string]string{"a": "\xff"}),
		"the name of metadata":      files.Write(path, map[string]*tensor.Tensor{"__metadata__": x}, nil),
	} {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	none := filepath.Join(dir, "none", "x")
	if err := files.WriteNPY(none, x); !strings.Contains(err.Error(), "open "+filepath.Dir(none)) || strings.Contains(err.Error(), "unfinished") {
		t.Errorf("the error of a folder that isn't there names something else: %v", err)
	}
	if err := files.WriteNPY(dir, x); err.Error() != "files: "+dir+" is a folder" {
		t.Errorf("the error of a folder as a file: %v", err)
	}
	if text, err := os.ReadFile(path); string(text) != "old" {
		t.Errorf("the old file is %q, %v", text, err)
	}
	if list, err := os.ReadDir(dir); len(list) != 1 {
		t.Errorf("files are left: %v, %v", list, err)
	}
	if full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0); err == nil {
		defer full.Close()
		for what, err := range map[string]error{
			"WriteTo":   files.WriteTo(full, map[string]*tensor.Tensor{"x": x}, nil),
			"EncodeNPY": files.EncodeNPY(full, x),
		} {
			if err == nil {
				t.Errorf("%s to a full disk: no error", what)
			}
		}
	}
}

// Mistakes of the program panic.
func TestMistakes(t *testing.T) {
	x := map[string]*tensor.Tensor{"x": nil}
	for want, f := range map[string]func(){
		`files: Write: the tensor "x" is nil`:    func() { files.Write("", x, nil) },
		`files: WriteNPZ: the tensor "x" is nil`: func() { files.WriteNPZ("", x) },
		`files: WriteNPY: the tensor is nil`:     func() { files.WriteNPY("", nil) },
		`files: Save: weight has no value yet`:   func() { files.Save("", nn.Dense(1)) },
		`files: WriteShards: an index is called`: func() { files.WriteShards("x.json", nil, nil, 1) },
		`files: WriteShards: shards of 0 bytes`:  func() { files.WriteShards("x.safetensors.index.json", nil, nil, 0) },
		`a part can't be called "a.b"`:           func() { files.NewCheckpoints("", files.Parts{"a.b": nn.Dense(1)}) },
		`the part "a" is of type int, want a p`:  func() { files.NewCheckpoints("", files.Parts{"a": 1}) },
		`the part "a" is of type []int, want`:    func() { files.NewCheckpoints("", files.Parts{"a": []int{}}) },
		`the part "a" is nil`:                    func() { files.NewCheckpoints("", files.Parts{"a": (*optim.Optimizer)(nil)}) },
		`the part "b" is nil`:                    func() { files.NewCheckpoints("", files.Parts{"b": nil}) },
		`files: NewCheckpoints: -1 checkpoints`:  func() { files.NewCheckpoints("", nil, files.CheckpointOptions{Keep: -1}) },
		`files: Save: a checkpoint with`:         func() { files.NewCheckpoints("", nil).Save(-1) },
	} {
		mistake(t, want, f)
	}
}

// mistake checks that f panics with a Mistake that says so.
func mistake(t *testing.T, want string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if m, ok := recover().(*tensor.Mistake); !ok || !strings.Contains(m.Error(), want) {
			t.Errorf("a panic with %v, want %s", m, want)
		}
	}()
	f()
}

// net is a small model with parameters and buffers.
func net() nn.Module { return nn.Sequential(nn.Dense(3), nn.BatchNorm(), nn.Dense(3)) }

// named returns what a model holds.
func named(m any) map[string]*tensor.Tensor {
	all := map[string]*tensor.Tensor{}
	for name, c := range nn.Named(m) {
		all[name] = c.Value()
	}
	return all
}

// A model is loaded by its names, before its first Forward or after, on whichever device it is.
func TestLoad(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "net.safetensors")
	m := net()
	x := tensor.Randn(4, 2)
	m.Forward(x)
	must(t, files.Save(path, m, files.SaveOptions{Metadata: map[string]string{"format": "pt"}}))
	fresh := net()
	must(t, files.Load(path, fresh))
	mustBeSame(t, "fresh", named(fresh), named(m))
	used := net()
	used.Forward(x)
	before := named(used)["0.weight"]
	must(t, files.Load(path, used))
	mustBeSame(t, "used", named(used), named(m))
	if bits(before) == bits(named(m)["0.weight"]) {
		t.Error("both models began with the same weights")
	}

	index := filepath.Join(dir, "net.safetensors.index.json")
	must(t, files.Save(index, m, files.SaveOptions{Shard: 20}))
	sharded := net()
	must(t, files.Load(index, sharded))
	mustBeSame(t, "sharded", named(sharded), named(m))

	dev := device.Wrap("there", device.KindSimulated, sim.New(sim.Options{}))
	there := net()
	there.Forward(tensor.On(dev).Randn(4, 2))
	must(t, files.Load(path, there))
	for name, v := range named(there) {
		if v.Device() != dev {
			t.Errorf("%s is on %v now", name, v.Device())
		}
	}
	mustBeSame(t, "there", named(there), named(m))
	must(t, files.Save(path, there))
	must(t, files.Load(path, fresh))
	mustBeSame(t, "back", named(fresh), named(m))
}

// All differences are in one error, and the model is left as it was.
func TestMismatch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "net.safetensors")
	m := net()
	m.Forward(tensor.Randn(4, 2))
	all := named(m)
	all["0.bias"], all["1.weight"] = tensor.Zeros(2), all["1.weight"].As(tensor.Float64)
	all["more\n"] = tensor.Zeros(1)
	delete(all, "2.bias")
	must(t, files.Write(path, all, nil))
	was := nn.Snapshot(m)
	err := files.Load(path, m)
	var mismatch *files.MismatchError
	if !errors.As(err, &mismatch) {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`files: %q does not fit
	missing in the file: "2.bias"
	only in the file: "more\n"
	"0.bias" has the shape [2] in the file, want [3]
	"1.weight" is of float64 in the file, want float32`, path)
	unreadable := &struct{ Uint64 *nn.Buffer }{nn.NewBuffer(tensor.Zeros(1))}
	const isU64 = `"uint64" is of U64 in the file, want float32`
	for _, convert := range []bool{false, true} {
		how := files.LoadOptions{Partial: true, Convert: convert}
		if err := files.Load("testdata/types.safetensors", unreadable, how); err == nil || !strings.Contains(err.Error(), isU64) {
			t.Errorf("the error is %v, want %s", err, isU64)
		}
	}
	if err.Error() != want {
		t.Errorf("the error is\n%v\nwant\n%s", err, want)
	}
	if !slices.EqualFunc(was.Tensors(), nn.Snapshot(m).Tensors(), func(a, b *tensor.Tensor) bool {
		return a == nil && b == nil || bits(a) == bits(b)
	}) {
		t.Error("the model has changed")
	}

	all["0.bias"] = tensor.Ones(3)
	must(t, files.Write(path, all, nil))
	must(t, files.Load(path, m, files.LoadOptions{Partial: true, Convert: true}))
	if got := named(m); bits(got["0.bias"]) != bits(tensor.Ones(3)) || got["1.weight"].DType() != tensor.Float32 {
		t.Error("a partial load did not load")
	}
	if err := files.Load(path, m, files.LoadOptions{Partial: true}); !errors.As(err, &mismatch) {
		t.Errorf("a partial load that would convert: %v", err)
	}
}

// Map renames, transposes and drops what comes from elsewhere.
func TestLoadMap(t *testing.T) {
	path := filepath.Join(t.TempDir(), "linear.safetensors")
	w := tensor.Arange(0, 6, 1).Reshape(2, 3) // (out, in), as PyTorch has it
	must(t, files.Write(path, map[string]*tensor.Tensor{"net.fc.weight": w, "net.fc.bias": tensor.Ones(2), "net.steps": tensor.Zeros(), "other": w}, nil))
	m := nn.Dense(2)
	must(t, files.Load(path, m, files.LoadOptions{Prefix: "net.", Map: func(name string, t *tensor.Tensor) (string, *tensor.Tensor) {
		switch name {
		case "steps":
			return "", nil
		case "fc.weight":
			t = t.T()
		}
		return strings.TrimPrefix(name, "fc."), t
	}}))
	mustBeSame(t, "mapped", named(m), map[string]*tensor.Tensor{"weight": w.T(), "bias": tensor.Ones(2)})
	err := files.Load(path, m, files.LoadOptions{Prefix: "net.", Map: func(name string, t *tensor.Tensor) (string, *tensor.Tensor) { return "x", t }})
	if err == nil || !strings.Contains(err.Error(), "two tensors the name") {
		t.Error(err)
	}
}

// A tensor that can't be read is no obstacle to a Load that doesn't want it.
func TestLoadBesideUnreadable(t *testing.T) {
	m := &struct{ A *nn.Buffer }{nn.NewBuffer(nil)}
	rename := func(name string, t *tensor.Tensor) (string, *tensor.Tensor) {
		if name == "float64" {
			name = "a"
		}
		return name, t
	}
	err := files.Load("testdata/types.safetensors", m, files.LoadOptions{Map: rename})
	if err == nil || !strings.Contains(err.Error(), "which tensors cannot have") {
		t.Errorf("all are wanted: %v", err)
	}
	must(t, files.Load("testdata/types.safetensors", m, files.LoadOptions{Map: rename, Partial: true}))
	if dt := m.A.Value().DType(); dt != tensor.Float64 {
		t.Errorf("a is of %v", dt)
	}
	wants := &struct{ Uint64 *nn.Buffer }{nn.NewBuffer(nil)}
	err = files.Load("testdata/types.safetensors", wants, files.LoadOptions{Map: rename, Partial: true})
	if err == nil || !strings.Contains(err.Error(), `"uint64" is of U64, which tensors cannot have`) {
		t.Errorf("it is wanted: %v", err)
	}
}

// All replicas of a model get what the first one gets.
func TestLoadReplicas(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "net.safetensors")
	build := func() *nn.Replicas {
		return nn.DataParallel(net(), nn.Parallel{Shards: 2, Devices: []device.Device{
			device.CPU(), device.Wrap("b", device.KindSimulated, sim.New(sim.Options{}))}})
	}
	m := build()
	m.Forward(tensor.Randn(4, 2))
	must(t, files.Save(path, m))
	again := build()
	must(t, files.Load(path, again))
	for i := range 2 {
		mustBeSame(t, fmt.Sprint("replica ", i), named(again.Replica(i)), named(m))
	}
}
