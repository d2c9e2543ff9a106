package data_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/data"
)

// idx returns a file in the format IDX.
func idx(t testing.TB, kind byte, shape []int, elements any) []byte {
	t.Helper()
	b := []byte{0, 0, kind, byte(len(shape))}
	for _, n := range shape {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	b, err := binary.Append(b, binary.BigEndian, elements)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func zipped(t testing.TB, b []byte) []byte {
	t.Helper()
	var to bytes.Buffer
	z := gzip.NewWriter(&to)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return to.Bytes()
}

// readAs checks what is read of a file as Ts. Nil as wanted elements says that it can't be.
func readAs[T device.Element](t *testing.T, file []byte, shape []int, want []T) {
	t.Helper()
	for _, b := range [][]byte{file, zipped(t, file)} {
		a, err := data.ReadIDX[T](iotest.OneByteReader(bytes.NewReader(b)))
		if want == nil {
			if err == nil || !strings.Contains(err.Error(), "can't be read as") {
				t.Errorf("as %T: %v", want, err)
			}
			continue
		}
		if err != nil || !slices.Equal(a.Shape, shape) || !slices.Equal(a.Data, want) {
			t.Errorf("as %T: %v, %v, want %v", want, a, err, want)
		}
	}
}

// Elements of each type are read as every type that has all of their numbers, and as no other.
func TestIDX(t *testing.T) {
	shape := []int{2, 2}
	u8 := idx(t, 0x08, shape, []uint8{0, 1, 128, 255})
	readAs(t, u8, shape, []uint8{0, 1, 128, 255})
	readAs(t, u8, shape, []int32{0, 1, 128, 255})
	readAs(t, u8, shape, []int64{0, 1, 128, 255})
	readAs(t, u8, shape, []float32{0, 1, 128, 255})
	readAs(t, u8, shape, []float64{0, 1, 128, 255})
	readAs[bool](t, u8, shape, nil)
	readAs[device.Float16Bits](t, u8, shape, nil)
	for kind, numbers := range map[byte]any{0x09: []int8{-128, -1, 0, 127}, 0x0b: []int16{-128, -1, 0, 127}} {
		i := idx(t, kind, shape, numbers)
		readAs[uint8](t, i, shape, nil)
		readAs(t, i, shape, []int32{-128, -1, 0, 127})
		readAs(t, i, shape, []int64{-128, -1, 0, 127})
		readAs(t, i, shape, []float32{-128, -1, 0, 127})
		readAs(t, i, shape, []float64{-128, -1, 0, 127})
	}
	i32 := idx(t, 0x0c, shape, []int32{math.MinInt32, -1, 0, math.MaxInt32})
	readAs[uint8](t, i32, shape, nil)
	readAs[float32](t, i32, shape, nil)
	readAs(t, i32, shape, []int32{math.MinInt32, -1, 0, math.MaxInt32})
	readAs(t, i32, shape, []int64{math.MinInt32, -1, 0, math.MaxInt32})
	readAs(t, i32, shape, []float64{math.MinInt32, -1, 0, math.MaxInt32})
	f32 := idx(t, 0x0d, shape, []float32{-0.5, 3, 1e-45, float32(math.Inf(1))})
	readAs[int64](t, f32, shape, nil)
	readAs(t, f32, shape, []float32{-0.5, 3, 1e-45, float32(math.Inf(1))})
	readAs(t, f32, shape, []float64{-0.5, 3, float64(float32(1e-45)), math.Inf(1)})
	f64 := idx(t, 0x0e, shape, []float64{-0.5, 3, 1e-300, math.Inf(-1)})
	readAs[float32](t, f64, shape, nil)
	readAs(t, f64, shape, []float64{-0.5, 3, 1e-300, math.Inf(-1)})
	readAs(t, idx(t, 0x08, []int{0, 1 << 30}, []byte{}), []int{0, 1 << 30}, []uint8{})

	// More than memory is taken for at once.
	many := make([]int16, 200_000)
	want := make([]int64, len(many))
	for i := range many {
		many[i] = int16(i)
		want[i] = int64(many[i])
	}
	name := filepath.Join(t.TempDir(), "many.gz")
	if err := os.WriteFile(name, zipped(t, idx(t, 0x0b, []int{1000, 200}, many)), 0o666); err != nil {
		t.Fatal(err)
	}
	if a, err := data.ReadIDXFile[int64](name); err != nil || a.Len() != 1000 || !slices.Equal(a.Data, want) {
		t.Errorf("many elements: %v", err)
	}
}

// What is not such a file is refused with one line that names it, and little memory.
func TestWrongIDX(t *testing.T) {
	good := idx(t, 0x08, []int{2, 3}, make([]byte, 6))
	big := idx(t, 0x08, []int{1 << 15, 1 << 15}, []byte{1, 2})
	for _, c := range []struct {
		file []byte
		text string
	}{
		{nil, "it is cut off"},
		{good[:3], "it is cut off"},
		{good[:11], "it is cut off"},
		{good[:17], "it is cut off: 5 of 6 elements are there"},
		{append(slices.Clone(good), 0), "there is more"},
		{zipped(t, append(slices.Clone(good), 0)), "there is more"},
		{zipped(t, good)[:20], "cut off"},
		{[]byte("PNG\x01aaaa"), "not in the format IDX"},
		{[]byte{0, 0, 8, 0}, "not in the format IDX"},
		{idx(t, 0x0a, []int{1}, []byte{1}), "elements of type 0x0a, which"},
		{idx(t, 0x0e, []int{1}, []float64{1}), "type 0x0e (float64), which can't be read as float32"},
		{idx(t, 0x08, []int{1 << 31}, []byte{1}), "too large"},
		{idx(t, 0x08, []int{1 << 30, 1 << 30, 1 << 30}, []byte{1}), "too large"},
		{idx(t, 0x08, slices.Repeat([]int{1 << 30}, 200), []byte{1}), "too large"},
		{big, "cut off"},
		{zipped(t, big), "cut off"},
	} {
		var err error
		took := allocated(func() { _, err = data.ReadIDX[float32](bytes.NewReader(c.file)) })
		if err == nil || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "\n") {
			t.Errorf("% .20x: %v, want %s", c.file, err, c.text)
		}
		if took > 2<<20 {
			t.Errorf("% .20x: took %d bytes", c.file, took)
		}
		name := filepath.Join(t.TempDir(), "wrong.idx")
		if err := os.WriteFile(name, c.file, 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := data.ReadIDXFile[float32](name); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("% .20x in a file: %v", c.file, err)
		}
	}
	cause := errors.New("the disk")
	for n := range len(good) + 1 {
		if _, err := data.ReadIDX[uint8](io.MultiReader(bytes.NewReader(good[:n]), iotest.ErrReader(cause))); !errors.Is(err, cause) {
			t.Errorf("an error after %d bytes is %v", n, err)
		}
	}
	if _, err := data.ReadIDXFile[uint8]("nowhere.idx"); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "nowhere.idx") {
		t.Errorf("no file: %v", err)
	}
}

// allocated returns how many bytes are allocated while f runs.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// FuzzIDX: whatever a file has, it is read or refused, and what is read has the shape that the file says.
func FuzzIDX(f *testing.F) {
	f.Add(idx(f, 0x08, []int{2, 3}, make([]byte, 6)))
	f.Add(idx(f, 0x0d, []int{3}, []float32{1, 2, 3}))
	f.Add(idx(f, 0x08, []int{1 << 30, 1 << 30}, []byte{1}))
	f.Add(zipped(f, idx(f, 0x0b, []int{1}, []int16{7})))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := data.ReadIDX[float64](bytes.NewReader(b))
		n := 1
		for _, d := range a.Shape {
			n *= d
		}
		if err == nil && (len(a.Shape) == 0 || n != len(a.Data)) || err != nil && a.Data != nil {
			t.Errorf("shape %v, %d elements, %v", a.Shape, len(a.Data), err)
		}
	})
}

func TestCSV(t *testing.T) {
	const text = "a, b,kind,c\n1,2.5,dog,-3\n\"4\", 5e-1 ,cat,0x1p-2\nNaN,+Inf,dog,1e-50\n"
	table, err := data.ReadCSV(strings.NewReader(text), data.CSVOptions{Class: "kind"})
	if err != nil {
		t.Fatal(err)
	}
	if !math.IsNaN(float64(table.X.Data[6])) {
		t.Errorf("NaN is %v", table.X.Data[6])
	}
	table.X.Data[6] = 7
	want := &data.Table{
		X:       data.Array[float32]{Data: []float32{1, 2.5, -3, 4, 0.5, 0.25, 7, float32(math.Inf(1)), 0}, Shape: []int{3, 3}},
		Names:   []string{"a", "b", "c"},
		Y:       data.Array[float32]{Shape: []int{3, 0}},
		Class:   data.Array[int64]{Data: []int64{1, 0, 1}, Shape: []int{3}},
		Classes: []string{"cat", "dog"},
	}
	if !reflect.DeepEqual(table, want) {
		t.Errorf("%+v, want %+v", table, want)
	}

	table, err = data.ReadCSV(strings.NewReader("1;2;3\n4;5;6\n"), data.CSVOptions{Comma: ';', NoHeader: true, Columns: []string{"2", "0"}, Targets: []string{"1"}})
	want = &data.Table{
		X:     data.Array[float32]{Data: []float32{3, 1, 6, 4}, Shape: []int{2, 2}},
		Names: []string{"2", "0"},
		Y:     data.Array[float32]{Data: []float32{2, 5}, Shape: []int{2, 1}},
	}
	if err != nil || !reflect.DeepEqual(table, want) {
		t.Errorf("%+v, %v, want %+v", table, err, want)
	}

	table, err = data.ReadCSV(strings.NewReader("\ufeff\"k\"\n10\n9\n-1\n10\n"), data.CSVOptions{Class: "k"})
	if err != nil || !slices.Equal(table.Classes, []string{"-1", "9", "10"}) || !slices.Equal(table.Class.Data, []int64{2, 1, 0, 2}) {
		t.Errorf("labels that are integers: %+v, %v", table, err)
	}
}

func TestWrongCSV(t *testing.T) {
	for _, c := range []struct {
		text, want string
		o          data.CSVOptions
	}{
		{"", "it is empty", data.CSVOptions{}},
		{"a,b\n1,2\n3,x\n", `line 3, column "b": "x" is no number that float32 has: CSVOptions.Class names`, data.CSVOptions{}},
		{"a,b\n\n\n1,\n", `line 4, column "b": "" is no number`, data.CSVOptions{}},
		{"a,b\n\"1\n\",2\n3,\"4\n5\"\n", `line 4, column "b"`, data.CSVOptions{}},
		{"1e60\n", `line 1, column "0"`, data.CSVOptions{NoHeader: true}},
		{"a,b\r1,2\r", "column 1 has a carriage return", data.CSVOptions{}},
		{"a,b\n1,2\n3\n", "line 3: wrong number of fields", data.CSVOptions{}},
		{"a,b\n1,\"2\n", `parse error`, data.CSVOptions{}},
		{"a,b\n", `no column "c" among the 2: ["a" "b"]`, data.CSVOptions{Class: "c"}},
		{"a,b\n", `no column "c"`, data.CSVOptions{Targets: []string{"c"}}},
		{"a,b\n", `no column "c"`, data.CSVOptions{Columns: []string{"c"}}},
		{"a,a\n", `two columns "a"`, data.CSVOptions{Columns: []string{"a"}}},
		{"a\n", "invalid field or comment delimiter", data.CSVOptions{Comma: '\n'}},
	} {
		if _, err := data.ReadCSV(strings.NewReader(c.text), c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
	name := filepath.Join(t.TempDir(), "a.csv")
	if err := os.WriteFile(name, []byte("a\nx\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := data.ReadCSVFile(name); err == nil || !strings.Contains(err.Error(), name+`: line 2, column "a"`) {
		t.Errorf("a file: %v", err)
	}
	if _, err := data.ReadCSVFile("nowhere.csv"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// Errors show only a part of what a file has.
func TestLongCSV(t *testing.T) {
	long := strings.Repeat("x", 1<<16)
	for text, class := range map[string]string{
		"a\n" + long + "\n":                    "",
		long + "\nx\n":                         "",
		long + "," + long + "\nx\n":            "a",
		strings.Repeat("b,", 1<<16) + "b\n1\n": "a",
	} {
		if _, err := data.ReadCSV(strings.NewReader(text), data.CSVOptions{Class: class}); err == nil || len(err.Error()) > 1000 {
			t.Errorf("%.20q...: %.2000v", text, err)
		}
	}
}

// A small file that becomes huge when it is uncompressed is refused, and one that is as large is not.
func TestPackedIDX(t *testing.T) {
	const n = 1 << 20
	for _, c := range []struct {
		file  []byte
		taken bool
	}{
		{zipped(t, idx(t, 0x08, []int{n}, make([]byte, n))), false},
		{idx(t, 0x08, []int{n}, make([]byte, n)), true},
		{zipped(t, idx(t, 0x08, []int{n}, noise(n))), true},
		{zipped(t, idx(t, 0x08, []int{n / 16}, make([]byte, n/16))), true},
	} {
		var err error
		took := allocated(func() { _, err = data.ReadIDXLimited[float64](bytes.NewReader(c.file), n) })
		if (err == nil) != c.taken || !c.taken && (took > 4*n || !strings.Contains(err.Error(), "uncompress")) {
			t.Errorf("%d bytes, taken %v: %v with %d bytes", len(c.file), c.taken, err, took)
		}
	}
}

// noise is bytes that can't be compressed.
func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b)
	return b
}

// FuzzCSV: whatever a file has, it is read or refused, and what is read can be given to a loader.
func FuzzCSV(f *testing.F) {
	f.Add("a,b,k\n1,2,x\n", "k")
	f.Add("a\n\"1\n\"\n", "")
	f.Add("k,k\n1,2\n", "k")
	f.Fuzz(func(t *testing.T, text, class string) {
		table, err := data.ReadCSV(strings.NewReader(text), data.CSVOptions{Class: class})
		if err != nil {
			return
		}
		data.NewLoader(data.Pair(table.X, table.Y), 2)
		if class == "" {
			return
		}
		set := data.Pair(table.X, table.Class)
		for i := range set.Len() {
			if c := table.Class.Row(i)[0]; c < 0 || int(c) >= len(table.Classes) {
				t.Errorf("class %d of %d", c, len(table.Classes))
			}
		}
	})
}
