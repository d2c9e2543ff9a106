package files_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/asyncgen/asyncgen/runtime/files"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// What is read from any bytes can be written, and read again with the same bits. Nothing panics. The engine's
// goroutines make coverage vary: -fuzzminimizetime 1x keeps the go command from looking for smaller inputs in vain.

// put writes contents to a new file.
func put(t *testing.T, name string, contents []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(path, contents, 0o666))
	return path
}

// seed adds files of the testdata folder to the corpus.
func seed(f *testing.F, names ...string) {
	f.Helper()
	for _, name := range names {
		b, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
}

func FuzzSafetensors(f *testing.F) {
	seed(f, "types.safetensors")
	for _, b := range hostileSafetensors() {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		open, err := files.Open(put(t, "x.safetensors", b))
		if err != nil {
			return
		}
		defer open.Close()
		all := map[string]*tensor.Tensor{}
		for _, name := range open.Names() {
			info, _ := open.Info(name)
			x, err := open.Tensor(name)
			if (err == nil) != (info.DType != 0) {
				t.Fatalf("tensor %q of %v: %v", name, info, err)
			}
			if err == nil {
				all[name] = x
			}
		}
		again := filepath.Join(t.TempDir(), "y.safetensors")
		must(t, files.Write(again, all, open.Metadata()))
		got, err := files.Read(again)
		must(t, err)
		mustBeSame(t, "again", got, all)
	})
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte(`{"metadata":{"total_size":4},"weight_map":{"float32":"types.safetensors"}}`))
	f.Add([]byte(`{"weight_map":{"float32":"../types.safetensors"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		path := put(t, "x.json", b)
		types, err := os.ReadFile("testdata/types.safetensors")
		must(t, err)
		must(t, os.WriteFile(filepath.Join(filepath.Dir(path), "types.safetensors"), types, 0o666))
		if open, err := files.Open(path); err == nil {
			for _, name := range open.Names() {
				if _, ok := open.Info(name); !ok {
					t.Errorf("no tensor %q", name)
				}
			}
			must(t, open.Close())
		}
	})
}

func FuzzNPY(f *testing.F) {
	seed(f, "fortran.npy", "big.npy", "version2.npy", "version3.npy", "objects.npy", "fields.npy", "complex.npy")
	for _, b := range hostileNPY() {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := files.ReadNPY(put(t, "x.npy", b))
		y, decoded := files.DecodeNPY(bytes.NewReader(b))
		if err != nil {
			return // bytes may follow what DecodeNPY reads
		}
		must(t, decoded)
		var again bytes.Buffer
		must(t, files.EncodeNPY(&again, x))
		z, err := files.DecodeNPY(&again)
		must(t, err)
		mustBeSame(t, "again", map[string]*tensor.Tensor{"y": y, "z": z}, map[string]*tensor.Tensor{"y": x, "z": x})
	})
}

func FuzzNPZ(f *testing.F) {
	seed(f, "types.npz", "packed.npz")
	for _, b := range hostileNPZ(f) {
		if len(b) < 1<<16 {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		all, err := files.ReadNPZ(put(t, "x.npz", b), files.NPZOptions{Limit: 1 << 24})
		if err != nil {
			return
		}
		again := filepath.Join(t.TempDir(), "y.npz")
		must(t, files.WriteNPZ(again, all))
		got, err := files.ReadNPZ(again)
		must(t, err)
		mustBeSame(t, "again", got, all)
	})
}

func FuzzCheckpoint(f *testing.F) {
	dir := f.TempDir()
	n, word := 1, "a"
	parts := files.Parts{"n": &n, "word": &word, "generator": tensor.NewGenerator(1)}
	if err := files.NewCheckpoints(dir, parts).Save(3); err != nil {
		f.Fatal(err)
	}
	good, err := os.ReadFile(filepath.Join(dir, "step-0000000003.safetensors"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	seed(f, "types.safetensors")
	f.Fuzz(func(t *testing.T, b []byte) {
		defer tensor.Seed(0)
		step, err := files.NewCheckpoints("", parts).Load(put(t, "x.safetensors", b))
		if err == nil && bytes.Equal(b, good) != (step == 3 && n == 1 && word == "a") {
			t.Errorf("step %d, n %d, word %q", step, n, word)
		}
	})
}
