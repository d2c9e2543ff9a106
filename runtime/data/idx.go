package data

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/asyncgen/asyncgen/device"
)

const (
	// maxIDX bounds the number of elements of a file in the format IDX.
	maxIDX = 1 << 31
	// maxUnpacked and maxPacking bound the elements of a compressed file: they may take so many bytes, and more if the
	// file becomes no more than so many times longer.
	maxUnpacked, maxPacking = 1 << 30, 20
)

// ReadIDXFile returns the array in a file in the format IDX, the one of MNIST, which may be compressed with gzip.
// The elements of the file may be of any type whose numbers are all numbers of T: bytes, for example, can be read as
// uint8, int32, int64, float32 or float64. Errors name the file. See [ReadIDX] for what is refused.
//
//asyncgen:api control
func ReadIDXFile[T device.Element](name string) (Array[T], error) {
	f, err := os.Open(name)
	if err != nil {
		return Array[T]{}, fmt.Errorf("data: %w", err)
	}
	defer f.Close()
	size := int64(math.MaxInt64)
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		size = info.Size()
	}
	a, err := readIDX[T](f, size, maxUnpacked)
	if err != nil {
		return Array[T]{}, fmt.Errorf("data: read %s: %w", name, err)
	}
	return a, nil
}

// ReadIDX returns the array that r has in the format IDX, as [ReadIDXFile] does. It reads up to the end of r. It
// returns an error if r has less or more than it announces, or more than 2^31 elements, or is in another format.
// Memory is taken as elements arrive, whatever number of them is announced. If they take more than 1 GiB, a compressed
// r may become no more than 20 times longer: a small one that becomes huge is an error.
//
//asyncgen:api control
func ReadIDX[T device.Element](r io.Reader) (Array[T], error) {
	a, err := readIDX[T](r, math.MaxInt64, maxUnpacked)
	if err != nil {
		return Array[T]{}, fmt.Errorf("data: read IDX: %w", err)
	}
	return a, nil
}

// readIDX reads from r, which has no more than the given number of bytes. Unpacked is maxUnpacked, but for tests.
func readIDX[T device.Element](r io.Reader, most, unpacked int64) (a Array[T], err error) {
	packed := &counter{r: r}
	b := bufio.NewReaderSize(packed, 1<<16)
	isPacked := false
	if magic, _ := b.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(b)
		if err != nil {
			return a, err
		}
		defer z.Close()
		isPacked = true
		b = bufio.NewReaderSize(z, 1<<16)
		most = min(most, math.MaxInt64/1100) * 1100 // no byte of gzip stands for more
	}
	kind, shape, err := readIDXHead(b)
	if err != nil {
		return a, err
	}
	decode, width := idxDecoder[T](kind)
	if decode == nil {
		return a, fmt.Errorf("elements of type 0x%02x%s, which can't be read as %v", kind, idxTypes[kind], device.DTypeOf[T]())
	}
	n := size(shape)
	if n < 0 || n > maxIDX {
		return a, fmt.Errorf("an array of shape %v is too large", shape)
	}
	if want := int64(n) * int64(width); want > most {
		return a, fmt.Errorf("an array of shape %v has %d bytes, and the file is shorter", shape, want)
	}
	// Memory doubles while elements arrive: a header alone gets little.
	data := make([]T, 0, min(n, 1<<16))
	chunk := make([]byte, 1<<13*width)
	for len(data) < n {
		some := chunk[:min(n-len(data), 1<<13)*width]
		if got, err := io.ReadFull(b, some); err != nil {
			if err == io.EOF || err == io.ErrUnexpectedEOF {
				return a, fmt.Errorf("it is cut off: %d of %d elements are there", len(data)+got/width, n)
			}
			return a, err
		}
		if len(data)+len(some)/width > cap(data) {
			more := min(n, 2*cap(data))
			isLarge := int64(more)*int64(device.DTypeOf[T]().Size()) > unpacked
			if isPacked && isLarge && int64(more)*int64(width) > maxPacking*packed.n {
				return a, fmt.Errorf("%d compressed bytes become %d or more: uncompress it first", packed.n, len(data)*width)
			}
			data = append(make([]T, 0, more), data...)
		}
		data = decode(data, some)
	}
	if _, err := b.ReadByte(); err == nil {
		return a, fmt.Errorf("there is more than an array of shape %v", shape)
	} else if !errors.Is(err, io.EOF) {
		return a, err
	}
	return Array[T]{Data: data, Shape: shape}, nil
}

// A counter counts the bytes that are read.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// readIDXHead reads the type of the elements and the shape.
func readIDXHead(b io.Reader) (kind byte, shape []int, err error) {
	var magic [4]byte
	if _, err := io.ReadFull(b, magic[:]); err != nil {
		return 0, nil, cutOff(err)
	}
	if magic[0] != 0 || magic[1] != 0 || magic[3] == 0 {
		return 0, nil, fmt.Errorf("it is not in the format IDX: it begins with % x", magic)
	}
	for range magic[3] {
		var d [4]byte
		if _, err := io.ReadFull(b, d[:]); err != nil {
			return 0, nil, cutOff(err)
		}
		n := binary.BigEndian.Uint32(d[:])
		if n > math.MaxInt32 {
			return 0, nil, fmt.Errorf("an axis of length %d is too large", n)
		}
		shape = append(shape, int(n))
	}
	return magic[2], shape, nil
}

func cutOff(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return errors.New("it is cut off: the header is not complete")
	}
	return err
}

// idxTypes are the types of elements that the format has, for errors.
var idxTypes = map[byte]string{0x08: " (uint8)", 0x09: " (int8)", 0x0b: " (int16)", 0x0c: " (int32)", 0x0d: " (float32)", 0x0e: " (float64)"}

// idxDecoder returns a function that appends the elements in bytes to a slice, and the number of bytes of one. It is
// nil if T does not have all numbers of the type.
func idxDecoder[T device.Element](kind byte) (decode func(to []T, from []byte) []T, width int) {
	var f any
	var zero T
	switch kind {
	case 0x08:
		width = 1
		u8 := func(b []byte) uint8 { return b[0] }
		switch any(zero).(type) {
		case uint8:
			f = func(to, from []byte) []byte { return append(to, from...) }
		case int32:
			f = decoder(1, func(b []byte) int32 { return int32(u8(b)) })
		case int64:
			f = decoder(1, func(b []byte) int64 { return int64(u8(b)) })
		case float32:
			f = decoder(1, func(b []byte) float32 { return float32(u8(b)) })
		case float64:
			f = decoder(1, func(b []byte) float64 { return float64(u8(b)) })
		}
	case 0x09:
		width = 1
		f = signed[T](1, func(b []byte) int32 { return int32(int8(b[0])) })
	case 0x0b:
		width = 2
		f = signed[T](2, func(b []byte) int32 { return int32(int16(binary.BigEndian.Uint16(b))) })
	case 0x0c:
		width = 4
		i32 := func(b []byte) int32 { return int32(binary.BigEndian.Uint32(b)) }
		if _, ok := any(zero).(float32); !ok {
			f = signed[T](4, i32)
		}
	case 0x0d:
		width = 4
		f32 := func(b []byte) float32 { return math.Float32frombits(binary.BigEndian.Uint32(b)) }
		switch any(zero).(type) {
		case float32:
			f = decoder(4, f32)
		case float64:
			f = decoder(4, func(b []byte) float64 { return float64(f32(b)) })
		}
	case 0x0e:
		width = 8
		if _, ok := any(zero).(float64); ok {
			f = decoder(8, func(b []byte) float64 { return math.Float64frombits(binary.BigEndian.Uint64(b)) })
		}
	}
	decode, _ = f.(func([]T, []byte) []T)
	return decode, width
}

// signed returns a decoder of integers with a sign, or nil.
func signed[T device.Element](width int, one func([]byte) int32) any {
	var zero T
	switch any(zero).(type) {
	case int32:
		return decoder(width, one)
	case int64:
		return decoder(width, func(b []byte) int64 { return int64(one(b)) })
	case float32:
		return decoder(width, func(b []byte) float32 { return float32(one(b)) })
	case float64:
		return decoder(width, func(b []byte) float64 { return float64(one(b)) })
	}
	return nil
}

func decoder[T device.Element](width int, one func([]byte) T) func(to []T, from []byte) []T {
	return func(to []T, from []byte) []T {
		for ; len(from) > 0; from = from[width:] {
			to = append(to, one(from))
		}
		return to
	}
}
