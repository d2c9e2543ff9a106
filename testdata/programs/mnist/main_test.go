package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/runtime/data"
	"github.com/asyncgen/asyncgen/runtime/files"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/scalars"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A run that was stopped after two epochs and goes on with captured steps, and one that wasn't, end with the same bytes
// in weights and checkpoints, and with the same numbers.
func TestResume(t *testing.T) {
	whole, parts := t.TempDir(), t.TempDir()
	for _, of := range []struct {
		dir     string
		epochs  int
		capture bool
	}{{whole, 4, false}, {parts, 2, false}, {parts, 4, true}} {
		if err := run("", of.dir, 200, of.epochs, of.capture); err != nil {
			t.Fatal(err)
		}
	}
	steps, err := filepath.Glob(filepath.Join(whole, "step-*"))
	if err != nil || len(steps) != 2 {
		t.Fatalf("checkpoints %v, %v", steps, err)
	}
	for _, name := range []string{"best.safetensors", filepath.Base(steps[1])} {
		if !bytes.Equal(read(t, filepath.Join(whole, name)), read(t, filepath.Join(parts, name))) {
			t.Errorf("%s differs", name)
		}
	}
	want, got := curve(t, whole), curve(t, parts)
	for i, s := range want {
		if !slices.Equal(got[i].Steps, s.Steps) || !slices.Equal(got[i].Values, s.Values) {
			t.Errorf("%s: got %v, want %v", s.Name, got[i].Values, s.Values)
		}
	}
	if picture := string(read(t, filepath.Join(parts, "loss.svg"))); !strings.Contains(picture, "validation") {
		t.Error("no curve of the validation")
	}
}

// So few digits are soon known by heart: the training stops three epochs after the lowest loss, and its weights are kept.
func TestStops(t *testing.T) {
	const digits = 80
	dir := t.TempDir()
	if err := run("", dir, digits, 1000, false); err != nil {
		t.Fatal(err)
	}
	losses := curve(t, dir)[1].Values
	lowest := slices.Min(losses)
	if at := slices.Index(losses, lowest); len(losses) != at+4 {
		t.Errorf("%d epochs, the lowest loss in number %d", len(losses), at+1)
	}

	net := network()
	if err := files.Load(filepath.Join(dir, "best.safetensors"), net); err != nil {
		t.Fatal(err)
	}
	_, check := data.Split(draw(digits, 1), 0.9, 1)
	if loss, _ := evaluate(nn.Frozen(net), data.NewLoader(check, 64)); loss != lowest {
		t.Errorf("the best weights have loss %v in validation, want %v", loss, lowest)
	}
}

// What evaluate adds up batch by batch is what all samples give at once.
func TestEvaluate(t *testing.T) {
	tensor.Seed(1)
	net, digits := network(), draw(150, 1)
	all := data.Batch{X: tensor.Of(pixelsOf(digits), 150, side, side)}
	labels := make([]int64, 150)
	for i := range labels {
		digits.At(i, make([]uint8, side*side), labels[i:i+1])
	}
	net.Forward(pixels(all.X)) // gives the weights their shapes
	scores := nn.Frozen(net).Forward(pixels(all.X))
	want := nn.CrossEntropy(scores, tensor.Of(labels, 150)).Item()
	wantRight := 0.0
	for i, class := range scores.ArgMax(1).Int64s() {
		if class == labels[i] {
			wantRight += 1.0 / 150
		}
	}
	loss, right := evaluate(nn.Frozen(net), data.NewLoader(digits, 64))
	if math.Abs(loss-want) > 1e-5 || math.Abs(right-wantRight) > 1e-9 {
		t.Errorf("loss %v, right %v, want %v, %v", loss, right, want, wantRight)
	}
}

// Digits in the files of MNIST are those that were written there.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	want := map[string]*data.Pairs[uint8, int64]{"train": draw(9, 3), "t10k": draw(7, 4)}
	for part, set := range want {
		write(t, filepath.Join(dir, part+"-images-idx3-ubyte.gz"), pixelsOf(set), uint32(set.Len()), side, side)
		write(t, filepath.Join(dir, part+"-labels-idx1-ubyte.gz"), classesOf(set), uint32(set.Len()))
	}
	got, err := load(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	for part, set := range map[string]*data.Pairs[uint8, int64]{"train": got.train, "t10k": got.test} {
		if !bytes.Equal(pixelsOf(set), pixelsOf(want[part])) || !bytes.Equal(classesOf(set), classesOf(want[part])) {
			t.Errorf("%s: the digits differ", part)
		}
	}
	if _, err := load(t.TempDir(), 0); err == nil {
		t.Error("files that do not exist were read")
	}
}

// write writes bytes in the format IDX.
func write(t *testing.T, name string, data []byte, shape ...uint32) {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	binary.Write(z, binary.BigEndian, 0x800+uint32(len(shape)))
	binary.Write(z, binary.BigEndian, shape)
	z.Write(data)
	z.Close()
	if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// pixelsOf returns the images of a set, one after the other.
func pixelsOf(set *data.Pairs[uint8, int64]) []uint8 {
	all := make([]uint8, set.Len()*side*side)
	for i := range set.Len() {
		set.At(i, all[i*side*side:(i+1)*side*side], make([]int64, 1))
	}
	return all
}

func classesOf(set *data.Pairs[uint8, int64]) []uint8 {
	all, class := make([]uint8, set.Len()), make([]int64, 1)
	for i := range all {
		set.At(i, make([]uint8, side*side), class)
		all[i] = uint8(class[0])
	}
	return all
}

func curve(t *testing.T, dir string) []scalars.Series {
	t.Helper()
	series, err := scalars.Read(filepath.Join(dir, "scalars.csv"))
	if err != nil || len(series) != 2 {
		t.Fatalf("%d series, %v", len(series), err)
	}
	return series
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
