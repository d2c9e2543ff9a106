package engine

import (
	"bytes"
	"runtime"
	"strconv"
)

// A goroutine is identified by its number, which is never used again. Go shows the number only in
// stack traces, and one takes a microsecond. Where the address of the runtime's record of the calling
// goroutine is known (amd64), the number is read from the record instead. When the program begins,
// findID finds the number's place in the record by comparing the records of several goroutines.

// idAt is the offset of the number in the record; 0: it is not known.
var idAt = findID()

// The word before the number begins with the goroutine's state, 32 bits. One of the bits belongs to
// the collector.
const (
	stateMask    = 0xffff &^ 0x1000
	stateRunning = 2
	stateDead    = 6
)

// findID starts several goroutines, and returns the one offset at which each record holds its
// goroutine's number, with the state of a running goroutine in the word before. If there is no such
// offset, or more than one, it returns 0.
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

// idByTrace is self by the first line of a stack trace. It takes a microsecond.
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

// hasEnded reports whether the goroutine with the given number, which had the given record, has ended.
func hasEnded(id, record uintptr) bool {
	if idAt == 0 {
		return hasNoTrace(id)
	}
	return word(record+idAt) != id || word(record+idAt-8)&stateMask == stateDead
}

// hasNoTrace is hasEnded by a stack trace of all goroutines.
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
