package engine

import (
	"bytes"
	"runtime"
	"strconv"
)

// Goroutines are told apart by their numbers, which are never used again. Go gives them away in
// stack traces alone, which takes a microsecond. Where the runtime's record of the calling
// goroutine can be had, the number is read from it: its place is found by trying out, when the
// program begins, where several goroutines have theirs.

// idAt is where the number is in the record; 0: that is not known.
var idAt = findID()

// The word before the number begins with the state of the goroutine, in 32 bits of which one is the collector's.
const (
	stateMask    = 0xffff &^ 0x1000
	stateRunning = 2
	stateDead    = 6
)

// findID returns the only place in the records of several goroutines that holds the numbers of them all, if before it
// there is what says that they run. Otherwise it returns 0.
func findID() uintptr {
	const samples, words = 8, 40
	if goroutine() == 0 {
		return 0
	}
	var hits [words]int
	done := make(chan bool)
	for range samples {
		go func() {
			id := idByTrace()
			for i := 1; i < words; i++ {
				at := goroutine() + uintptr(i)*8
				if word(at) == id && word(at-8)&stateMask == stateRunning {
					hits[i]++
				}
			}
			done <- true
		}()
		<-done
	}
	found := uintptr(0)
	for i, n := range hits {
		switch {
		case n == samples && found != 0:
			return 0
		case n == samples:
			found = uintptr(i) * 8
		}
	}
	return found
}

// self identifies the calling goroutine among all that the program ever has.
func self() uintptr {
	if idAt == 0 {
		return idByTrace()
	}
	return word(goroutine() + idAt)
}

func idByTrace() uintptr {
	var text [64]byte // "goroutine 123 [running]:..."
	return idIn(text[:runtime.Stack(text[:], false)])
}

// idIn returns the number in the first line of a goroutine's trace.
func idIn(trace []byte) (id uintptr) {
	for _, c := range bytes.TrimPrefix(trace, []byte("goroutine ")) {
		if c < '0' || c > '9' {
			break
		}
		id = id*10 + uintptr(c-'0')
	}
	return id
}

// hasEnded reports whether the goroutine with the given number, whose record was there, has ended.
func hasEnded(id, record uintptr) bool {
	if idAt == 0 {
		return hasNoTrace(id)
	}
	return word(record+idAt) != id || word(record+idAt-8)&stateMask == stateDead
}

// hasNoTrace is hasEnded by a trace of all goroutines.
func hasNoTrace(id uintptr) bool {
	text := make([]byte, 1<<16)
	n := runtime.Stack(text, true)
	for n == len(text) {
		text = make([]byte, 2*len(text))
		n = runtime.Stack(text, true)
	}
	line := "goroutine " + strconv.FormatUint(uint64(id), 10) + " "
	return !bytes.HasPrefix(text[:n], []byte(line)) && !bytes.Contains(text[:n], []byte("\n"+line))
}
