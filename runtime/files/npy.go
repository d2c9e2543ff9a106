package files

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// An npy file is "\x93NUMPY", a version in two bytes, the length of a header in two bytes (version 1) or four, the
// header, which is a dict of Python, and the elements. See numpy.lib.format.

const (
	npyMagic = "\x93NUMPY"
	// maxNPYHeader bounds the header of arrays without fields, for which NumPy writes some hundred bytes.
	maxNPYHeader = 1 << 16
)

// An array is what the header of an npy file says.
type array struct {
	format  *format
	swapped bool // the order of bytes is not that of the host
	fortran bool // the first index changes fastest
	shape   []int
	bytes   int64
}

// ReadNPY reads an array of NumPy from an npy file of version 1 to 3 onto the default device. Numbers may be of either
// order of bytes. int8, int16, uint16 and uint32 become int64, and bools are as in [File.Tensor]. An array in Fortran's
// order becomes a view whose strides are in that order. Other types are errors: complex numbers, uint64, times, text,
// fields, and objects, which are pickled and could run anything.
//
//asyncgen:api control
//go:noinline
func ReadNPY(path string) (t *tensor.Tensor, err error) {
	src, err := open(path)
	if err != nil {
		return nil, err
	}
	err = guarded(func() error {
		head, err := src.bytes(0, min(src.size(), 12+maxNPYHeader))
		if err != nil {
			return err
		}
		a, n, err := parseNPY(head)
		if err != nil {
			return err
		}
		if have := src.size() - int64(n); have != a.bytes {
			return malformed("%d bytes of elements, want %d for %s and shape %v", have, a.bytes, a.format.npy, a.shape)
		}
		b, err := src.bytes(int64(n), a.bytes)
		if err == nil {
			t = a.tensor(b)
		}
		return err
	})
	if err = cmp.Or(err, src.close()); err != nil {
		return nil, in(path, err)
	}
	return t, nil
}

// DecodeNPY is [ReadNPY] from r. It reads no further than the array, so that several may follow each other. It takes
// memory only as elements arrive.
//
//asyncgen:api control
//go:noinline
func DecodeNPY(r io.Reader) (*tensor.Tensor, error) {
	a, err := headNPY(r)
	if err != nil {
		return nil, err
	}
	return a.read(r)
}

// headNPY reads a header from r.
func headNPY(r io.Reader) (*array, error) {
	head := make([]byte, 12)
	if _, err := io.ReadFull(r, head[:10]); err != nil {
		return nil, tooShort(err)
	}
	n, size, err := npyLength(head[:10])
	if size == 4 && err == nil {
		if _, err = io.ReadFull(r, head[10:]); err != nil {
			return nil, tooShort(err)
		}
		n, _, err = npyLength(head)
	}
	if err != nil {
		return nil, err
	}
	whole := append(head[:8+size:8+size], make([]byte, n)...)
	if _, err := io.ReadFull(r, whole[8+size:]); err != nil {
		return nil, tooShort(err)
	}
	a, _, err := parseNPY(whole)
	return a, err
}

// tooShort returns the error of a reader that ended, or failed.
func tooShort(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return malformed("the file ends too early")
	}
	return fmt.Errorf("files: %w", err)
}

// read reads the elements from r.
func (a *array) read(r io.Reader) (*tensor.Tensor, error) {
	const first = 1 << 20 // bytes that are allocated whether they come or not
	b := make([]byte, 0, min(a.bytes, first))
	for int64(len(b)) < a.bytes {
		if len(b) == cap(b) {
			b = append(make([]byte, 0, min(a.bytes, 2*int64(cap(b)))), b...)
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case errors.Is(err, io.EOF) && int64(len(b)) < a.bytes:
			return nil, malformed("%d bytes of elements, want %d for %s and shape %v", len(b), a.bytes, a.format.npy, a.shape)
		case err != nil && !errors.Is(err, io.EOF):
			return nil, fmt.Errorf("files: %w", err)
		}
	}
	return a.tensor(b), nil
}

// npyLength returns the length of the header, and of this number. The length is 0 if head is too short to have it.
func npyLength(head []byte) (n, size int, err error) {
	if len(head) < 10 || string(head[:6]) != npyMagic {
		return 0, 0, malformed("this is no npy file")
	}
	major := head[6]
	switch {
	case major < 1 || major > 3 || head[7] != 0:
		return 0, 0, malformed("version %d.%d of npy, want 1.0 to 3.0", major, head[7])
	case major == 1:
		n, size = int(binary.LittleEndian.Uint16(head[8:])), 2
	case len(head) >= 12:
		long := binary.LittleEndian.Uint32(head[8:])
		if long > maxNPYHeader {
			return 0, 0, malformed("a header of %d bytes, more than %d", long, maxNPYHeader)
		}
		n, size = int(long), 4
	default:
		size = 4
	}
	return n, size, nil
}

// parseNPY returns what the header says with which b begins, and where it ends.
func parseNPY(b []byte) (a *array, end int, err error) {
	n, size, err := npyLength(b)
	if err != nil {
		return nil, 0, err
	}
	end = 8 + size + n
	if end > len(b) {
		return nil, 0, malformed("the file ends too early")
	}
	d := dict{text: string(b[8+size : end])}
	a, err = d.array()
	return a, end, err
}

// A dict is a text of Python such as {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }.
type dict struct {
	text string
	at   int
}

// array reads the text.
func (d *dict) array() (*array, error) {
	a := &array{}
	seen := map[string]bool{}
	var err error
	if !d.take("{") {
		return nil, d.wrong()
	}
	for !d.take("}") {
		key, ok := d.quoted()
		if !ok || !d.take(":") {
			return nil, d.wrong()
		}
		if seen[key] {
			return nil, malformed("the header has %s twice", quoted(key))
		}
		seen[key] = true
		switch key {
		case "descr":
			err = d.descr(a)
		case "fortran_order":
			a.fortran = d.take("True")
			if !a.fortran && !d.take("False") {
				err = d.wrong()
			}
		case "shape":
			err = d.shape(a)
		default:
			err = malformed("the header has the unknown key %s", quoted(key))
		}
		if err != nil {
			return nil, err
		}
		if !d.take(",") && d.peek() != '}' {
			return nil, d.wrong()
		}
	}
	if d.peek() != 0 {
		return nil, d.wrong()
	}
	if len(seen) != 3 {
		return nil, malformed("the header has not all of descr, fortran_order and shape")
	}
	if a.bytes, err = a.format.bytesOf(a.shape); err != nil {
		return nil, malformed("an impossible shape: %v", err)
	}
	return a, nil
}

// tensorBytes is how many bytes a has as a tensor.
func (a *array) tensorBytes() int64 {
	return a.bytes / int64(a.format.bits/8) * int64(a.format.dtype.Size())
}

// wrong returns an error about the place that was reached.
func (d *dict) wrong() error {
	return malformed("the header is not that of an array at byte %d: %s", d.at, quoted(d.text[d.at:min(d.at+20, len(d.text))]))
}

// peek returns the next byte that is no space, or 0.
func (d *dict) peek() byte {
	for d.at < len(d.text) && strings.IndexByte(" \t\r\n", d.text[d.at]) >= 0 {
		d.at++
	}
	if d.at == len(d.text) {
		return 0
	}
	return d.text[d.at]
}

// take reports whether word comes next, and goes behind it.
func (d *dict) take(word string) bool {
	d.peek()
	if !strings.HasPrefix(d.text[d.at:], word) {
		return false
	}
	d.at += len(word)
	return true
}

// quoted reads a string. None that is wanted has a backslash.
func (d *dict) quoted() (string, bool) {
	q := d.peek()
	if q != '\'' && q != '"' {
		return "", false
	}
	s, _, ok := strings.Cut(d.text[d.at+1:], string(q))
	if !ok || strings.Contains(s, "\\") {
		return "", false
	}
	d.at += len(s) + 2
	return s, true
}

// shape reads a tuple of numbers.
func (d *dict) shape(a *array) error {
	if !d.take("(") {
		return d.wrong()
	}
	a.shape = []int{}
	for !d.take(")") {
		d.peek()
		digits := len(d.text[d.at:]) - len(strings.TrimLeft(d.text[d.at:], "0123456789"))
		n, err := strconv.Atoi(d.text[d.at : d.at+digits])
		if err != nil {
			return d.wrong()
		}
		d.at += digits
		d.take("L") // of Python 2
		if a.shape = append(a.shape, n); len(a.shape) > maxRank {
			return malformed("more than %d axes", maxRank)
		}
		if isAlone := len(a.shape) == 1; !d.take(",") && (isAlone || d.peek() != ')') {
			return d.wrong()
		}
	}
	return nil
}

// descr reads the type of elements.
func (d *dict) descr(a *array) error {
	if d.peek() == '[' {
		return malformed("arrays with fields are not read")
	}
	text, ok := d.quoted()
	if !ok {
		return d.wrong()
	}
	order := byte('|')
	name := text
	if len(text) > 0 && strings.IndexByte("<>=|", text[0]) >= 0 {
		order, name = text[0], text[1:]
	}
	if strings.HasPrefix(name, "O") {
		return malformed("an array of objects, which are pickled: they could run anything, and are not read")
	}
	a.format = formatNamed(name, func(f *format) string { return f.npy })
	if a.format == nil || a.format.read == nil {
		return malformed("elements of type %s, which tensors cannot have", quoted(text))
	}
	a.swapped = order == '<' && !isLittle || order == '>' && isLittle
	return nil
}

// tensor returns the array with the elements in b, which are copied.
func (a *array) tensor(b []byte) *tensor.Tensor {
	if !a.fortran || len(a.shape) < 2 {
		return a.format.read(device.Device{}, b, a.shape, a.swapped)
	}
	shape, axes := slices.Clone(a.shape), make([]int, len(a.shape))
	slices.Reverse(shape)
	for i := range axes {
		axes[i] = len(axes) - 1 - i
	}
	t := a.format.read(device.Device{}, b, shape, a.swapped)
	defer tensor.Dead(t)
	return t.Transpose(axes...)
}

// WriteNPY writes a tensor to an npy file of version 1 in C's order, the lowest byte first. NumPy has no bfloat16: such
// a tensor is an error. WriteNPY waits until t has been computed, and returns its *asyncrt.OpError without writing
// anything if it failed.
//
//asyncgen:api save 1
//go:noinline
func WriteNPY(path string, t *tensor.Tensor) error {
	if t == nil {
		wrong("WriteNPY", "the tensor is nil")
	}
	if err := t.Wait(); err != nil {
		return err
	}
	return writeFile(path, func(f *os.File) error { return in(path, writeNPY(f, t)) })
}

// EncodeNPY is [WriteNPY] to w. After an error, w may have got a part of the file.
//
//asyncgen:api save 1
//go:noinline
func EncodeNPY(w io.Writer, t *tensor.Tensor) error {
	if t == nil {
		wrong("EncodeNPY", "the tensor is nil")
	}
	if err := t.Wait(); err != nil {
		return err
	}
	return writeNPY(w, t)
}

// writeNPY writes t, which has been computed.
func writeNPY(w io.Writer, t *tensor.Tensor) error {
	f := formatOf(t.DType())
	if f.npy == "" {
		return malformed("npy has no %v: convert the tensor with As", t.DType())
	}
	order := "<"
	if f.bits == 8 {
		order = "|"
	}
	tuple := strings.TrimSuffix(strings.Join(strings.Fields(strings.Trim(t.Shape().String(), "[]")), ", "), ", ")
	if t.Rank() == 1 {
		tuple += ","
	}
	head := fmt.Sprintf("{'descr': '%s%s', 'fortran_order': False, 'shape': (%s), }", order, f.npy, tuple)
	const before = len(npyMagic) + 4
	head += strings.Repeat(" ", 63-(before+len(head))%64) + "\n" // so that elements begin at a multiple of 64
	b, err := f.bytesIn(t)
	if err != nil {
		return err
	}
	start := append([]byte(npyMagic), 1, 0)
	start = binary.LittleEndian.AppendUint16(start, uint16(len(head)))
	for _, piece := range [][]byte{append(start, head...), b} {
		if _, err := w.Write(piece); err != nil {
			return fmt.Errorf("files: %w", err)
		}
	}
	return nil
}
