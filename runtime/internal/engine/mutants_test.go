package engine

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Mutants are engines with a deliberate mistake. How many of them the tests find shows what the tests
// are worth:
//
//	go test -run Mutants -mutants . -timeout 1h -v
//
// builds each of them, in a temporary folder, and runs the random programs and, apart from those, the other tests.

var (
	mutantsFlag    = flag.String("mutants", "", "build and test the mutants whose names match this; empty: none")
	mutantPrograms = flag.Int("mutant-programs", 20_000, "number of random programs that a mutant has to survive")
	mutantTime     = flag.Duration("mutant-time", 2*time.Minute, "how long to look with random programs; the other tests hang when they take so long")
	mutantTests    = flag.Bool("mutant-tests", true, "run the other tests, too; else those that survive the random programs")
)

// A mutant replaces a text that occurs exactly once in one file of the engine.
type mutant struct {
	name, file, old, new string
}

var mutants = []mutant{
	// Dependencies of operations.
	{"a reader does not wait for the writer", "flow.go",
		"if s.writer == 0 {\n\t\t\t\ts.readers++", "if true {\n\t\t\t\ts.readers++"},
	{"a reader of many does not wait for the writer", "flow.go",
		"if s.writer == 0 {\n\t\t\ts.readers++", "if true {\n\t\t\ts.readers++"},
	{"a reader of many does not count", "flow.go",
		"for _, s := range r.more {\n\t\tf.finishRead(s)", "for range r.more {"},
	{"a waiter does not help with what is among many", "wait.go",
		"s.mark = max(s.mark, f.marks)", "_ = s"},
	{"many are not looked at for failures", "stream.go",
		"for _, s := range r.more {\n\t\tif err :=", "for _, s := range r.more[:0] {\n\t\tif err :="},
	{"many are not read by what was handed over", "queue.go",
		"for _, s := range r.more {\n\t\ts.readers", "for _, s := range r.more[:0] {\n\t\ts.readers"},
	{"a writer does not wait for readers", "flow.go",
		"} else if s.readers > 0 {", "} else if false {"},
	{"a writer does not wait for the writer before", "flow.go",
		"f.st.at(s.writer).setHeir(s, self)\n\t\t\t\tr.waits++", "_ = self"},
	{"a writer that waits for a writer does not wait for its readers", "flow.go",
		"if s.readers == 0 {\n\t\tf.release(heir)", "if true {\n\t\tf.release(heir)"},
	{"the first of several readers lets the writer go", "flow.go",
		"s.readers == 0 && heir != 0", "heir != 0"},
	{"an operation waits for itself", "flow.go",
		"reads &^= 1 << i", "_ = i"},
	{"a storage that is written twice by an operation is ordered twice", "flow.go",
		"if !r.among(writes, s) {", "if true {"},
	{"a writer that has finished is still waited for", "flow.go",
		"if s.writer == x {", "if false {"},
	{"a waiter does not run readers of what is overwritten", "wait.go",
		"|| r.reads>>i&1 != 0 && s.mark == f.marks+1", ""},

	// Runs of plans.
	{"what uses an output of a run does not wait", "flow.go",
		"nobody writes or reads them yet\n\t\t\ts.writer = self", "nobody writes or reads them yet\n\t\t\t_ = s"},
	{"a run does not wait for its sources", "run.go",
		"e.admit(p.bytes, &op, pc)", "op.Reads = nil\n\te.admit(p.bytes, &op, pc)"},
	{"contents of a run overlap", "plan.go",
		"s.size = at + bytes", "s.size = at + bytes/2"},

	// Operations that calls compute.
	{"a call computes what is to be computed past a test", "tiny.go",
		"e.guesses.n.Load() != 0 || ", ""},
	{"a call computes what somebody records", "tiny.go",
		"e.watcher.on.Load() || ", ""},
	{"a call computes after Close", "tiny.go",
		"e.closed.Load() || ", ""},
	{"a call computes in a scope that has ended", "tiny.go",
		"s != nil && s.Err() != nil", "s != nil && false"},
	{"a call computes what is not there", "tiny.go",
		"s.fin.Load() < s.last.Load() || ", ""},
	{"a call computes with what is spoiled", "tiny.go",
		"s.err.Load() != nil || ", ""},
	{"a call writes what others may still use", "tiny.go",
		"s.own.Ptr != nil && s.last.Load() == 0 && s.own.Handle == nil", "s.own.Ptr != nil"},
	{"a call forgets the second result", "tiny.go",
		"op.Writes > 1 || ", ""},
	{"a failure in a call is forgotten", "tiny.go",
		"return err == nil", "return err == nil || true"},
	{"a call leaves its operands to the next", "tiny.go",
		"\t\t\tc.Buf[i] = &d.own[i]\n\t\t}\n\t}\n\treturn", "\t\t\t_ = i\n\t\t}\n\t}\n\treturn"},

	// The ring.
	{"the ring takes one operation too many", "stream.go",
		"st.room = st.done.Load() + uint64(st.capacity())", "st.room = st.done.Load() + uint64(st.capacity()) + 1"},
	{"what has finished is looked for past the end", "flow.go",
		"for f.head < f.scheduled && f.st.seq(f.head).state == finished {", "for f.st.seq(f.head).state == finished {"},
	{"places are taken for those of one turn of the ring", "flow.go",
		"return f.head + (uint64(x-1)-f.head)&f.st.mask", "return f.head&^f.st.mask + uint64(x-1)"},
	{"operations retire in the order in which they finish", "flow.go",
		"f.st.seq(f.head).state == finished {\n\t\tf.head++", "r.state == finished {\n\t\tf.head++\n\t\tr.state = running"},
	{"what a record refers to stays there", "stream.go",
		"r.operands = [device.MaxOperands]*Storage{}", "_ = r"},
	{"a record keeps its guess", "stream.go",
		"r.args, r.scope, r.link, r.guess, r.refused, r.fail = nil, nil, nil, nil, nil, nil",
		"r.args, r.scope, r.link, r.refused, r.fail = nil, nil, nil, nil, nil"},

	// Readiness, and who is woken.
	{"a wait is over one operation early", "stream.go",
		"s.st == st {\n\t\t\t\ts.last.Store(seq + 1)", "s.st == st {\n\t\t\t\ts.last.Store(seq)"},
	{"a storage is ready though a writer is to come", "storage.go",
		"s.fin.Store(seq + 1)", "s.fin.Store(seq + 2)"},
	{"a waiter is not woken when its goal is reached", "wait.go",
		"if away || f.reached(w) || f.needed(w) != 0 ||", "if away || f.needed(w) != 0 ||"},
	{"a waiter that leaves wakes nobody", "wait.go",
		"\tf.notify() // another waiter may wait for what this one did last\n", ""},
	{"a token stays for the next waiter", "park.go",
		"\t\t\t<-p.c // it was just woken\n", ""},
	{"who has gone to sleep on a channel is not woken", "park.go",
		"p.c <- struct{}{} // never blocks", "// never blocks"},
	{"who has gone to sleep in the kernel is not woken", "park.go",
		"\t\tfutexWake(&p.state)\n", ""},
	{"a worker does not look once more before it sleeps", "worker.go",
		"if has && w.parker.withdraw() {", "if has = false; has {"},
	{"a worker that is about to sleep does not look for loops", "worker.go",
		" || w.helpsPool() && pool.Wanted()\n", "\n"},
	{"a worker does not help the pool", "worker.go",
		"\t\t\tfor pool.Help() {\n\t\t\t}\n", ""},
	{"a waiter does not help the pool", "wait.go",
		"\t\t\tcase pool.Help():\n\t\t\t\tlooks = 0\n", ""},
	{"who has ended is not started again", "park.go",
		"\tcase dormant:\n\t\tp.start()\n", ""},
	{"nobody looks for workers that have ended", "worker.go",
		"inKernel, onChannel, dormant}", "inKernel, onChannel}"},
	{"a bell that has been rung is not heard", "queue.go",
		"if !b.rung.Load() || !b.parker.withdraw() {", "if true {"},
	{"stalled producers are not woken by a flow", "flow.go",
		"f.rouse = f.rouse || stalled", "f.rouse = false"},
	{"stalled producers are not woken by a queue", "queue.go",
		"\tq.rouse = true\n", ""},
	{"a mark is reached one operation late", "mark.go",
		"if s.next == 0 || done < s.next {", "if s.next == 0 || done <= s.next {"},
	{"a mark is reached early", "mark.go",
		"if ends[i] <= done {", "if ends[i] <= done+1 {"},
	{"only the first operation of a scope is waited for", "scope.go",
		"seq, ok = st.exec.nextOf(s, seq+1, ends[i])", "ok = false"},
	{"the place of a copy on another stream is in no scope", "stream.go",
		"r.scope = l.scope //", "r.scope = nil //"},

	// Bounds.
	{"bytes stay in flight", "flow.go",
		"f.freed += r.bytes", "f.freed += r.bytes / 2"},
	{"bytes of a queue stay in flight", "queue.go",
		"freed += r.bytes\n", "freed += r.bytes / 16 * 8\n"},
	{"nobody is woken at the end of a bulk", "bulk.go",
		"if st.collect() {", "if st.collect() && false {"},
	{"somebody is woken in a bulk", "bulk.go",
		"|| st.e.bulks.Load() > 0", ""},
	{"the bound is exceeded by an operation", "bounds.go",
		"limit != 0 && sum > limit && now != 0", "limit != 0 && now > limit"},
	{"an operation larger than the bound waits forever", "bounds.go",
		"return limit == 0 || used == 0 || used+bytes <= limit", "return limit == 0 || used+bytes <= limit"},

	// Streams and copies.
	{"an operation does not wait for its gate", "flow.go",
		"if r.link != nil && !r.isGate && !r.link.granted.Load() {", "if false {"},
	{"a queue does not wait for a gate", "link.go",
		"return !r.link.granted.Load()", "return false"},
	{"what is behind a gate is handed over before the copy", "link.go",
		"return !r.link.handed.Load()", "return false"},
	{"a copy counts as handed over before it is", "queue.go",
		"\tq.look(min(enqueued, end+lookBeyond))\n", "\tq.look(min(enqueued, end+lookBeyond))\n\tfor seq := first; seq < end; seq++ {\n\t\tif r := q.st.seq(seq); r.link != nil && !r.isGate {\n\t\t\tr.link.handedOver()\n\t\t}\n\t}\n"},
	{"a copy that is withdrawn keeps what is behind its gate for ever", "queue.go",
		"if r := q.st.seq(seq); r.link != nil && !r.isGate {", "if r := q.st.seq(seq); r.link != nil && !r.isGate && !r.skipped {"},
	{"a gate on a queue retires before the copy", "link.go",
		"return r.isGate && !r.link.ended.Load()", "return false"},
	{"a gate retires before the copy if its device is lost", "link.go",
		"return r.isGate && !r.link.ended.Load()", "return r.isGate && !r.link.ended.Load() && r.link.gate.lost.Load() == nil"},
	{"a gate retires when the copy has been handed over", "link.go",
		"return r.isGate && !r.link.ended.Load()", "return r.isGate && !r.link.handed.Load()"},
	{"who needs memory does not wait for what is copied to there", "queue.go",
		"if !gate.op.queue().finishThrough(gate.opSeq.Load() - 1) {", "if true {"},
	{"a gate on a queue forgets how the copy has ended", "queue.go",
		"r.fail = r.link.fail", "_ = r"},
	{"a copy to another device takes memory that this may still use", "memory.go",
		"&& !isForeign && s.st.spares.take(s)", "&& s.st.spares.take(s)"},
	{"the loss of the other device is one's own", "errors.go",
		"return peer.st.lose(r, seq, peer.err)", "return st.lose(r, seq, peer.err)"},
	{"a gate lets whoever is in the place go", "link.go",
		"if r := f.st.seq(at - 1); r.linked && r.link == l {", "if r := f.st.seq(at - 1); r.waits > 0 {"},
	{"a gate forgets how the operation has ended", "link.go",
		"r.fail = l.fail", "_ = r"},
	{"a queue does not say how a copy has ended", "queue.go",
		"\t\tr.link.fail = r.fail\n", ""},
	{"the ends of links are not in the same order everywhere", "link.go",
		"\te.crossing.lock()\n\tforeign.st.push(&gate, access, pc, 0, l, nil)\n\tst.push(op, 1, pc, bytes, l, e.guess())\n\te.crossing.unlock()",
		"\tforeign.st.push(&gate, access, pc, 0, l, nil)\n\tst.push(op, 1, pc, bytes, l, e.guess())"},
	{"a copy between devices skips twice", "relay.go",
		"Off: [device.MaxOperands]int{at}", "Off: [device.MaxOperands]int{off + at}"},
	{"the parts of a copy all go to the same place", "relay.go",
		"Off: [device.MaxOperands]int{at}", "Off: [device.MaxOperands]int{}"},
	{"the last part of a copy decides whether it has failed", "relay.go",
		"up.Operands[2], bytes = dst, 0", "bytes = 0"},
	{"the parts of a copy take memory without end", "relay.go",
		"if *through == nil {", "if true {"},
	{"a copy holds its place on the other stream like a read", "link.go",
		"foreign.st.push(&gate, access, pc, 0, l, nil)", "foreign.st.push(&gate, 0, pc, 0, l, nil)"},

	// Queues.
	{"a queue retires what is not done", "queue.go",
		"case q.st.backend.Done(r.ticket):", "case r.ticket != 0 || q.st.backend.Done(r.ticket):"},
	{"tickets are those of the command before", "queue.go",
		"\t\t\tif !r.skipped {\n\t\t\t\tt++\n\t\t\t}\n\t\t\tr.ticket = t\n", "\t\t\tr.ticket = t\n\t\t\tif !r.skipped {\n\t\t\t\tt++\n\t\t\t}\n"},
	{"a failure on a device with a queue is overlooked", "queue.go",
		"if err := q.st.backend.Failure(r.ticket); err != nil {", "if err := q.st.backend.Failure(r.ticket + 1); err != nil {"},
	{"what a device has refused is overlooked", "queue.go",
		"\t\t\tr.refused = err\n\t\t}\n\t\tr.ticket = last", "\t\t}\n\t\tr.ticket = last"},

	// Errors.
	{"a failure does not spoil what depends on it", "stream.go",
		"if err := s.err.Load(); err != nil {\n\t\t\t\treturn err", "if err := s.err.Load(); err != nil && i > 1 {\n\t\t\t\treturn err"},
	{"the last cause replaces the first", "stream.go",
		"for i, s := range r.operands {\n\t\tif s != nil && r.writes>>i&1 == 0 {\n\t\t\tif err := s.err.Load()",
		"for i := len(r.operands) - 1; i >= 0; i-- {\n\t\ts := r.operands[i]\n\t\tif s != nil && r.writes>>i&1 == 0 {\n\t\t\tif err := s.err.Load()"},
	{"an end of the scope hides the first cause", "stream.go",
		"if e := r.spoiled(); e != nil || r.guess == nil && r.scope == nil {", "if e := r.spoiled(); r.guess == nil && r.scope == nil || e != nil && r.cancelled() == nil {"},
	{"writing does not heal", "storage.go",
		"if s.err.Load() != fail {", "if fail != nil {"},
	{"only the first output of a failed operation is spoiled", "stream.go",
		"if s != nil && r.writes>>i&1 != 0 && s.st == st {\n\t\t\ts.finished(seq, r.fail)",
		"if s != nil && r.writes>>i&1 != 0 && s.st == st {\n\t\t\tif i > 0 {\n\t\t\t\tr.fail = nil\n\t\t\t}\n\t\t\ts.finished(seq, r.fail)"},
	{"failures are returned twice", "errors.go",
		"\t\t\tdelete(r.of, of)\n", ""},
	{"failures are returned in no order", "errors.go",
		"\tslices.SortStableFunc(all, root.compare)\n", ""},
	{"streams have no order among them", "engine.go",
		"next := (now>>16+1)<<16 | uint64(st.id)", "next := uint64(st.id)"},
	{"failures past the first thousand are not counted", "errors.go",
		"more += len(all) - maxRoots", "more += 0"},
	{"a scope gets the failures of others", "errors.go",
		"of != nil && of.Within(s)", "of != nil"},
	{"the end of a scope is no error of it", "errors.go",
		"\t\terrs = append(errs, s.Err())\n", ""},
	{"an error names the line of the operation that had the place before", "stream.go",
		"r.pc, r.cost, r.writes = pc,", "if r.pc == 0 {\n\t\tr.pc = pc\n\t}\n\tr.pc, r.cost, r.writes = r.pc,"},
	{"of several storages the last error counts", "storage.go",
		"if err == nil {\n\t\t\terr = s.Err()", "if more := s.Err(); more != nil {\n\t\t\terr = more"},

	// Scopes and guesses.
	{"operations begin after the end of their scope", "stream.go",
		"return r.scope.Err()", "return nil"},
	{"discarded operations begin", "stream.go",
		"if r.guess.isDiscarded() {", "if r.guess.isDiscarded() && r.n < 0 {"},
	{"what is part of a discarded guess is wanted", "guess.go",
		"for ; g != nil; g = g.outer {\n\t\tif g.state.Load() == discarded {", "for ; g != nil; g = nil {\n\t\tif g.state.Load() == discarded {"},
	{"failures are kept although the outer guess is not", "guess.go",
		"g.outer.failed(st, s, f.list, f.more)", "st.roots.add(s, f.list, f.more)"},
	{"failures of a guess are everybody's", "guess.go",
		"if state := g.hold(st, s, list, more); state != kept {", "if state := g.hold(st, s, list, more); state == discarded {"},
	{"a guess is everybody's", "guess.go",
		"return e.guesses.get(self()).g", "e.guesses.mu.RLock()\n\tdefer e.guesses.mu.RUnlock()\n\tfor _, x := range e.guesses.of {\n\t\treturn x.g\n\t}\n\treturn nil"},
	{"the end of a speculation ends the outer one", "guess.go",
		"func (s *Speculation) End() { s.e.guesses.set(s.owner, s.outer()) }", "func (s *Speculation) End() { s.e.guesses.set(s.owner, guessing{}) }"},
	{"a guess goes on after its end", "guess.go",
		"func (s *Speculation) End() { s.e.guesses.set(s.owner, s.outer()) }", "func (s *Speculation) End() {}"},

	// Memory.
	{"memory is released when a device is given what uses it", "queue.go",
		"q.st.spares.put(r.operands[0], next)", "r.operands[0].drop()"},
	{"a buffer that has changed hands does so again", "spare.go",
		"sp.of[s.own.Bytes] = list[:len(list)-1]", "list[len(list)-1] = spare{s.buf, s.block, 0}"},
	{"memory is released beside what uses it", "memory.go",
		"s.st.push(&op, 1, 0, 0, nil, nil)", "s.st.push(&op, 0, 0, 0, nil, nil)"},
	{"memory that was released can be used", "memory.go",
		"s.buf, s.own.Handle = nil, errUsed", "s.own.Handle = nil"},
	{"memory is given back twice", "memory.go",
		"if b.freed.CompareAndSwap(false, true) {", "if b.freed.CompareAndSwap(false, true) || b.buf.Bytes > 0 {"},
	{"memory is never released", "memory.go",
		"runtime.AddCleanup(buf, (*block).free, s.block)", "runtime.AddCleanup(buf, func(*block) {}, s.block)"},
	{"memory is given back while there is a holder", "hold.go",
		"s.more.Add(-1) < 0", "s.more.Add(-1) <= 0"},
	{"what a discarded guess has let go is gone", "hold.go",
		"case undecided:\n\t\tg.letGoes = append(g.letGoes, s)", "case undecided:\n\t\treturn false"},
	{"what was there before a guess is taken for new", "hold.go",
		"s.last.Load() > g.began[i]", "s.last.Load() >= g.began[i]"},

	// Donated memory.
	{"an input that was not released gives its memory", "donate.go",
		"s.heir != 0 && st.at(s.heir).isRelease() &&", ""},
	{"an input that is to be overwritten gives its memory", "donate.go",
		"&& st.at(s.heir).isRelease()", ""},
	{"an input that others read gives its memory", "donate.go",
		"&& r.isLastUser(s)", ""},
	{"an input of another size gives its memory", "donate.go",
		"if s.own.Bytes != r.operands[0].own.Bytes {", "if false {"},
	{"an input that is read from another place on gives its memory", "donate.go",
		"r.off[i] != r.off[0] ||", ""},
	{"an input that is read in another order gives its memory", "donate.go",
		"|| r.args != nil && r.args.Strides[i] != nil", ""},
	{"an input gives its memory if it is read in place once", "donate.go",
		"r.args.Strides[i] != nil:\n\t\t\treturn false\n", "r.args.Strides[i] != nil:\n\t\t\treturn false\n\t\tdefault:\n\t\t\treturn true\n"},
	{"an input gives its memory whatever is computed", "donate.go",
		"r.kernel.Code != device.Map ||", "r.kernel.Code == device.Fill ||"},
	{"an input gives its memory to the first of two results", "donate.go",
		"|| r.writes != 1", ""},
	{"memory that was given is given back too", "donate.go",
		"\tdonor.block = nil\n", ""},
	{"a queue overlooks who writes an input", "queue.go",
		"for _, s := range r.operands {\n\t\tif s != nil && s.st == st {", "for i, s := range r.operands {\n\t\tif s != nil && s.st == st && r.writes>>i&1 == 0 {"},
	{"a queue overlooks whom it has counted", "queue.go",
		"taken += r.taken()\n\t\tr.countUses(q.st, -1)", "taken += r.taken()"},

	// Modes.
	{"naive: a failure does not spoil what depends on it", "naive.go",
		"if r.fail = st.skips(r); r.fail == nil && st.lost", "if st.skips(r); r.fail == nil && st.lost"},
	{"naive: failures of guesses are everybody's", "naive.go",
		"r.order, r.guess = e.order(st), e.guess()", "r.order = e.order(st)"},
	{"naive: a failure on a device with a queue is overlooked", "naive.go",
		"return st.backend.Failure(t)", "return nil"},
	{"shuffle: a wait for a queue is over one operation early", "shuffle.go",
		"return q.st.done.Load() > g.seq", "return q.st.done.Load() >= g.seq"},
	{"shuffle: an operation of the flow runs twice", "shuffle.go",
		"\theld := f.step(x, &f.scratch, p)\n", "\tf.run(x, &f.scratch, p)\n\theld := f.step(x, &f.scratch, p)\n"},

	// Bubbles.
	{"who looks for a lock in a bubble sleeps by its time", "spin.go",
		"\t\tbubble.Sleep(backoffSleep)", "\t\tif bubble.In() {\n\t\t\ttime.Sleep(backoffSleep)\n\t\t}"},
	{"who waits for somebody in the engine's own bubble keeps its time from passing", "spin.go",
		"case i < looksToSleep || !e.onChannels():", "case true:"},

	// Counts and waiting.
	{"a mark is reached before an earlier one", "mark.go",
		"\t\t\tm.skip(s.last)", "\t\t\tm.skip(0)"},
	{"a release counts as an operation", "flow.go",
		"case r.isGate, r.isRelease():", "case r.isGate:"},
	{"a wait that is forbidden waits", "wait.go",
		"\tif err := e.allow(name, pc); err != nil {\n\t\treturn err\n\t}\n\tstart := now()\n", "\tstart := now()\n"},
	{"waiting for several is not forbidden", "storage.go",
		"if err := s.st.e.allow(name, pc); err != nil {", "if err := s.st.e.allow(name, pc); err != nil && name == \"\" {"},
	{"what is recorded writes its output alone", "stats.go",
		"Device: op.Operands[0].Device(), Writes: writes}", "Device: op.Operands[0].Device(), Writes: 1}"},
	{"a wait does not end with its context", "park.go",
		"\t\tcase <-done:\n", "\t\tcase <-make(chan int):\n"},
	{"a wait that was cut short takes the failures", "wait.go",
		"if err := e.finish(ctx, streams, ends, name, pc); err != nil {\n\t\treturn err", "if err := e.finish(ctx, streams, ends, name, pc); err != nil {\n\t\tjoinRoots(streams, nil)\n\t\treturn err"},

	// Traces.
	{"an operation reads itself, in the trace", "stream.go",
		"\t\tif s := st.slips.Load(); s != nil {\n\t\t\ts.note(st, r, seq)\n\t\t}\n", "\t\tif s := st.slips.Load(); s != nil {\n\t\t\tdefer s.note(st, r, seq)\n\t\t}\n"},
	{"gates are operations in the trace", "trace.go", "if r.isGate || r.isRelease() {", "if r.isRelease() {"},
	{"releases are operations in the trace", "trace.go", "if r.isGate || r.isRelease() {", "if r.isGate {"},
	{"a trace forgets what a device does when it has nothing to do", "trace.go", "w.busy = len(list) > 0", "_ = 0"},
	{"a device computes two at once in the trace", "trace.go", "max(h.ev.Begin, w.last)", "h.ev.Begin"},
	{"one goroutine enqueues all in the trace", "trace.go", "x.By = uint64(self())", "x.By = 1"},
	{"a wait ends in the trace when it is written", "trace.go", "Begin: s.begin, End: s.end, PC", "Begin: e.now() - s.took(), End: e.now(), PC"},
	{"stalls are waits in the trace", "stats.go", "e.noteWait(trace.Stall,", "e.noteWait(trace.Wait,"},
}

// apply returns the text of m's file with the mistake in it.
func (m *mutant) apply() (string, error) {
	src, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	text := strings.ReplaceAll(string(src), "\r\n", "\n")
	if n := strings.Count(text, m.old); n != 1 {
		return "", fmt.Errorf("the text to be replaced stands in %s %d times:\n%s", m.file, n, m.old)
	}
	return strings.Replace(text, m.old, m.new, 1), nil
}

// Each mutant can be built: the text to be replaced occurs exactly once in its file.
func TestMutantsApply(t *testing.T) {
	names := map[string]bool{}
	for _, m := range mutants {
		if _, err := m.apply(); err != nil {
			t.Errorf("mutant %q: %v", m.name, err)
		}
		if names[m.name] {
			t.Errorf("there are two mutants %q", m.name)
		}
		names[m.name] = true
	}
}

// TestMutants builds the mutants that -mutants names, and checks that random programs or other tests find
// each of them.
func TestMutants(t *testing.T) {
	if *mutantsFlag == "" {
		t.Skip("it takes minutes: ask for mutants with -mutants REGEXP")
	}
	wanted, err := regexp.Compile(*mutantsFlag)
	if err != nil {
		t.Fatal(err)
	}
	// Without a mistake the tests must find nothing.
	none := mutant{name: "none", file: "engine.go", old: "package engine\n", new: "package engine\n\n"}
	if bin, err := none.build(t); err != nil {
		t.Fatal(err)
	} else if programs, others := searchPrograms(bin), searchTests(bin); programs != survived || others != survived {
		t.Fatalf("without a mistake: random programs %s, other tests %s", programs, others)
	}
	var table strings.Builder
	n, byPrograms, byTests := 0, 0, 0
	for _, m := range mutants {
		if !wanted.MatchString(m.name) {
			continue
		}
		n++
		bin, err := m.build(t)
		if err != nil {
			t.Errorf("mutant %q: %v", m.name, err)
			continue
		}
		programs, others := searchPrograms(bin), notRun
		if *mutantTests || programs == survived {
			others = searchTests(bin)
		}
		os.Remove(bin)
		line := fmt.Sprintf("%-75s %-22s %s", m.name, programs, others)
		t.Log(line)
		fmt.Fprintln(&table, line)
		if programs != survived {
			byPrograms++
		}
		if others != survived && others != notRun {
			byTests++
		}
		if programs == survived && others == survived {
			t.Errorf("mutant %q has survived", m.name)
		}
	}
	t.Logf("%d mutants; random programs have found %d, other tests %d\n%-75s %-22s %s\n%s",
		n, byPrograms, byTests, "mutant", "random programs", "other tests", &table)
}

const (
	survived = "-"
	notRun   = "not run"
)

// build returns the package's test binary with the mistake in it.
func (m *mutant) build(t *testing.T) (string, error) {
	text, err := m.apply()
	if err != nil {
		return "", err
	}
	dir := t.TempDir()
	file, overlay, bin := filepath.Join(dir, m.file), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "mutant.exe")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return "", err
	}
	original, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{original: file}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(overlay, list, 0o600); err != nil {
		return "", err
	}
	if out, err := exec.Command("go", "test", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-c", "-o", bin, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("it can't be built: %v\n%s", err, out)
	}
	return bin, nil
}

var (
	programNumber = regexp.MustCompile(`program (\d+)(:| hangs)`)
	crash         = regexp.MustCompile(`(?m)^(panic|fatal error): (.*)$`)
	firstSeed     = regexp.MustCompile(`(?m)seed (\d+)$`)
)

// searchPrograms runs random programs with a mutant. It returns after how many the mutant was found, or
// that it survived.
func searchPrograms(bin string) string {
	out, err := runMutant(bin, "-test.run=^TestRandomPrograms$", "-test.v", "-hang=15s", "-programs="+strconv.Itoa(*mutantPrograms))
	if err == nil || errors.Is(err, context.DeadlineExceeded) {
		return survived
	}
	how := ""
	if strings.Contains(out, " hangs") {
		how = ", a hang"
	}
	if all := programNumber.FindAllStringSubmatch(out, -1); all != nil {
		n, err := strconv.ParseUint(all[len(all)-1][1], 10, 64)
		if first := firstSeed.FindStringSubmatch(out); how != "" && first != nil { // it names the seed
			seed, _ := strconv.ParseUint(first[1], 10, 64)
			n -= seed
		}
		if err == nil {
			return fmt.Sprint("after ", n+1, how)
		}
	}
	if what := crash.FindStringSubmatch(out); what != nil {
		return "a crash: " + what[2][:min(len(what[2]), 40)]
	}
	return fmt.Sprint("a crash: ", err)
}

var failedTest = regexp.MustCompile(`--- FAIL: (\S+)`)

// searchTests runs the other tests with a mutant. It returns the first one that found the mutant, or that
// it survived.
func searchTests(bin string) string {
	out, err := runMutant(bin, "-test.skip=^(TestRandomPrograms.*|TestMutants.*)$", "-test.failfast")
	if err == nil {
		return survived
	}
	if name := failedTest.FindStringSubmatch(out); name != nil {
		return name[1]
	}
	return "a crash or a hang"
}

// runMutant runs tests of a mutant. The error is context.DeadlineExceeded if they took too long.
func runMutant(bin string, args ...string) (out string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), *mutantTime)
	defer cancel()
	text, err := exec.CommandContext(ctx, bin, append(args, "-test.timeout=0")...).CombinedOutput()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return string(text[:min(len(text), 1<<20)]), err
}
