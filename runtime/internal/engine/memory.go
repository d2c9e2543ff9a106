package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/device"
)

// alloc returns a buffer of st's device, which is given back when nothing refers to it
// any more. If there is no memory, it makes room first.
func (st *stream) alloc(bytes int64) (*device.Buffer, error) {
	buf, err := st.backend.Alloc(bytes)
	var pc uintptr
	if err != nil {
		if pc = callerPC(); !st.e.makeRoom(st, bytes, pc, err) {
			return nil, err
		}
		if buf, err = st.backend.Alloc(bytes); err != nil {
			return nil, &outOfMemory{err, holdersOf(st.backend)}
		}
	}
	if buf.NeedsFree() {
		if pc == 0 {
			pc = callerPC()
		}
		buf.Tag(pc)
		runtime.AddCleanup(buf, release, released{st.backend, *buf})
	}
	return buf, nil
}

// released is a buffer that nothing refers to any more.
type released struct {
	backend device.Backend
	buf     device.Buffer
}

func release(r released) { r.backend.Free(&r.buf) }

// makeRoom does what can be done when st's device has no memory left: what is in flight holds memory until it has
// finished, and what was dropped does until the collector finds it. It reports whether it is worth another try.
func (e *Engine) makeRoom(st *stream, bytes int64, pc uintptr, cause error) bool {
	memory := device.MemoryOf(st.backend)
	if memory == nil || !errors.Is(cause, device.ErrOutOfMemory) || bytes < 0 || bytes > memory.Limit() {
		return false
	}
	e.scarce.Lock() // one at a time; whoever comes next may find room
	defer e.scarce.Unlock()
	start := now()
	var h help
	for _, st := range e.allStreams() {
		if n := st.enqueued(); n > 0 {
			there, _ := st.exec.await(context.Background(), goal{seq: n - 1, all: true})
			h.add(there)
		}
	}
	device.Collect()
	memory.Trim()
	e.countStall("alloc", pc, now()-start, h)
	return true
}

// outOfMemory is the error of an allocation that has failed although everything was done to make room.
type outOfMemory struct {
	error
	holders string
}

func (e *outOfMemory) Error() string { return e.error.Error() + e.holders }

func (e *outOfMemory) Unwrap() error { return e.error }

// maxHolders is how many lines of the program a table of holders names.
const maxHolders = 10

// holdersOf tells which lines of the program have made what is live on a device, the largest first.
func holdersOf(b device.Backend) string {
	type line struct {
		site          *site
		bytes, blocks int64
	}
	var lines []line
	for _, h := range device.MemoryOf(b).Holders() {
		at, known := siteOf(h.Tag), false
		for i := range lines { // several calls may be on one line
			if have := lines[i].site; have == at || have != nil && at != nil && have.file == at.file && have.line == at.line {
				lines[i].bytes += h.Bytes
				lines[i].blocks += h.Blocks
				known = true
			}
		}
		if !known {
			lines = append(lines, line{at, h.Bytes, h.Blocks})
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(b.bytes, a.bytes) })
	var text strings.Builder
	for i, l := range lines {
		if i == maxHolders {
			fmt.Fprintf(&text, "\n\tand %d more lines", len(lines)-i)
			break
		}
		where := "elsewhere"
		if l.site != nil {
			where = fmt.Sprintf("%s:%d", l.site.file, l.site.line)
		}
		if i == 0 {
			text.WriteString("\nin use:")
		}
		fmt.Fprintf(&text, "\n\t%10.1f MiB in %5d results made at %s", float64(l.bytes)/(1<<20), l.blocks, where)
	}
	return text.String()
}

// DeviceMemory is the memory of one device as the engine uses it, in bytes.
type DeviceMemory struct {
	Device   device.Device
	Live     int64 // of results that something refers to, or whose end the collector has not noticed yet
	Cached   int64 // kept for other results
	Peak     int64 // the largest Live so far
	InFlight int64 // written by operations that have not finished
	Limit    int64 // on Live and Cached together
}

// memory returns the numbers of each device that was used. Those of a device without an
// allocator are 0 except for InFlight.
func (e *Engine) memory() []DeviceMemory {
	var all []DeviceMemory
	for _, st := range e.allStreams() {
		if st.backend == nil {
			continue // staging memory
		}
		m := DeviceMemory{Device: st.dev, InFlight: st.inFlight()}
		if a := device.MemoryOf(st.backend); a != nil {
			s := a.Stats()
			m.Live, m.Cached, m.Peak, m.Limit = s.Live, s.Cached, s.Peak, s.Limit
		}
		all = append(all, m)
	}
	return all
}

// inFlight is how many bytes operations of st write that have not finished.
func (st *stream) inFlight() int64 {
	for i := 0; ; i++ {
		t := st.tail.Load()
		if t&1 != 0 || !st.tail.CompareAndSwap(t, t|1) {
			backoff(i)
			continue
		}
		bytes := st.pushed
		st.tail.Store(t)
		return bytes - st.retired.Load()
	}
}
