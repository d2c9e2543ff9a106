package engine

import "github.com/asyncgen/asyncgen/device"

// A program that reads results later than it was written to (asyncrt.Later) keeps them until then.
// The functions that it has put off hold them, so nobody knows which they are. But they are at most
// all results enqueued since, and the sizes of those are known.

// Written says how many bytes the results enqueued so far have, for each stream in the order in which
// the streams were made. Results of less than worthReleasing bytes do not count. A Written is
// immutable.
type Written []int64

// of returns the bytes of a stream; 0 if it was made later than w.
func (w Written) of(stream int) int64 {
	if stream < len(w) {
		return w[stream]
	}
	return 0
}

// Room says whether a program that reads results late may keep more of them.
type Room uint8

const (
	Ample  Room = iota // it may keep more
	Little             // it takes noticeably more memory than if it read at once, and should not keep more
	None               // memory may run out before it reads
)

// The bounds of Room. There is Little once kept results take more than littleRoom bytes plus a part
// of what is live anyway (or than the bound on bytes in flight), and None once they take more than a
// part of the device's free memory.
const (
	littleRoom = 32 << 20
	livePart   = 8 // the part is 1/livePart
	freePart   = 4 // the part is 1/freePart
)

// count notes that a result of so many bytes will be made on st.
func (st *stream) count(bytes int64) {
	if bytes >= worthReleasing {
		st.written.Add(bytes)
	}
}

// Written returns the numbers as of now. It returns before itself if nothing has changed.
func (e *Engine) Written(before Written) Written {
	all := e.allStreams()
	same := true
	for i, st := range all {
		same = same && before.of(i) == st.written.Load()
	}
	if same {
		return before
	}
	w := make(Written, len(all))
	for i, st := range all {
		w[i] = st.written.Load()
	}
	return w
}

// RoomSince returns the Room of a program that keeps all results enqueued since Written returned w:
// that on the device with the least.
func (e *Engine) RoomSince(w Written) Room {
	room := Ample
	for i, st := range e.allStreams() {
		if kept := st.written.Load() - w.of(i); kept > 0 {
			room = max(room, st.roomFor(kept))
		}
	}
	return room
}

// RoomFor returns the Room of a program that keeps so many bytes of results: that on the device with the least.
func (e *Engine) RoomFor(kept int64) Room {
	room := Ample
	for _, st := range e.allStreams() {
		room = max(room, st.roomFor(kept))
	}
	return room
}

// partOfMemory limits Part: 1/partOfMemory of a device's memory.
const partOfMemory = 64

// Part returns how many bytes of one operand should be computed at once, where work can be split:
// most, or less if a device has little memory.
func (e *Engine) Part(most int) int {
	for _, st := range e.allStreams() {
		if st.backend == nil {
			continue
		}
		if m := device.MemoryOf(st.backend); m != nil {
			most = int(min(int64(most), m.Limit()/partOfMemory))
		}
	}
	return most
}

// roomFor returns the Room on st if so many bytes of results are kept.
func (st *stream) roomFor(kept int64) Room {
	most := int64(littleRoom)
	if st.backend != nil {
		if m := device.MemoryOf(st.backend); m != nil {
			live := m.Live()
			if kept > (m.Limit()-live-st.e.inFlight.Load())/freePart {
				return None
			}
			most += live / livePart
		}
	}
	if limit := st.e.limit.Load(); limit > 0 {
		most = min(most, limit)
	}
	if kept > most {
		return Little
	}
	return Ample
}
