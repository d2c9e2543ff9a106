package mpi

import (
	"os"
	"os/signal"
	"slices"
	"sync/atomic"
)

// stopping is the state of Transport.Stopping.
type stopping struct {
	signals chan os.Signal // nil before the first call
	isTold  bool           // a signal has come to this rank
	last    *vote          // of the last call, or nil
	decided bool
}

// A vote is one exchange of the ranks: whether any of them was told to stop. Each tells rank 0, and is told the result.
type vote struct {
	missing atomic.Int32 // on rank 0: how many ranks have not told yet
	known   chan struct{}
	isStop  bool // the result, set before known is closed
}

// Stopping reports whether the job should end now because somebody wants its machines: SIGTERM or SIGUSR1 has come to a
// rank. Mpiexec passes both on to all. A program calls it once in each step, on all ranks alike, and saves its state
// when it is true:
//
//	if job.Stopping() {
//		return save(step)
//	}
//
// A call has the same answer on all ranks. For that, each call begins an exchange of a byte with rank 0, and answers
// with the result of the exchange before, so that it rarely waits. Once true, the answer stays. It is true after Fail
// as well, and then Run ends the job with that error.
//
// The wait is not one of the engine's. With ASYNCGEN_ENGINE=shuffle:SEED, where the engine does nothing while its
// program doesn't wait for it, several ranks that call Stopping can wait for each other, and run into the deadline.
//
// From the first call on a signal doesn't end the program, until one was noticed. One goroutine may call Stopping.
func (t *Transport) Stopping() bool {
	s := &t.stop
	if s.decided || t.failure() != nil {
		return true
	}
	if s.signals == nil {
		s.signals = make(chan os.Signal, 1)
		signal.Notify(s.signals, stopSignals...)
	}
	select {
	case <-s.signals:
		s.isTold = true
		signal.Stop(s.signals)
	default:
	}
	before := s.last
	s.last = t.vote(s.isTold)
	if before != nil {
		<-before.known
		s.decided = before.isStop
	}
	return s.decided || t.failure() != nil
}

// vote begins an exchange. Its messages are on Go's heap, whose objects don't move, and the operations keep them alive.
func (t *Transport) vote(isTold bool) *vote {
	v := &vote{known: make(chan struct{})}
	word := make([]byte, 1)
	if isTold {
		word[0] = 1
	}
	if t.rank != 0 {
		result := make([]byte, 1)
		t.begin(operation{tag: tagStop, isSend: true, mem: word, done: t.check})
		t.begin(operation{tag: tagStop, mem: result, done: func(err error) {
			t.check(err)
			v.end(result[0] != 0)
		}})
		return v
	}
	words := append(word, make([]byte, t.size-1)...)
	v.missing.Store(int32(t.size))
	told := func(err error) {
		t.check(err)
		if v.missing.Add(-1) == 0 {
			t.tell(v, words)
		}
	}
	for rank := 1; rank < t.size; rank++ {
		t.begin(operation{tag: tagStop, peer: rank, mem: words[rank : rank+1], done: told})
	}
	told(nil)
	return v
}

// tell ends a vote on rank 0, which has the words of all.
func (t *Transport) tell(v *vote, words []byte) {
	result := []byte{slices.Max(words)}
	for rank := 1; rank < t.size; rank++ {
		t.begin(operation{tag: tagStop, isSend: true, peer: rank, mem: result, done: t.check})
	}
	v.end(result[0] != 0)
}

func (v *vote) end(isStop bool) {
	v.isStop = isStop
	close(v.known)
}

// check has everything fail if an operation of a vote does.
func (t *Transport) check(err error) {
	if err != nil {
		t.Fail(err)
	}
}
