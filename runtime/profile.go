package asyncrt

import (
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"time"

	"github.com/asyncgen/asyncgen/runtime/internal/engine"
)

// WriteMemoryProfile writes which lines of the program have made the results whose memory is in use, how many and how
// many bytes, on all devices, for go tool pprof:
//
//	go tool pprof -top FILE
//
// Each line is shown as if it were a function, "train.go:31", that the function around it calls. So tables and graphs,
// which are about functions, have the lines as well. A result counts for the line of the operation that got its memory.
// In use is what operations have written, also what is dropped and the collector has not found yet: a call of
// runtime.GC before leaves out most of that. On the CPU, results below some KiB are not counted; they are in the heap
// profile, like other values of the program. WriteMemoryProfile does not wait for operations. Samples have the label
// "device".
//
//asyncgen:api poll
func WriteMemoryProfile(w io.Writer) error {
	z := gzip.NewWriter(w)
	_, err := z.Write(memoryProfile(engine.Default().Holders(), time.Now()))
	return errors.Join(err, z.Close())
}

// A message is one of protocol buffers: fields, one after the other. Numbers of fields are those of
// github.com/google/pprof/blob/main/proto/profile.proto.
type message []byte

func (m *message) uint(field int, x uint64) {
	*m = binary.AppendUvarint(binary.AppendUvarint(*m, uint64(field)<<3), x)
}

func (m *message) bytes(field int, b []byte) {
	*m = append(binary.AppendUvarint(binary.AppendUvarint(*m, uint64(field)<<3|2), uint64(len(b))), b...)
}

// memoryProfile returns a profile with a sample of each holder, taken at a time.
func memoryProfile(holders []engine.Holder, at time.Time) []byte {
	var p message
	texts := map[string]uint64{"": 0}
	list := []string{""}
	text := func(s string) uint64 {
		i, ok := texts[s]
		if !ok {
			i = uint64(len(list))
			texts[s], list = i, append(list, s)
		}
		return i
	}
	kind := func(field int, name, unit string) {
		var m message
		m.uint(1, text(name))
		m.uint(2, text(unit))
		p.bytes(field, m)
	}
	kind(1, "inuse_objects", "count")
	kind(1, "inuse_space", "bytes")
	functions := uint64(0)
	// inLine adds a line of a location, in a function of its own.
	inLine := func(location *message, name string, h *engine.Holder) {
		functions++
		var line, function message
		line.uint(1, functions)
		line.uint(2, uint64(h.Line))
		location.bytes(4, line)
		function.uint(1, functions)
		function.uint(2, text(name))
		function.uint(3, text(name))
		function.uint(4, text(h.File))
		p.bytes(5, function)
	}
	for i := range holders {
		h := &holders[i]
		var sample, label, location message
		sample.uint(1, uint64(i+1))
		sample.uint(2, uint64(h.Blocks))
		sample.uint(2, uint64(h.Bytes))
		label.uint(1, text("device"))
		label.uint(2, text(h.Device.Name()))
		sample.bytes(3, label)
		p.bytes(2, sample)
		location.uint(1, uint64(i+1))
		if h.File == "" {
			inLine(&location, "elsewhere", h)
		} else {
			inLine(&location, fmt.Sprintf("%s:%d", path.Base(h.File), h.Line), h)
			inLine(&location, h.Func, h)
		}
		p.bytes(4, location)
	}
	p.uint(9, uint64(at.UnixNano()))
	kind(11, "space", "bytes")
	p.uint(12, 1)
	p.uint(14, text("inuse_space"))
	for _, s := range list {
		p.bytes(6, []byte(s))
	}
	return p
}
