package engine

import "github.com/asyncgen/asyncgen/device"

// A program that looks at results later than it would (asyncrt.Later) keeps until then what it has
// not looked at. Nobody knows what that is: functions hold it. But it is not more than the results
// since, whose sizes are known.

// Written is how many bytes the results have that were enqueued so far, of each stream in the order
// in which they were made; those of less than worthReleasing bytes do not count. It is not changed
// any more.
type Written []int64

func (w Written) of(stream int) int64 {
	if stream < len(w) {
		return w[stream]
	}
	return 0
}

// Room is how much more a program may keep that runs behind its results.
type Room uint8

const (
	Ample  Room = iota
	Little      // it keeps enough: it takes more memory than it would if it looked at once, and that shows
	None        // memory may be short before it has looked
)

// A program that runs behind its results takes at most littleRoom bytes and a part of what is live
// anyway for that, if it runs behind by more than one look; and a part of what is left of the
// device's memory.
const (
	littleRoom = 32 << 20
	livePart   = 8
	freePart   = 4
)

// count notes that a result of so many bytes is to be made on st.
func (st *stream) count(bytes int64) {
	if bytes >= worthReleasing {
		st.written.Add(bytes)
	}
}

// Written returns the numbers as of now: before, if they are those.
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

// RoomSince is the room that a program has which keeps results that were enqueued since Written
// returned w: on the device with the least.
func (e *Engine) RoomSince(w Written) Room {
	room := Ample
	for i, st := range e.allStreams() {
		if kept := st.written.Load() - w.of(i); kept > 0 {
			room = max(room, st.roomFor(kept))
		}
	}
	return room
}

// partOfMemory is how much of a device what is computed at once may take of one operand, where it
// need not be computed at once.
const partOfMemory = 64

// Part returns most, or less if a device has little memory: bytes of one operand.
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

// roomFor is the room that there is if so many bytes of results are kept.
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
