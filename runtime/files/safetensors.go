package files

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A safetensors file has the length of a header in 8 bytes, the header, which is JSON, and then the elements of the
// tensors without gaps, in row-major order, the lowest byte first.

// maxHeader bounds the header, as the library of the format does.
const maxHeader = 100_000_000

// metadataKey is the name in the header of words about the file.
const metadataKey = "__metadata__"

// A File is a safetensors file that is open, or several with an index. Names, types and shapes are in memory, and
// elements are read by [File.Tensor]. Several goroutines may use a File.
//
// On Linux and macOS the file is mapped into memory. So a tensor costs one copy from the page cache of the system.
// Elsewhere it is read. The file must not change while it is open.
type File struct {
	path     string
	names    []string // in order
	entries  map[string]*entry
	metadata map[string]string

	mu     sync.RWMutex // held for reading while a source is in use; guards closed
	closed bool
	shards []*shard
}

// A shard is one file of a File.
type shard struct {
	path string
	source
	entries  []entry
	metadata map[string]string
	header   int64 // where the elements begin
}

// An entry is what a header says about a tensor.
type entry struct {
	name   string
	format *format
	shape  []int
	at, n  int64 // its bytes, counted from the end of the header
	shard  *shard
}

// Info describes a tensor in a file.
type Info struct {
	// Type is the element type by its name in the file, such as "BF16".
	Type string
	// DType is the element type of the tensor that [File.Tensor] returns. I8, I16, U16 and U32 become int64. It is 0 if
	// there is no such tensor.
	DType tensor.DType
	Shape device.Shape
	Bytes int64 // in the file
}

// typeName is the name of the type that tensors have, or else that in the file.
func (i Info) typeName() string {
	if i.DType == device.Invalid {
		return i.Type
	}
	return i.DType.String()
}

// Open opens a safetensors file, or all files of an index, whose name ends with ".json": such as
// model.safetensors.index.json. It reads and checks the headers and no elements. An index names files of its own
// folder; tensors of these files that the index doesn't name are left out. Close the File after use.
//
//asyncgen:api control
func Open(path string) (*File, error) {
	if strings.HasSuffix(path, ".json") {
		return openIndex(path)
	}
	s, err := openShard(path)
	if err != nil {
		return nil, err
	}
	f := newFile(path, s.metadata)
	f.shards = []*shard{s}
	for i := range s.entries {
		f.add(&s.entries[i])
	}
	return f, nil
}

func newFile(path string, metadata map[string]string) *File {
	return &File{path: path, entries: map[string]*entry{}, metadata: metadata}
}

func (f *File) add(e *entry) {
	f.names = append(f.names, e.name)
	f.entries[e.name] = e
}

// openShard opens one safetensors file.
func openShard(path string) (*shard, error) {
	src, err := open(path)
	if err != nil {
		return nil, err
	}
	s := &shard{path: path, source: src}
	if err := s.read(); err != nil {
		return nil, cmp.Or(in(path, err), src.close())
	}
	return s, nil
}

// read reads the header.
func (s *shard) read() error {
	return guarded(func() error {
		size := s.size()
		if size < 8 {
			return malformed("it is no safetensors file: %d bytes, too few for the length of a header", size)
		}
		b, err := s.bytes(0, 8)
		if err != nil {
			return err
		}
		n := binary.LittleEndian.Uint64(b)
		switch {
		case bytes.HasPrefix(b, []byte("PK\x03\x04")):
			return malformed("it is no safetensors file, but a zip file, as those of torch.save and NumPy's npz are")
		case n > maxHeader:
			return malformed("it is no safetensors file: a header of %d bytes, more than %d", n, maxHeader)
		case int64(n) > size-8:
			return malformed("it is cut off, or no safetensors file: a header of %d bytes in a file of %d bytes", n, size)
		}
		s.header = 8 + int64(n)
		if b, err = s.bytes(8, int64(n)); err != nil {
			return err
		}
		s.entries, s.metadata, err = parseHeader(b, size-s.header)
		for i := range s.entries {
			s.entries[i].shard = s
		}
		return err
	})
}

// parseHeader returns what a header says of a file with the given number of bytes behind it.
func parseHeader(head []byte, data int64) (entries []entry, metadata map[string]string, err error) {
	if len(head) == 0 || head[0] != '{' {
		return nil, nil, malformed("the header does not begin with {")
	}
	if !utf8.Valid(head) {
		return nil, nil, malformed("the header is not UTF-8")
	}
	d := newDecoder(head)
	err = d.object(label{"the header", ""}, func(name string) error {
		if name == metadataKey {
			metadata = map[string]string{}
			return d.object(label{metadataKey, ""}, func(key string) (err error) {
				metadata[key], err = d.text(label{"the value of ", key})
				return err
			})
		}
		e, err := d.entry(name)
		entries = append(entries, e)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	if rest := head[d.InputOffset():]; len(bytes.TrimLeft(rest, " \t\r\n")) > 0 {
		return nil, nil, malformed("the header goes on after its end")
	}
	return entries, metadata, checkOffsets(entries, data)
}

// checkOffsets returns an error unless the tensors fill the data, one after the other.
func checkOffsets(entries []entry, data int64) error {
	inOrder := make([]*entry, len(entries))
	for i := range entries {
		inOrder[i] = &entries[i]
	}
	slices.SortFunc(inOrder, func(a, b *entry) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.n, b.n)) })
	end := int64(0)
	for _, e := range inOrder {
		switch {
		case e.at < end:
			return malformed("tensor %s begins at byte %d, within the one before it", quoted(e.name), e.at)
		case e.at > end:
			return malformed("a hole of %d bytes before tensor %s", e.at-end, quoted(e.name))
		case e.n > data-end:
			return malformed("tensor %s has %d bytes from %d on, and the file has %d", quoted(e.name), e.n, e.at, data)
		}
		end += e.n
	}
	if end != data {
		return malformed("%d bytes after the last tensor", data-end)
	}
	return nil
}

// A decoder reads the JSON of headers and indices, whose form is known, so it never goes deep.
type decoder struct{ *json.Decoder }

func newDecoder(b []byte) decoder {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return decoder{d}
}

// A label says what a value is: a kind of thing, with its name if the kind ends with a space. It becomes a text only
// where something is wrong.
type label struct{ kind, name string }

func (l label) String() string {
	if strings.HasSuffix(l.kind, " ") {
		return l.kind + quoted(l.name)
	}
	return l.kind
}

// token returns the next token.
func (d decoder) token() (json.Token, error) {
	t, err := d.Token()
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, malformed("the JSON ends too early")
	case err != nil:
		return nil, malformed("wrong JSON at byte %d: %v", d.InputOffset(), err)
	}
	return t, nil
}

// object reads an object. It calls member for each of its keys, which reads the value. What says what it is of.
func (d decoder) object(what label, member func(key string) error) error {
	if err := d.begin(what, '{'); err != nil {
		return err
	}
	seen := map[string]bool{}
	for d.More() {
		t, err := d.token()
		if err != nil {
			return err
		}
		key, ok := t.(string)
		if !ok {
			return malformed("%s has a key that is no string", what)
		}
		if seen[key] {
			return malformed("%s has %s twice", what, quoted(key))
		}
		seen[key] = true
		if err := member(key); err != nil {
			return err
		}
	}
	_, err := d.token()
	return err
}

// begin reads the bracket with which what begins.
func (d decoder) begin(what label, bracket json.Delim) error {
	t, err := d.token()
	if err == nil && t != bracket {
		err = malformed("%s does not begin with %v", what, bracket)
	}
	return err
}

// text reads a string.
func (d decoder) text(what label) (string, error) {
	t, err := d.token()
	if err != nil {
		return "", err
	}
	s, ok := t.(string)
	if !ok {
		return "", malformed("%s is no string", what)
	}
	return s, nil
}

// numbers reads an array of integers from 0 on, and no more than limit.
func (d decoder) numbers(what label, limit int) ([]int64, error) {
	if err := d.begin(what, '['); err != nil {
		return nil, err
	}
	var list []int64
	for d.More() {
		t, err := d.token()
		if err != nil {
			return nil, err
		}
		number, _ := t.(json.Number)
		n, err := strconv.ParseInt(string(number), 10, 64)
		if err != nil || n < 0 || int64(int(n)) != n {
			return nil, malformed("%s has something else than a number from 0 to %d", what, maxInt)
		}
		if len(list) == limit {
			return nil, malformed("%s has more than %d numbers", what, limit)
		}
		list = append(list, n)
	}
	_, err := d.token()
	return list, err
}

const maxInt = int(^uint(0) >> 1)

// entry reads what a header says about the named tensor.
func (d decoder) entry(name string) (e entry, err error) {
	what := label{"tensor ", name}
	var offsets []int64
	var hasShape bool
	err = d.object(what, func(key string) error {
		switch key {
		case "dtype":
			t, err := d.text(label{"the dtype of tensor ", name})
			if err != nil {
				return err
			}
			if e.format = formatNamed(t, func(f *format) string { return f.safetensors }); e.format == nil {
				return malformed("%s is of the unknown type %s", what, quoted(t))
			}
		case "shape":
			shape, err := d.numbers(label{"the shape of tensor ", name}, maxRank)
			if err != nil {
				return err
			}
			hasShape, e.shape = true, make([]int, len(shape))
			for i, n := range shape {
				e.shape[i] = int(n)
			}
		case "data_offsets":
			if offsets, err = d.numbers(label{"data_offsets of tensor ", name}, 2); err != nil {
				return err
			}
		default:
			return malformed("%s has the unknown key %s", what, quoted(key))
		}
		return nil
	})
	switch {
	case err != nil:
		return e, err
	case e.format == nil || !hasShape || len(offsets) != 2:
		return e, malformed("%s has not all of dtype, shape and two data_offsets", what)
	case offsets[1] < offsets[0]:
		return e, malformed("%s ends at byte %d, before it begins at %d", what, offsets[1], offsets[0])
	}
	e.name, e.at, e.n = name, offsets[0], offsets[1]-offsets[0]
	n, err := e.format.bytesOf(e.shape)
	if err != nil {
		return e, malformed("%s has an impossible shape: %v", what, err)
	}
	if n != e.n {
		return e, malformed("%s of %s and shape %v has %d bytes, want %d", what, e.format.safetensors, e.shape, e.n, n)
	}
	return e, nil
}

// Names returns the names of all tensors, in the order of the headers.
//
//asyncgen:api pure
func (f *File) Names() []string { return slices.Clone(f.names) }

// Info describes the named tensor. It returns false if there is none.
//
//asyncgen:api pure
func (f *File) Info(name string) (Info, bool) {
	e, ok := f.entries[name]
	if !ok {
		return Info{}, false
	}
	return Info{Type: e.format.safetensors, DType: e.format.dtype, Shape: slices.Clone(e.shape), Bytes: e.n}, true
}

// Metadata returns the words about the file that its header has, or the index. What is no string in an index is left
// out.
//
//asyncgen:api pure
func (f *File) Metadata() map[string]string { return maps.Clone(f.metadata) }

// Tensor reads the named tensor. It is on the default device, and has memory of its own. Types that tensors don't have
// become int64 if that has all of their values: see [Info]. Any byte of a bool but 0 is true. Tensor returns an error
// if there is no tensor of that name, if its type is another one, and after Close.
//
//asyncgen:api control
//go:noinline
func (f *File) Tensor(name string) (*tensor.Tensor, error) { return f.TensorOn(device.Device{}, name) }

// TensorOn is Tensor on another device.
//
//asyncgen:api control
//go:noinline
func (f *File) TensorOn(dev device.Device, name string) (t *tensor.Tensor, err error) {
	e, ok := f.entries[name]
	if !ok {
		return nil, fmt.Errorf("files: %s has no tensor %s", quoted(f.path), quoted(name))
	}
	if e.format.read == nil {
		return nil, in(e.shard.path, malformed("tensor %s is of %s, which tensors cannot have", quoted(name), e.format.safetensors))
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.closed {
		return nil, fmt.Errorf("files: %s: tensor %s: %w", quoted(f.path), quoted(name), os.ErrClosed)
	}
	err = guarded(func() error {
		b, err := e.shard.bytes(e.shard.header+e.at, e.n)
		if err == nil {
			t = e.format.read(dev, b, e.shape, !isLittle)
		}
		return err
	})
	if err != nil {
		return nil, in(e.shard.path, err)
	}
	return t, nil
}

// Close closes the files. Tensors that were read stay as they are. It waits for calls of Tensor on other goroutines.
//
//asyncgen:api control
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	var all []error
	for _, s := range f.shards {
		all = append(all, s.close())
	}
	return errors.Join(all...)
}

// Read reads all tensors of a safetensors file, or of the files of an index, onto the default device: see [Open] and
// [File.Tensor].
//
//asyncgen:api control
//go:noinline
func Read(path string) (map[string]*tensor.Tensor, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all := make(map[string]*tensor.Tensor, len(f.names))
	for _, name := range f.names {
		if all[name], err = f.Tensor(name); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Write writes tensors to a safetensors file, with words about them: metadata may be nil. The order in the file is that
// of the sizes of elements, and then of names. So equal tensors give equal files. Write waits until all tensors have
// been computed, and returns the *asyncrt.OpError of one that failed without writing anything. It takes the memory of
// the largest tensor. Names and metadata must be UTF-8.
//
//asyncgen:api save 1
//go:noinline
func Write(path string, tensors map[string]*tensor.Tensor, metadata map[string]string) error {
	return write("Write", path, tensors, metadata)
}

// WriteTo is [Write] to w. After an error, w may have got a part of the file.
//
//asyncgen:api save 1
//go:noinline
func WriteTo(w io.Writer, tensors map[string]*tensor.Tensor, metadata map[string]string) error {
	e, err := prepared("WriteTo", tensors, metadata)
	if err != nil {
		return err
	}
	return e.write(w)
}

func write(name, path string, tensors map[string]*tensor.Tensor, metadata map[string]string) error {
	e, err := prepared(name, tensors, metadata)
	if err != nil {
		return in(path, err)
	}
	return writeFile(path, func(f *os.File) error { return in(path, e.write(f)) })
}

// An encoded is a safetensors file before it is written.
type encoded struct {
	tensors map[string]*tensor.Tensor
	names   []string // in the order of the file
	head    []byte   // with its length
}

// prepared waits for tensors and returns them encoded, for the function with the given name.
func prepared(name string, tensors map[string]*tensor.Tensor, metadata map[string]string) (*encoded, error) {
	e := &encoded{tensors: tensors, names: sortedNames(name, tensors)}
	if err := wait(tensors, e.names); err != nil {
		return nil, err
	}
	// Then each tensor begins at a multiple of the size of its elements.
	slices.SortStableFunc(e.names, func(a, b string) int {
		return cmp.Compare(tensors[b].DType().Size(), tensors[a].DType().Size())
	})
	var b bytes.Buffer
	b.Write(make([]byte, 8))
	b.WriteByte('{')
	if len(metadata) > 0 {
		b.WriteString(`"` + metadataKey + `":{`)
		for i, key := range slices.Sorted(maps.Keys(metadata)) {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := cmp.Or(writeText(&b, key), b.WriteByte(':'), writeText(&b, metadata[key])); err != nil {
				return nil, err
			}
		}
		b.WriteByte('}')
	}
	at := int64(0)
	for i, n := range e.names {
		if n == metadataKey {
			return nil, malformed("a tensor can't be called %s", metadataKey)
		}
		if i > 0 || len(metadata) > 0 {
			b.WriteByte(',')
		}
		if err := writeText(&b, n); err != nil {
			return nil, err
		}
		t := tensors[n]
		end := at + int64(t.Size())*int64(t.DType().Size())
		fmt.Fprintf(&b, `:{"dtype":%q,"shape":%s,"data_offsets":[%d,%d]}`, formatOf(t.DType()).safetensors, list(t.Shape()), at, end)
		at = end
	}
	b.WriteByte('}')
	for b.Len()%8 != 0 {
		b.WriteByte(' ')
	}
	e.head = b.Bytes()
	if len(e.head)-8 > maxHeader {
		return nil, malformed("names and shapes take %d bytes, more than the %d of a header", len(e.head)-8, maxHeader)
	}
	binary.LittleEndian.PutUint64(e.head, uint64(len(e.head)-8))
	return e, nil
}

// list is a shape as JSON has it.
func list(shape device.Shape) string { return strings.ReplaceAll(shape.String(), " ", ",") }

// writeText writes a string as JSON has it.
func writeText(b *bytes.Buffer, s string) error {
	if !utf8.ValidString(s) {
		return malformed("%s is not UTF-8", quoted(s))
	}
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1) // the line's end
	return nil
}

// write writes the file, a tensor at a time.
func (e *encoded) write(w io.Writer) error {
	if _, err := w.Write(e.head); err != nil {
		return fmt.Errorf("files: %w", err)
	}
	for _, n := range e.names {
		t := e.tensors[n]
		b, err := formatOf(t.DType()).bytesIn(t)
		if err != nil {
			return err
		}
		if _, err := w.Write(b); err != nil {
			return fmt.Errorf("files: tensor %s: %w", quoted(n), err)
		}
	}
	return nil
}
