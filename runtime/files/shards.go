package files

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// An index is a JSON file beside several safetensors files. It says which of them has which tensor:
//
//	{"metadata": {"total_size": 12}, "weight_map": {"a": "model-00001-of-00002.safetensors", ...}}

// openIndex opens the files that an index names.
func openIndex(path string) (*File, error) {
	src, err := open(path)
	if err != nil {
		return nil, err
	}
	var names, shards []string
	metadata := map[string]string{}
	err = guarded(func() error {
		if src.size() > maxHeader {
			return malformed("an index of %d bytes, more than %d", src.size(), maxHeader)
		}
		b, err := src.bytes(0, src.size())
		if err != nil {
			return err
		}
		names, shards, metadata, err = parseIndex(b)
		return err
	})
	if err = cmp.Or(err, src.close()); err != nil {
		return nil, in(path, err)
	}
	f := newFile(path, metadata)
	opened := map[string]map[string]*entry{}
	for i, name := range names {
		base := shards[i]
		if opened[base] == nil {
			s, err := openShard(filepath.Join(filepath.Dir(path), base))
			if err != nil {
				return nil, cmp.Or(err, f.Close())
			}
			f.shards = append(f.shards, s)
			opened[base] = map[string]*entry{}
			for j := range s.entries {
				opened[base][s.entries[j].name] = &s.entries[j]
			}
		}
		e := opened[base][name]
		if e == nil {
			err := in(path, malformed("tensor %s is not in %s", quoted(name), quoted(base)))
			return nil, cmp.Or(err, f.Close())
		}
		f.add(e)
	}
	return f, nil
}

// parseIndex returns the names of tensors in an index, and the file of each.
func parseIndex(b []byte) (names, shards []string, metadata map[string]string, err error) {
	if !utf8.Valid(b) {
		return nil, nil, nil, malformed("the index is not UTF-8")
	}
	d := newDecoder(b)
	metadata = map[string]string{}
	hasMap := false
	err = d.object(label{"the index", ""}, func(key string) error {
		switch key {
		case "metadata":
			return d.object(label{"metadata", ""}, func(key string) error { return d.word(key, metadata) })
		case "weight_map":
			hasMap = true
			return d.object(label{"weight_map", ""}, func(name string) error {
				file, err := d.text(label{"the file of tensor ", name})
				if err != nil {
					return err
				}
				if !isBase(file) {
					return malformed("tensor %s is said to be in %s, which is no name of a file in the folder of the index", quoted(name), quoted(file))
				}
				names, shards = append(names, name), append(shards, file)
				return nil
			})
		}
		return malformed("the index has the unknown key %s", quoted(key))
	})
	if err != nil {
		return nil, nil, nil, err
	}
	if !hasMap {
		return nil, nil, nil, malformed("the index has no weight_map")
	}
	if rest := b[d.InputOffset():]; len(bytes.TrimLeft(rest, " \t\r\n")) > 0 {
		return nil, nil, nil, malformed("the index goes on after its end")
	}
	return names, shards, metadata, nil
}

// word reads the value of a key, and keeps it if it is a string.
func (d decoder) word(key string, words map[string]string) error {
	t, err := d.token()
	if err != nil {
		return err
	}
	switch t := t.(type) {
	case string:
		words[key] = t
	case json.Delim:
		return malformed("metadata has something else than words and numbers at %s", quoted(key))
	}
	return nil
}

// isBase reports whether name is that of a file in a folder, on any system.
func isBase(name string) bool {
	return filepath.IsLocal(name) && name != "." && !strings.ContainsAny(name, `/\:`) &&
		!strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

// WriteShards writes tensors to several safetensors files, each with limit bytes of tensors at most, unless one tensor
// alone has more, and their index at path, whose name must end with ".safetensors.index.json". Files of
// model.safetensors.index.json are called model-00001-of-00002.safetensors. Names go in order from file to file, and
// metadata, which may be nil, into each file and the index. What waits, and what must hold of tensors, is as in
// [Write].
//
// Each file takes its place when all have been written, the index at last. A program that is killed in between leaves
// old files beside new ones: write to a new folder where that matters.
//
//asyncgen:api save 1
//go:noinline
func WriteShards(path string, tensors map[string]*tensor.Tensor, metadata map[string]string, limit int64) error {
	return writeShards("WriteShards", path, tensors, metadata, limit)
}

const indexSuffix = ".safetensors.index.json"

func writeShards(name, path string, tensors map[string]*tensor.Tensor, metadata map[string]string, limit int64) error {
	stem, ok := strings.CutSuffix(path, indexSuffix)
	if !ok || filepath.Base(path) == indexSuffix {
		wrong(name, "an index is called NAME%s, not %q", indexSuffix, path)
	}
	if limit <= 0 {
		wrong(name, "shards of %d bytes", limit)
	}
	names := sortedNames(name, tensors)
	if err := wait(tensors, names); err != nil {
		return err
	}
	var parts []map[string]*tensor.Tensor
	total, room := int64(0), int64(-1)
	for _, n := range names {
		t := tensors[n]
		bytes := int64(t.Size()) * int64(t.DType().Size())
		if room < bytes {
			parts = append(parts, map[string]*tensor.Tensor{})
			room = limit
		}
		parts[len(parts)-1][n] = t
		room -= bytes
		total += bytes
	}
	if len(parts) == 0 {
		parts = []map[string]*tensor.Tensor{{}}
	}
	where := map[string]string{}
	dir, err := openFolder(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	var list []*pending
	defer func() { abandon(list) }()
	for i, part := range parts {
		file := fmt.Sprintf("%s-%05d-of-%05d.safetensors", stem, i+1, len(parts))
		for n := range part {
			where[n] = filepath.Base(file)
		}
		e, err := prepared(name, part, metadata)
		if err != nil {
			return in(file, err)
		}
		p, err := begin(file, func(f *os.File) error { return in(file, e.write(f)) })
		if err != nil {
			return err
		}
		list = append(list, p)
	}
	about := map[string]any{"total_size": total}
	for key, word := range metadata {
		if _, ok := about[key]; !ok {
			about[key] = word
		}
	}
	text, err := json.MarshalIndent(map[string]any{"metadata": about, "weight_map": where}, "", "  ")
	if err != nil {
		return in(path, err)
	}
	p, err := begin(path, func(f *os.File) error {
		_, err := f.Write(append(text, '\n'))
		return err
	})
	if err != nil {
		return err
	}
	list = append(list, p)
	for _, p := range slices.Clone(list) {
		if err := p.finish(); err != nil {
			return err
		}
		list = list[1:]
	}
	return syncFolder(dir)
}
