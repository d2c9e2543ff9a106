package files_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/files"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// madeByPython is what testdata/interop.py puts into its fixtures.
func madeByPython(withBrain bool) map[string]*tensor.Tensor {
	x := tensor.Arange(-1, 5, 1).Reshape(2, 3)
	whole := x.As(tensor.Int64)
	all := map[string]*tensor.Tensor{
		"float32": x, "float64": x.As(tensor.Float64), "float16": x.As(tensor.Float16),
		"int64": whole, "int32": x.As(tensor.Int32), "bool": x.As(tensor.Bool),
		"uint8": tensor.Of([]uint8{255, 0, 1, 2, 3, 4}, 2, 3),
		"int8":  whole, "int16": whole,
		"uint16": tensor.From([]int{1<<16 - 1, 0, 1, 2, 3, 4}, 2, 3),
		"uint32": tensor.From([]int{1<<32 - 1, 0, 1, 2, 3, 4}, 2, 3),
		"scalar": tensor.Scalar(2.5), "empty": tensor.Zeros(0, 3),
	}
	if withBrain {
		all["bfloat16"] = x.As(tensor.BFloat16)
	}
	return all
}

// Files that the original libraries have written are read as they mean it.
func TestFixtures(t *testing.T) {
	f, err := files.Open("testdata/types.safetensors")
	must(t, err)
	defer f.Close()
	got := map[string]*tensor.Tensor{}
	for _, name := range f.Names() {
		if name != "uint64" {
			got[name], err = f.Tensor(name)
			must(t, err)
		}
	}
	mustBeSame(t, "types.safetensors", got, madeByPython(true))
	if m := f.Metadata(); !maps.Equal(m, map[string]string{"made": "by safetensors"}) {
		t.Errorf("metadata: %q", m)
	}
	want := `files: "testdata/types.safetensors": tensor "uint64" is of U64, which tensors cannot have`
	if _, err := f.Tensor("uint64"); err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}

	arrays, err := files.ReadNPZ("testdata/types.npz")
	must(t, err)
	mustBeSame(t, "types.npz", arrays, madeByPython(false))
	packed, err := files.ReadNPZ("testdata/packed.npz")
	must(t, err)
	mustBeSame(t, "packed.npz", packed, map[string]*tensor.Tensor{"zeros": tensor.On(device.CPU()).As(tensor.Float64).Zeros(50, 50)})

	x := madeByPython(false)["float32"]
	for name, dt := range map[string]tensor.DType{"fortran": tensor.Float32, "big": tensor.Int32, "version2": tensor.Float64, "version3": tensor.Float64} {
		path := "testdata/" + name + ".npy"
		y, err := files.ReadNPY(path)
		must(t, err)
		in, err := os.Open(path)
		must(t, err)
		z, err := files.DecodeNPY(in)
		must(t, err)
		must(t, in.Close())
		mustBeSame(t, name, map[string]*tensor.Tensor{"read": y, "decoded": z}, map[string]*tensor.Tensor{"read": x.As(dt), "decoded": x.As(dt)})
	}
	for name, want := range map[string]string{
		"objects": "an array of objects, which are pickled: they could run anything, and are not read",
		"fields":  "arrays with fields are not read",
		"complex": `elements of type "<c8", which tensors cannot have`,
	} {
		path := "testdata/" + name + ".npy"
		if _, err := files.ReadNPY(path); err == nil || err.Error() != fmt.Sprintf("files: %q: %s", path, want) {
			t.Errorf("%s: the error is %v, want %s", name, err, want)
		}
	}
}

// python returns an interpreter with the libraries, or skips the test.
func python(t *testing.T) string {
	t.Helper()
	name := os.Getenv("ASYNCGEN_PYTHON")
	if name == "" {
		name = "python3"
	}
	if out, err := exec.Command(name, "-c", "import numpy, safetensors").CombinedOutput(); err != nil {
		t.Skipf("ASYNCGEN_PYTHON names no Python that has numpy and safetensors: %v\n%s", err, out)
	}
	return name
}

// The original libraries have the same bits in files of ours, and so have we in files of theirs.
func TestPython(t *testing.T) {
	with := python(t)
	script := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(with, append([]string{"testdata/interop.py"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	dir := t.TempDir()
	all := everyType()
	path, copied := filepath.Join(dir, "a.safetensors"), filepath.Join(dir, "b.safetensors")
	must(t, files.Write(path, all, map[string]string{"format": "pt"}))
	if got, want := script("sums", path), sums(t, all); got != want {
		t.Errorf("safetensors has\n%swant\n%s", got, want)
	}
	script("copy", path, copied)
	got, err := files.Read(copied)
	must(t, err)
	mustBeSame(t, "copied safetensors", got, all)

	r := start(dir, "AdamW", 0)
	r.train(3)
	must(t, r.run.Save(3))
	path, _, err = files.Latest(dir)
	must(t, err)
	got, err = files.Read(path)
	must(t, err)
	if got, want := script("sums", path), sums(t, got); got != want {
		t.Errorf("safetensors has in a checkpoint\n%swant\n%s", got, want)
	}

	delete(all, "bfloat16")
	path, copied = filepath.Join(dir, "a.npz"), filepath.Join(dir, "b.npz")
	must(t, files.WriteNPZ(path, all))
	if got, want := script("sums", path), sums(t, all); got != want {
		t.Errorf("npz: NumPy has\n%swant\n%s", got, want)
	}
	script("copy", path, copied)
	got, err = files.ReadNPZ(copied)
	must(t, err)
	mustBeSame(t, "copied npz", got, all)

	path, copied = filepath.Join(dir, "a.npy"), filepath.Join(dir, "b.npy")
	must(t, files.WriteNPY(path, all["float16"]))
	script("copy", path, copied)
	x, err := files.ReadNPY(copied)
	must(t, err)
	mustBeSame(t, "copied npy", map[string]*tensor.Tensor{"": x}, map[string]*tensor.Tensor{"": all["float16"]})
}

// sums is what the script says of tensors.
func sums(t *testing.T, all map[string]*tensor.Tensor) string {
	var b strings.Builder
	names := slices.SortedFunc(maps.Keys(all), func(a, b string) int { return slices.Compare([]rune(a), []rune(b)) })
	for _, name := range names {
		x := all[name]
		quoted, err := json.Marshal(name)
		must(t, err)
		for _, r := range string(quoted) { // Python's has no other letters than those of ASCII
			if r < 128 {
				b.WriteRune(r)
			} else {
				fmt.Fprintf(&b, `\u%04x`, r)
			}
		}
		shape := strings.ReplaceAll(x.Shape().String(), " ", ", ")
		fmt.Fprintf(&b, " %s %s %x\n", shortTypes[x.DType()], shape, sha256.Sum256(raw(x)))
	}
	return b.String()
}

// raw returns the bytes of x on a little-endian machine.
func raw(x *tensor.Tensor) []byte {
	switch x.DType() {
	case tensor.Float32:
		return bytesOf(x.Float32s())
	case tensor.Float64:
		return bytesOf(x.Float64s())
	case tensor.Float16:
		return bytesOf(tensor.SliceOf[tensor.Float16Bits](x))
	case tensor.BFloat16:
		return bytesOf(tensor.SliceOf[tensor.BFloat16Bits](x))
	case tensor.Int32:
		return bytesOf(tensor.SliceOf[int32](x))
	case tensor.Uint8:
		return tensor.SliceOf[uint8](x)
	case tensor.Bool:
		return bytesOf(x.Bools())
	}
	return bytesOf(x.Int64s())
}

func bytesOf[T any](list []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(list))), len(list)*int(unsafe.Sizeof(*new(T))))
}
