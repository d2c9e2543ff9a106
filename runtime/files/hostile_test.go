package files_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/runtime/files"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// file returns a safetensors file with the given header and a number of bytes behind it.
func file(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

// npy returns an npy file of version 1 with the given header and a number of bytes behind it.
func npy(header string, data int) []byte {
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8))
	return append(append(b, header...), make([]byte, data)...)
}

// A zipped is one entry of a zip file.
type zipped struct {
	name string
	data []byte
}

func zipOf(t testing.TB, list ...zipped) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, e := range list {
		w, err := z.Create(e.name)
		if err == nil {
			_, err = w.Write(e.data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// zipBomb returns a file of some kilobytes with arrays of 1.2 GB.
func zipBomb(t testing.TB) []byte {
	t.Helper()
	one := zipOf(t, zipped{"x.npy", npy("{'descr': '|u1', 'fortran_order': False, 'shape': (2097152,)}", 1<<21)})
	r, err := zip.NewReader(bytes.NewReader(one), int64(len(one)))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := range 600 {
		packed, err := r.File[0].OpenRaw()
		if err != nil {
			t.Fatal(err)
		}
		h := r.File[0].FileHeader
		h.Name = fmt.Sprintf("%d.npy", i)
		w, err := z.CreateRaw(&h)
		if err == nil {
			_, err = io.Copy(w, packed)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// hostileSafetensors are files that must be refused, with a part of what is said of them.
func hostileSafetensors() map[string][]byte {
	a := func(dtype, shape, offsets string) string {
		return fmt.Sprintf(`{"a":{"dtype":%q,"shape":%s,"data_offsets":%s}}`, dtype, shape, offsets)
	}
	two := `{"a":{"dtype":"U8","shape":[4],"data_offsets":[%d,%d]},"b":{"dtype":"U8","shape":[4],"data_offsets":[%d,%d]}}`
	return map[string][]byte{
		"0 bytes, too few":                      {},
		"7 bytes, too few":                      make([]byte, 7),
		"does not begin with {":                 make([]byte, 8),
		"a header of 18446744073709551615":      append(bytes.Repeat([]byte{255}, 8), make([]byte, 100)...),
		"more than 100000000":                   append(binary.LittleEndian.AppendUint64(nil, 100_000_001), make([]byte, 100)...),
		"but a zip file":                        append([]byte("PK\x03\x04"), make([]byte, 100)...),
		"in a file of 9 bytes":                  append(binary.LittleEndian.AppendUint64(nil, 100_000_000), '{'),
		"is not UTF-8":                          file("{\"\xff\":{}}", 0),
		"ends too early":                        file(`{"a":{"dtype":"U8"`, 0),
		"goes on after its end":                 file(`{}{}`, 0),
		"wrong JSON at byte":                    file(`{"a":{"dtype":"U8","shape":[NaN],"data_offsets":[0,0]}}`, 0),
		`tensor "a" does not begin with {`:      file(`{"a":`+strings.Repeat("[", 1_000_000), 0),
		`the shape of tensor "a" has something`: file(`{"a":{"dtype":"U8","shape":[`+strings.Repeat("[", 100), 0),
		`the header has "a" twice`:              file(`{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"\u0061":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`, 0),
		`tensor "a" has "dtype" twice`:          file(`{"a":{"dtype":"U8","dtype":"F32","shape":[0],"data_offsets":[0,0]}}`, 0),
		`__metadata__ has "x" twice`:            file(`{"__metadata__":{"x":"1","x":"2"}}`, 0),
		`the value of "x" is no string`:         file(`{"__metadata__":{"x":1}}`, 0),
		`the header has "__metadata__" twice`:   file(`{"__metadata__":{},"__metadata__":{}}`, 0),
		`has the unknown key "pickle"`:          file(`{"a":{"pickle":"","dtype":"U8","shape":[0],"data_offsets":[0,0]}}`, 0),
		"has not all of dtype":                  file(`{"a":{"dtype":"U8","shape":[0]}}`, 0),
		`has not all of dtype, shape`:           file(`{"a":{"dtype":"U8","shape":[0],"data_offsets":[0]}}`, 0),
		"has more than 2 numbers":               file(a("U8", "[0]", "[0,0,0]"), 0),
		`is of the unknown type "X\n"`:          file(a("X\n", "[0]", "[0,0]"), 0),
		`is of the unknown type ""`:             file(a("", "[0]", "[0,0]"), 0),
		"ends at byte 0, before":                file(a("U8", "[0]", "[4,0]"), 4),
		"has 3 bytes, want 4":                   file(a("F32", "[]", "[0,3]"), 3),
		"has 8 bytes from 0 on":                 file(a("F32", "[2]", "[0,8]"), 7),
		"something else than a number":          file(a("U8", "[-1]", "[0,0]"), 0),
		"data_offsets of tensor \"a\" has som":  file(a("U8", "[1]", "[0,1.0]"), 1),
		"number from 0 to":                      file(a("U8", "[9223372036854775808]", "[0,0]"), 0),
		"more elements than there can be":       file(a("U8", "[4294967296,4294967296]", "[0,0]"), 0),
		"impossible shape: more elements":       file(a("U8", "[0,4611686018427387904,8]", "[0,0]"), 0),
		"more than 64 numbers":                  file(a("U8", "["+strings.Repeat("1,", 64)+"1]", "[0,1]"), 1),
		"no whole bytes":                        file(a("F4", "[3]", "[0,2]"), 2),
		"within the one before it":              file(fmt.Sprintf(two, 0, 4, 2, 6), 6),
		`tensor "b" begins at byte 0, within`:   file(fmt.Sprintf(two, 0, 4, 0, 4), 4),
		"a hole of 1 bytes before tensor":       file(fmt.Sprintf(two, 0, 4, 5, 9), 9),
		`a hole of 1 bytes before tensor "a"`:   file(fmt.Sprintf(two, 1, 5, 5, 9), 9),
		"1 bytes after the last tensor":         file(fmt.Sprintf(two, 0, 4, 4, 8), 9),
		"bytes after the last tensor":           file("{}", 1),
		`tensor "" does not begin with {`:       file(`{"":1}`, 0),
		"no string":                             file(`{"a":{"dtype":8}}`, 0),
		`"` + strings.Repeat("n", 200) + `"...`: file(`{"`+strings.Repeat("n", 100_000)+`":1}`, 0),
	}
}

func hostileNPY() map[string][]byte {
	dict := func(descr, order, shape string) string {
		return fmt.Sprintf("{'descr': %s, 'fortran_order': %s, 'shape': %s}", descr, order, shape)
	}
	good := dict("'<f4'", "False", "(2,)")
	return map[string][]byte{
		"this is no npy file":             []byte("\x80\x04PICKLE of anything at all"),
		"this is no npy":                  {},
		"version 4.0":                     append([]byte("\x93NUMPY\x04\x00\x10\x00"), make([]byte, 100)...),
		"version 1.1":                     append([]byte("\x93NUMPY\x01\x01\x10\x00"), make([]byte, 100)...),
		"a header of 4294967295 bytes":    append([]byte("\x93NUMPY\x02\x00\xff\xff\xff\xff"), make([]byte, 100)...),
		"ends too early":                  append([]byte("\x93NUMPY\x02\x00\xff\x00\x00\x00"), make([]byte, 10)...),
		"pickled":                         npy(dict("'|O'", "False", "(2,)"), 16),
		"with fields":                     npy(dict("[('x', '<f4')]", "False", "(2,)"), 8),
		`elements of type "<U8"`:          npy(dict("'<U8'", "False", "(2,)"), 64),
		`elements of type "<u8"`:          npy(dict("'<u8'", "False", "(2,)"), 16),
		`elements of type ""`:             npy(dict("''", "False", "(2,)"), 8),
		"7 bytes of elements, want 8":     npy(good, 7),
		"9 bytes of elements, want 8":     npy(good, 9),
		"0 bytes of elements, want 40000": npy(dict("'<f4'", "False", "(10000000000,)"), 0),
		"more elements than there can be": npy(dict("'<f4'", "False", "(4294967296, 4294967296)"), 0),
		"an impossible shape: more":       npy(dict("'<f4'", "False", "(0, 4611686018427387904, 16)"), 0),
		"is not that of an array":         npy(dict("'<f4'", "False", "(-2,)"), 8),
		"array at byte":                   npy(dict("'<f4'", "False", "(2)"), 8),
		"the header is not that":          npy(dict("'<f4'", "__import__('os')", "(2,)"), 8),
		"header is not that of an array":  npy(dict("'<f4'", "False", "(99999999999999999999,)"), 8),
		"not that of an array at byte":    npy(good+"x", 8),
		"that of an array at byte 0":      npy(strings.Repeat("(", 60_000), 8),
		"more than 64 axes":               npy(dict("'<f4'", "False", "("+strings.Repeat("1,", 65)+")"), 4),
		"unknown key":                     npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 1}", 8),
		"not all of descr":                npy("{'descr': '<f4', 'shape': (2,)}", 8),
		`the header has "descr" twice`:    npy("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 8),
		"of an array at byte 10":          npy(`{'descr': '<f4`, 0),
	}
}

func hostileNPZ(t testing.TB) map[string][]byte {
	x := npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 8)
	lying := zipOf(t, zipped{"x.npy", x})
	at := bytes.LastIndex(lying, []byte("PK\x01\x02"))
	small, large := bytes.Clone(lying), bytes.Clone(lying)
	binary.LittleEndian.PutUint32(small[at+24:], uint32(len(x)-1)) // the size in the directory
	binary.LittleEndian.PutUint32(large[at+24:], 0xfffffff0)
	damaged := bytes.Clone(lying)
	binary.LittleEndian.PutUint32(damaged[at+16:], 1) // the checksum
	method := bytes.Clone(lying)
	method[at+10] = 99
	return map[string][]byte{
		"this is no npz file":                  []byte("PK\x03\x04, but nothing more"),
		"this is no npz":                       {},
		`the name "../x.npy" leads out`:        zipOf(t, zipped{"../x.npy", x}),
		`the name "a/../../x.npy" leads out`:   zipOf(t, zipped{"a/../../x.npy", x}),
		`the name "/x.npy" leads out`:          zipOf(t, zipped{"/x.npy", x}),
		`the name "..\\x.npy" leads out`:       zipOf(t, zipped{`..\x.npy`, x}),
		`"x.npy" is there twice`:               zipOf(t, zipped{"x.npy", x}, zipped{"x.npy", x}),
		`"x.pkl" is no .npy`:                   zipOf(t, zipped{"x.pkl", x}),
		`"x.npy": this is no npy file`:         zipOf(t, zipped{"x.npy", []byte("something else")}),
		`"x.npy": an array of objects`:         zipOf(t, zipped{"x.npy", npy("{'descr': '|O', 'fortran_order': False, 'shape': (2,)}", 16)}),
		`7 bytes of elements, want 8`:          zipOf(t, zipped{"x.npy", x[:len(x)-1]}),
		`7 bytes of elements, want 8 for`:      small,
		"the arrays have more than 1073741824": large,
		"checksum error":                       damaged,
		"unsupported compression":              method,
		"arrays have more than":                zipBomb(t),
	}
}

// refused checks that read returns one error about the file with the given contents, which contains want, and takes
// little memory.
func refused(t *testing.T, name string, contents []byte, want string, read func(path string) error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(path, contents, 0o666))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := read(path)
	runtime.ReadMemStats(&after)
	var format *files.FormatError
	if !errors.As(err, &format) || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, want %s", err, want)
		return
	}
	if format.Path != path {
		t.Errorf("the error is about the file %q: %v", format.Path, err)
	}
	if text := err.Error(); len(text) > 2000 || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' }) {
		t.Errorf("a long or strange error: %q", text)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > uint64(20*len(contents)+1<<20) {
		t.Errorf("%s: %d bytes of memory for a file of %d bytes", want, took, len(contents))
	}
}

func TestHostile(t *testing.T) {
	for want, contents := range hostileSafetensors() {
		refused(t, "x.safetensors", contents, want, func(path string) error {
			_, err := files.Open(path)
			return err
		})
	}
	for want, contents := range hostileNPY() {
		refused(t, "x.npy", contents, want, func(path string) error {
			_, err := files.ReadNPY(path)
			return err
		})
		if _, err := files.DecodeNPY(bytes.NewReader(contents)); err == nil && !strings.HasPrefix(want, "9 bytes") {
			t.Errorf("%s: DecodeNPY returns no error", want)
		}
	}
	for want, contents := range hostileNPZ(t) {
		refused(t, "x.npz", contents, want, func(path string) error {
			_, err := files.ReadNPZ(path)
			return err
		})
	}
}

// An index names files of its folder only, which have what it says.
func TestHostileIndex(t *testing.T) {
	nested := strings.Repeat("[", 100_000)
	for want, text := range map[string]string{
		`"../x.safetensors", which is no name`:     `{"weight_map":{"a":"../x.safetensors"}}`,
		`"/etc/passwd", which is no name`:          `{"weight_map":{"a":"/etc/passwd"}}`,
		`"a/b", which is no name`:                  `{"weight_map":{"a":"a/b"}}`,
		`"..\\b", which is no name`:                `{"weight_map":{"a":"..\\b"}}`,
		`"c:b", which is no name`:                  `{"weight_map":{"a":"c:b"}}`,
		`"b\x00", which is no name`:                `{"weight_map":{"a":"b\u0000"}}`,
		`"\x1b[31m", which is no name`:             `{"weight_map":{"a":"\u001b[31m"}}`,
		`"..", which is no name`:                   `{"weight_map":{"a":".."}}`,
		`".", which is no name`:                    `{"weight_map":{"a":"."}}`,
		`"", which is no name`:                     `{"weight_map":{"a":""}}`,
		`weight_map has "a" twice`:                 `{"weight_map":{"a":"x","a":"x"}}`,
		`the index has "weight_map" twice`:         `{"weight_map":{},"weight_map":{}}`,
		"has no weight_map":                        `{"metadata":{}}`,
		"something else than words and numbers at": `{"metadata":{"x":` + nested + `}}`,
		"weight_map does not begin with {":         `{"weight_map":` + nested + `}`,
		`the index has the unknown key "y"`:        `{"y":1}`,
		"goes on after its end":                    `{"weight_map":{}} {}`,
		"wrong JSON at byte":                       `{"metadata":{"x":NaN}}`,
		"ends too early":                           `{"weight_map":{`,
		"not UTF-8":                                "{\"\xff",
	} {
		refused(t, "x.json", []byte(text), want, func(path string) error {
			_, err := files.Open(path)
			return err
		})
	}
	dir := t.TempDir()
	index := filepath.Join(dir, "x.json")
	must(t, files.Write(filepath.Join(dir, "x.safetensors"), map[string]*tensor.Tensor{"a": tensor.Zeros(1), "b": tensor.Zeros(1)}, nil))
	must(t, os.WriteFile(index, []byte(`{"metadata":{"total_size":4.0,"by":"me","n":null},"weight_map":{"c":"x.safetensors"}}`), 0o666))
	if _, err := files.Open(index); err == nil || !strings.Contains(err.Error(), `tensor "c" is not in "x.safetensors"`) {
		t.Error(err)
	}
	must(t, os.WriteFile(index, []byte(`{"weight_map":{"a":"y.safetensors"}}`), 0o666))
	if _, err := files.Open(index); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	must(t, os.WriteFile(index, []byte(`{"weight_map":{"a":"x.safetensors"}}`), 0o666))
	if got, err := files.Read(index); err != nil || len(got) != 1 {
		t.Error(got, err)
	}
}

// A file that ends too early, wherever, is refused.
func TestTruncated(t *testing.T) {
	dir := t.TempDir()
	for name, read := range map[string]func(path string) error{
		"types.safetensors": func(path string) error { _, err := files.Read(path); return err },
		"fortran.npy":       func(path string) error { _, err := files.ReadNPY(path); return err },
		"version3.npy":      func(path string) error { _, err := files.ReadNPY(path); return err },
		"packed.npz":        func(path string) error { _, err := files.ReadNPZ(path); return err },
	} {
		whole, err := os.ReadFile("testdata/" + name)
		must(t, err)
		path := filepath.Join(dir, name)
		for n := range whole {
			must(t, os.WriteFile(path, whole[:n], 0o666))
			var format *files.FormatError
			if err := read(path); !errors.As(err, &format) || format.Path != path {
				t.Fatalf("%s: with %d of %d bytes the error is %v", name, n, len(whole), err)
			}
		}
	}
}

// Only regular files are opened, and links to them.
func TestSpecialFiles(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link.npy")
	real, err := filepath.Abs("testdata/big.npy")
	must(t, err)
	if err := os.Symlink(real, link); err != nil {
		t.Skip(err)
	}
	if _, err := files.ReadNPY(link); err != nil {
		t.Error(err)
	}
	must(t, files.WriteNPY(link, tensor.Scalar(1)))
	if info, err := os.Lstat(link); err != nil || !info.Mode().IsRegular() {
		t.Errorf("a write leaves %v, %v", info, err)
	}
	if x, err := files.ReadNPY(real); err != nil || x.Rank() != 2 {
		t.Errorf("a write went through the link: %v, %v", x, err)
	}
	for _, path := range []string{dir, os.DevNull, "/dev/zero"} {
		if _, err := files.Open(path); err == nil || !strings.Contains(err.Error(), "no regular file") {
			t.Errorf("%s: %v", path, err)
		}
	}
	loop := filepath.Join(dir, "loop")
	must(t, os.Symlink(loop, loop))
	if _, err := files.Open(loop); err == nil {
		t.Error("a link to itself is opened")
	}
}

// A file that becomes shorter while it is mapped is an error of the read.
func TestShrunk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.safetensors")
	must(t, files.Write(path, map[string]*tensor.Tensor{"x": tensor.Zeros(1 << 20)}, nil))
	f, err := files.Open(path)
	must(t, err)
	defer f.Close()
	if err := os.Truncate(path, 4096); err != nil {
		t.Skip("an open file can't be cut here: ", err)
	}
	if x, err := f.Tensor("x"); err == nil {
		t.Errorf("a tensor of a file that is too short: %i", x)
	}
}

// Limits of npz are what the program says.
func TestNPZLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.npz")
	must(t, files.WriteNPZ(path, map[string]*tensor.Tensor{"a": tensor.Zeros(100), "b": tensor.Zeros(100)}))
	if _, err := files.ReadNPZ(path, files.NPZOptions{Limit: 1055}); err == nil {
		t.Error("1,056 bytes are read with a limit of 1,055")
	}
	if _, err := files.ReadNPZ(path, files.NPZOptions{Limit: 1056}); err != nil {
		t.Error(err)
	}
	if _, err := files.ReadNPZ(path, files.NPZOptions{Limit: math.MaxInt64}); err != nil {
		t.Error(err)
	}
}

// The limit of a file is about the tensors, too: int8 becomes int64.
func TestWidenedLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.npz")
	bytes := npy("{'descr': '|i1', 'fortran_order': False, 'shape': (1000,)}", 1000)
	must(t, os.WriteFile(path, zipOf(t, zipped{"a.npy", bytes}, zipped{"b.npy", bytes}), 0o666))
	head := len(bytes) - 1000
	for _, limit := range []int{2*len(bytes) - 1, 2*(head+8000) - 1} {
		_, err := files.ReadNPZ(path, files.NPZOptions{Limit: int64(limit)})
		if want := fmt.Sprintf("more than %d bytes", limit); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
	all, err := files.ReadNPZ(path, files.NPZOptions{Limit: int64(2 * (head + 8000))})
	if err != nil || len(all) != 2 {
		t.Error(len(all), err)
	}
}
