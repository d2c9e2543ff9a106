package mpi

import (
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/asyncgen/asyncgen/device/internal/ffi"
)

// How often MPI_Testsome is called before there are pauses, and how these grow: at first by doubling, and later to a
// share of the time that the goroutine has waited. So waiting takes little of the processors, and not much longer.
const (
	spins      = 100 // some 50 us
	firstPause = 2 * time.Microsecond
	doublings  = 5
	minLong    = 50 * time.Microsecond
	longer     = 4  // so many times, a long pause becomes twice as long
	share      = 16 // long pauses of one length
	longest    = 64 // those of the last length: 51 ms

	setTimerSlack, slack = 29, 1000 // of prctl, in ns
)

// polls calls MPI_Testsome until operations have ended, or somebody wakes the goroutine. The list of calls is this, and
// is left at the first one whose result is not 0:
//
//	spins times:        Testsome, memcmp of state with what it is while nothing happens
//	for each pause:     Testsome, memcmp, ppoll, which waits for the time of the pause
//	once more:          Testsome, memcmp
//
// Before pauses, prctl has the kernel end them in time, and not up to 50 us later. A long wait is in one list: the
// runtime takes the processor away from a goroutine that stays in C, and looks every 20 us for milliseconds then
// whether it can do so again.
type polls struct {
	lib    *library
	arena  *ffi.Arena // of the arrays, which grow together
	fixed  ffi.Arena  // of the rest
	pollfd uintptr
	pauses [doublings + longer + 1]uintptr // addresses of timespecs, the shortest first
	// How many have ended, and 1 while the goroutine sleeps, which others change, too.
	state   *[2]int32
	stateAt uintptr
	count   []uint64 // the length of a message
	countAt uintptr

	requests                          []uint64 // of what is under way, in the order of job.active
	indices                           []uint64 // of those that have ended, as int32s
	statuses                          []uint64 // of them, in their order
	requestsAt, indicesAt, statusesAt uintptr

	list     *ffi.List
	last     int  // where the pauses of the last length begin
	n        int  // how many requests the calls of list look at
	isLong   bool // there was no event during the last list
	hasCodes bool // statuses say what failed
}

func (p *polls) init(lib *library, fd uintptr) {
	p.lib, p.list = lib, new(ffi.List)
	const pollIn = 1
	var words []uint64
	words, p.pollfd = p.fixed.Words(1)
	words[0] = uint64(fd) | pollIn<<32
	for i := range p.pauses {
		words, p.pauses[i] = p.fixed.Words(2)
		words[1] = uint64(firstPause << i)
		if i >= doublings {
			words[1] = uint64(minLong << (i - doublings))
		}
	}
	words, p.stateAt = p.fixed.Words(2)
	p.state = (*[2]int32)(unsafe.Pointer(&words[0]))
	*(*[2]int32)(unsafe.Pointer(&words[1])) = [2]int32{0, 1}
	p.count, p.countAt = p.fixed.Words(1)
	p.grow(64)
}

// grow makes room for n operations.
func (p *polls) grow(n int) {
	if n <= len(p.requests) {
		return
	}
	n = max(n, 2*len(p.requests))
	old := p.requests
	p.arena = new(ffi.Arena)
	p.requests, p.requestsAt = p.arena.Words(n)
	copy(p.requests, old)
	p.indices, p.indicesAt = p.arena.Words((n + 1) / 2)
	p.statuses, p.statusesAt = p.arena.Words(n * statusWords)

	p.n = 0
	p.list.Reset()
	look := func() {
		p.list.Add(p.lib.address[testsome], 0, p.requestsAt, p.stateAt, p.indicesAt, p.statusesAt)
		p.list.Add(p.lib.address[cMemcmp], p.stateAt, p.stateAt+8, 8)
	}
	for range spins {
		look()
	}
	for i, pause := range p.pauses {
		times := share
		switch {
		case i < doublings:
			times = 1
		case i == len(p.pauses)-1:
			times, p.last = longest, p.list.Len()
		}
		if i == 0 || times == longest {
			p.list.Add(p.lib.address[cPrctl], setTimerSlack, slack)
		}
		for range times {
			look()
			p.list.Add(p.lib.address[cPpoll], p.pollfd, 1, pause, 0)
		}
	}
	look()
}

// request returns the address of a request.
func (p *polls) request(i int) uintptr { return p.requestsAt + uintptr(8*i) }

// sleeps says that the goroutine is going to sleep: whoever wakes it has to write to the descriptor from now on.
func (p *polls) sleeps() {
	p.state[0] = 0
	atomic.StoreInt32(&p.state[1], 1)
}

// isWoken ends that, and reports whether somebody writes. wakes ends it, too, and reports whether its caller has to.
func (p *polls) isWoken() bool { return !p.wakes() }
func (p *polls) wakes() bool   { return atomic.CompareAndSwapInt32(&p.state[1], 1, 0) }

// run waits until some of the first n requests have ended, until somebody wakes the goroutine, or for a while. It
// returns how many have ended.
func (p *polls) run(n int) (ended int, err error) {
	if n != p.n {
		p.n = n
		for i := range p.list.Len() {
			if c := p.list.At(i); c.Fn == p.lib.address[testsome] {
				c.Args[0] = uintptr(n)
			}
		}
	}
	from := 0
	if p.isLong {
		from = p.last
	}
	at := p.list.Run(from)
	p.isLong = at == p.list.Len()
	p.hasCodes = false
	if !p.isLong && p.list.At(at).Fn == p.lib.address[testsome] {
		code := p.list.At(at).Status()
		if p.hasCodes = code == errInStatus; !p.hasCodes {
			return 0, p.lib.error(testsome, code)
		}
	}
	return max(int(p.state[0]), 0), nil
}

// index returns which operation was the ith to end in the last run.
func (p *polls) index(i int) int { return int(uint32(p.indices[i/2] >> (i % 2 * 32))) }

// result returns the error of the ith operation that has ended in the last run, which is op, or nil.
func (p *polls) result(i int, op operation) error {
	status := p.statuses[i*statusWords:]
	if code := int32(status[1]); p.hasCodes && code != 0 {
		if p.lib.class(code) == errTruncate {
			return fmt.Errorf("mpi: rank %d has sent more than %d bytes, which were to be received", op.peer, len(op.mem))
		}
		return op.failed(p.lib.error(op.fn(), code))
	}
	if op.isSend {
		return nil
	}
	if err := p.lib.call(getCount, p.statusesAt+uintptr(8*statusWords*i), typeByte, p.countAt); err != nil {
		return op.failed(err)
	}
	return lengthError(op, int(p.count[0]))
}

// compact removes the requests that have ended from the first n.
func (p *polls) compact(n int) {
	left := p.requests[:0]
	for _, r := range p.requests[:n] {
		if r != requestNull {
			left = append(left, r)
		}
	}
}
