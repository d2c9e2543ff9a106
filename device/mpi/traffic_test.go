package mpi

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
)

func init() { programs["traffic"] = traffic }

// A plan is the messages from one rank to another, which both know.
type plan struct {
	random *rand.Rand
	seed   uint64
	number uint64 // of the message
}

func newPlan(seed uint64, from, to int) *plan {
	seed = seed<<16 ^ uint64(from)<<8 ^ uint64(to)
	return &plan{random: rand.New(rand.NewPCG(seed, 1)), seed: seed}
}

// next returns the length of the next message, from 0 B to 8 MiB, and the seed of its contents.
func (p *plan) next() (length int, contents uint64) {
	p.number++
	contents = p.seed<<32 | p.number
	if p.random.IntN(8) == 0 {
		return p.random.IntN(3), contents
	}
	return int(math.Exp2(p.random.Float64() * 23)), contents
}

// words calls f with each eight bytes of mem, the last ones padded, and what they should be.
func words(mem []byte, contents uint64, f func(at []byte, want uint64)) {
	for ; len(mem) > 0; mem = mem[min(8, len(mem)):] {
		contents = contents*6364136223846793005 + 1442695040888963407
		f(mem[:min(8, len(mem))], contents^contents>>29)
	}
}

func fill(mem []byte, contents uint64) {
	words(mem, contents, func(at []byte, want uint64) {
		var w [8]byte
		binary.LittleEndian.PutUint64(w[:], want)
		copy(at, w[:])
	})
}

func check(mem []byte, contents uint64) error {
	var err error
	words(mem, contents, func(at []byte, want uint64) {
		var w [8]byte
		copy(w[:], at)
		if got := binary.LittleEndian.Uint64(w[:]); got != want<<(64-8*len(at))>>(64-8*len(at)) && err == nil {
			err = fmt.Errorf("a message of %d bytes has other contents", len(mem))
		}
	})
	return err
}

// traffic has all ranks send random messages to all, at once, in any order but that of each pair. Arguments: the seed,
// how many messages from each rank to each, and on which of them some rank kills itself, if any: rank and number of the
// operation.
func traffic(t *Transport, args []string) error {
	seed, _ := strconv.ParseUint(args[0], 10, 64)
	messages, _ := strconv.Atoi(args[1])
	victim, when := -1, 0
	if len(args) > 2 {
		victim, _ = strconv.Atoi(args[2])
		when, _ = strconv.Atoi(args[3])
	}
	r := runner{t: t}
	if t.Rank() == victim {
		r.dies = when
	}
	var callers sync.WaitGroup
	for _, isSend := range []bool{true, false} {
		callers.Go(func() { r.each(seed, messages, isSend) })
	}
	callers.Wait()
	r.left.Wait()
	if t.Rank() == 0 {
		fmt.Println(received())
	}
	return errors.Join(r.errs...)
}

// A runner makes the messages of one rank.
type runner struct {
	t *Transport

	mu    sync.Mutex // guards the rest
	errs  []error
	dies  int // the process kills itself at this operation; 0: at none
	begun int
	left  sync.WaitGroup
}

// each begins the sends or the receives of this rank.
func (r *runner) each(seed uint64, messages int, isSend bool) {
	var plans []*plan
	var open []int
	for rank := range r.t.Size() {
		from, to := r.t.Rank(), rank
		if !isSend {
			from, to = to, from
		}
		plans = append(plans, newPlan(seed, from, to))
		for range messages {
			open = append(open, rank)
		}
	}
	order := rand.New(rand.NewPCG(seed, uint64(r.t.Rank())))
	order.Shuffle(len(open), func(i, j int) { open[i], open[j] = open[j], open[i] })
	for _, rank := range open {
		length, contents := plans[rank].next()
		r.one(isSend, rank, length, contents)
	}
}

func (r *runner) one(isSend bool, rank, length int, contents uint64) {
	mem, free := bytesOf(length)
	r.mu.Lock()
	if r.begun++; r.begun == r.dies {
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			self.Kill()
		}
		select {}
	}
	r.mu.Unlock()
	r.left.Add(1)
	if isSend {
		fill(mem, contents)
		r.t.Send(rank, mem, func(err error) {
			defer r.left.Done()
			free()
			r.note(err)
		})
		return
	}
	r.t.Receive(rank, mem, func(err error) {
		go func() {
			defer r.left.Done()
			if err == nil {
				err = check(mem, contents)
			}
			free()
			r.note(err)
		}()
	})
}

func (r *runner) note(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, err)
}

// received returns how many bytes have come through the loopback of this network namespace.
func received() string {
	text, _ := os.ReadFile("/proc/net/dev")
	_, text, _ = bytes.Cut(text, []byte("lo:"))
	return strings.Fields(string(text) + " 0")[0]
}
