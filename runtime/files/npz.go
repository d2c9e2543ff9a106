package files

import (
	"archive/zip"
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// NPZOptions are options of [ReadNPZ].
type NPZOptions struct {
	// Limit is how many bytes the arrays may take together, unpacked, and as tensors: int8 becomes int64. 0: 1 GiB, or
	// 20 times the size of the file if that is more.
	Limit int64
}

// ReadNPZ reads the arrays of an npz file, as numpy.savez and numpy.savez_compressed write it, onto the default device,
// by their names without ".npy". What holds for an array is in [ReadNPY]. Memory is taken as elements arrive, so that
// a small file that says of itself to be large is no danger. A file with anything else in it, with a name twice, or
// with names that lead out of a folder, such as "../x", is an error.
//
//asyncgen:api control
//go:noinline
func ReadNPZ(path string, options ...NPZOptions) (map[string]*tensor.Tensor, error) {
	limit := only("ReadNPZ", options).Limit
	if limit < 0 {
		wrong("ReadNPZ", "a limit of %d bytes", limit)
	}
	src, err := open(path)
	if err != nil {
		return nil, err
	}
	all := map[string]*tensor.Tensor{}
	err = guarded(func() error {
		return readNPZ(io.NewSectionReader(reader{src}, 0, src.size()), cmp.Or(limit, max(1<<30, 20*src.size())), all)
	})
	if err = cmp.Or(err, src.close()); err != nil {
		dead(all)
		return nil, in(path, err)
	}
	return all, nil
}

// A reader reads a source as package zip wants it.
type reader struct{ source }

// ReadAt implements io.ReaderAt for places in the file: a SectionReader asks for no others.
func (r reader) ReadAt(p []byte, at int64) (int, error) {
	b, err := r.bytes(at, int64(len(p)))
	return copy(p, b), err
}

// readNPZ adds the arrays of a file to all.
func readNPZ(r *io.SectionReader, limit int64, all map[string]*tensor.Tensor) error {
	z, err := zip.NewReader(r, r.Size())
	if err != nil {
		return malformed("this is no npz file: %v", err)
	}
	// All that the directory says is checked before anything is read.
	tooLarge := malformed("the arrays have more than %d bytes: see NPZOptions", limit)
	room, seen := uint64(limit), map[string]bool{}
	for _, f := range z.File {
		switch {
		case !fs.ValidPath(f.Name) || strings.ContainsAny(f.Name, "\\\x00"):
			return malformed("the name %s leads out of the file", quoted(f.Name))
		case !strings.HasSuffix(f.Name, ".npy"):
			return malformed("%s is no .npy", quoted(f.Name))
		case seen[f.Name]:
			return malformed("%s is there twice", quoted(f.Name))
		case f.UncompressedSize64 > room:
			return tooLarge
		}
		room -= f.UncompressedSize64
		seen[f.Name] = true
	}
	for _, f := range z.File {
		name := strings.TrimSuffix(f.Name, ".npy")
		if all[name], err = readEntry(f, &room); err != nil {
			delete(all, name)
			if err == errRoom {
				return tooLarge
			}
			return malformed("%s: %s", quoted(f.Name), strings.TrimPrefix(err.Error(), "files: "))
		}
	}
	return nil
}

// errRoom says that a tensor is larger than the room that is left.
var errRoom = errors.New("no room")

// readEntry reads an array of the size that the directory says it has, and takes what the tensor has beyond that from
// room.
func readEntry(f *zip.File, room *uint64) (t *tensor.Tensor, err error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer func() { err = cmp.Or(err, r.Close()) }()
	counted := &io.LimitedReader{R: r, N: int64(f.UncompressedSize64)}
	a, err := headNPY(counted)
	if err != nil {
		return nil, err
	}
	if counted.N != a.bytes {
		return nil, malformed("%d bytes of elements, want %d for %s and shape %v", counted.N, a.bytes, a.format.npy, a.shape)
	}
	more := uint64(max(a.tensorBytes()-a.bytes, 0))
	if more > *room {
		return nil, errRoom
	}
	*room -= more
	if t, err = a.read(counted); err != nil {
		return nil, err
	}
	// What is behind the elements is the sum that package zip checks.
	if n, err := r.Read(make([]byte, 1)); n > 0 || err != io.EOF {
		tensor.Dead(t)
		if n > 0 {
			return nil, malformed("more bytes than the directory says")
		}
		return nil, err
	}
	return t, nil
}

// WriteNPZ writes tensors to an npz file, without compression, in the order of their names. What waits, and what must
// hold of tensors, is as in [WriteNPY]. Names are paths with slashes, without ".npy", that lead to no place outside of
// a folder; others are errors.
//
//asyncgen:api save 1
//go:noinline
func WriteNPZ(path string, tensors map[string]*tensor.Tensor) error {
	names := sortedNames("WriteNPZ", tensors)
	if err := wait(tensors, names); err != nil {
		return err
	}
	return writeFile(path, func(f *os.File) error {
		b := bufio.NewWriter(f)
		z := zip.NewWriter(b)
		for _, name := range names {
			if !fs.ValidPath(name+".npy") || strings.ContainsAny(name, "\\\x00") {
				return in(path, malformed("the name %s leads out of the file", quoted(name)))
			}
			w, err := z.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: zip.Store})
			if err != nil {
				return fmt.Errorf("files: %w", err)
			}
			if err := writeNPY(w, tensors[name]); err != nil {
				return in(path, err)
			}
		}
		if err := cmp.Or(z.Close(), b.Flush()); err != nil {
			return fmt.Errorf("files: %w", err)
		}
		return nil
	})
}
