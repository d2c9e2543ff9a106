package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/pprof"
	rtrace "runtime/trace"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/internal/trace"
)

// A traceEvent is an event as a viewer reads it.
type traceEvent struct {
	Ph, Cat, Name string
	Ts, Dur       float64
	Tid           uint64
	Args          struct {
		ID, For, Gate, Result, At string
		Enqueued                  float64
		Idle                      float64
		By                        uint64
		Reads                     []string
		Skipped                   bool
		Bytes                     int64
	}
}

func (ev *traceEvent) end() float64 { return ev.Ts + ev.Dur }

// readTrace returns the operations of a trace, by all of their IDs, and its other events.
func readTrace(text []byte) (ops map[string]*traceEvent, others []*traceEvent, err error) {
	var all []*traceEvent
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, nil, fmt.Errorf("%w in %s", err, text)
	}
	ops = map[string]*traceEvent{}
	for _, ev := range all {
		if ev.Cat != "op" {
			others = append(others, ev)
			continue
		}
		for _, id := range []string{ev.Args.ID, ev.Args.Gate} {
			if id != "" && ops[id] != nil {
				return nil, nil, fmt.Errorf("operation %s comes twice", id)
			} else if id != "" {
				ops[id] = ev
			}
		}
	}
	return ops, others, nil
}

// slack is for times that were rounded: a nanosecond, in microseconds.
const slack = 0.0015

// sameTrace compares the trace of a program with what e has counted since before, and with the rules that operations
// follow: each is there once, none begins before it was enqueued, or before what it reads has ended, and nobody
// executes two at once, unless the first lacks memory and has others run before it. The end of what a device with a
// queue computes is seen late, so others may begin before.
func sameTrace(text []byte, e *Engine, before, after Stats) error {
	ops, others, err := readTrace(text)
	if err != nil {
		return err
	}
	rows := map[uint64][]*traceEvent{}
	n := uint64(0)
	for id, ev := range ops {
		if id != ev.Args.ID {
			continue
		}
		n++
		rows[ev.Tid] = append(rows[ev.Tid], ev)
		if ev.Dur < 0 || ev.Ts < ev.Args.Enqueued-slack {
			return fmt.Errorf("%+v was enqueued at %v", ev, ev.Args.Enqueued)
		}
		for _, read := range ev.Args.Reads {
			if first := ops[read]; first != nil && first.Tid < rowOfDevice && first.end() > ev.Ts+slack {
				return fmt.Errorf("%+v began before %+v ended", ev, first)
			}
		}
	}
	if want := after.Enqueued - before.Enqueued; n != want {
		return fmt.Errorf("%d operations, want %d", n, want)
	}
	for row, list := range rows {
		slices.SortFunc(list, func(a, b *traceEvent) int { return cmpTimes(a.Ts, b.Ts, b.end(), a.end()) })
		var runs []*traceEvent // each within the one before it
		for _, ev := range list {
			for len(runs) > 0 && runs[len(runs)-1].end() <= ev.Ts+slack {
				runs = runs[:len(runs)-1]
			}
			if n := len(runs); n > 0 && runs[n-1].end() < ev.end()-slack {
				return fmt.Errorf("in row %d, %+v began while %+v ran", row, ev, runs[n-1])
			}
			runs = append(runs, ev)
		}
	}
	var waits, stalls int64
	var waited, stalled float64
	for _, ev := range others {
		switch ev.Cat {
		case "wait":
			waits++
			waited += ev.Args.Idle
			if op := ops[ev.Args.For]; ev.Name != "cancelled" && op != nil && op.Tid < rowOfDevice && op.Ts > ev.end()+slack {
				return fmt.Errorf("%+v ended before %+v began", ev, op)
			}
		case "stall":
			stalls++
			stalled += ev.Args.Idle
		}
	}
	idle := func(d time.Duration) float64 { return float64(d) / 1000 }
	if w := after.Waits - before.Waits; waits != w || !near(waited, idle(after.WaitTime-before.WaitTime), w) {
		return fmt.Errorf("%d waits, idle for %v us, want %d and %v", waits, waited, w, after.WaitTime-before.WaitTime)
	}
	if w := after.Stalls - before.Stalls; stalls != w || !near(stalled, idle(after.StallTime-before.StallTime), w) {
		return fmt.Errorf("%d stalls, idle for %v us, want %d and %v", stalls, stalled, w, after.StallTime-before.StallTime)
	}
	return nil
}

func cmpTimes(times ...float64) int {
	for i := 0; i < len(times); i += 2 {
		if times[i] != times[i+1] {
			if times[i] < times[i+1] {
				return -1
			}
			return 1
		}
	}
	return 0
}

// near compares sums of n times.
func near(a, b float64, n int64) bool { return max(a-b, b-a) <= slack*float64(n+1) }

// TestTraceBy has two goroutines enqueue: the trace says which of them did what.
func TestTraceBy(t *testing.T) {
	e := newEngine(t, Options{Mode: Async, Workers: 1})
	d := newCPU(1)
	var text bytes.Buffer
	stop, err := e.Trace(&text)
	if err != nil {
		t.Fatal(err)
	}
	x, other := fromFloats(e, d, 1), make(chan uintptr)
	one := unary(e, addOne, e.NewStorage(d, 8), x)
	go func() {
		y := unary(e, addOne, e.NewStorage(d, 8), one)
		y = unary(e, addOne, y, y)
		other <- self()
		y.Wait(context.Background(), "Wait")
		close(other)
	}()
	by := []uint64{uint64(self()), uint64(<-other)}
	<-other
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	ops, _, err := readTrace(text.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	n := map[uint64]int{}
	for id, ev := range ops {
		if id == ev.Args.ID {
			n[ev.Args.By]++
		}
	}
	if len(n) != 2 || n[by[0]] != 1 || n[by[1]] != 2 {
		t.Errorf("operations by goroutine are %v, want one of %d and two of %d", n, by[0], by[1])
	}
}

// TestTraceOfLateWaits: a wait is in the trace as long as it took, even if the goroutine comes late to say so. Else it
// would begin after the operations that the goroutine has executed meanwhile.
func TestTraceOfLateWaits(t *testing.T) {
	e := newEngine(t, Options{Mode: Async, Workers: 1})
	var text bytes.Buffer
	stop, err := e.Trace(&text)
	if err != nil {
		t.Fatal(err)
	}
	begin := now()
	s := span{begin, begin + 25*time.Microsecond}
	e.countWait("Wait", 0, s, help{}, trace.ID{})
	e.countStall("MatMul", 0, s, help{})
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	_, others, err := readTrace(text.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	list := slices.DeleteFunc(others, func(ev *traceEvent) bool { return ev.Cat != "wait" && ev.Cat != "stall" })
	if len(list) != 2 || list[0].Ts != list[1].Ts || list[0].Dur != 25 || list[1].Dur != 25 {
		t.Errorf("a wait and a stall at the same time, of 25 us, are %+v", list)
	}
}

// TestLabels finds the name of an operation that a worker executes in a profile, while there is a trace.
func TestLabels(t *testing.T) {
	e := newEngine(t, Options{Mode: Async, Workers: 1})
	d := newCPU(1)
	stop, err := e.Trace(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	k, started, open := blocking()
	y := unary(e, k, e.NewStorage(d, 8), fromFloats(e, d, 1))
	e.stream(d).exec.flush()
	<-started
	var text bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&text, 1); err != nil {
		t.Error(err)
	}
	label := fmt.Sprintf("%q:%q", "op", k.Name)
	if !strings.Contains(text.String(), label) {
		t.Errorf("%s is not in\n%s", label, &text)
	}
	open()
	if err := errors.Join(y.Wait(t.Context(), "Wait"), stop(), e.WaitAll(t.Context())); err != nil {
		t.Fatal(err)
	}
	text.Reset()
	if err := pprof.Lookup("goroutine").WriteTo(&text, 1); err != nil || strings.Contains(text.String(), label) {
		t.Errorf("%v; afterwards there is still\n%s", err, &text)
	}
}

// TestRegions finds the operations and waits in a trace of package runtime/trace.
func TestRegions(t *testing.T) {
	var text bytes.Buffer
	if err := rtrace.Start(&text); err != nil {
		t.Skip(err) // the test itself is traced
	}
	e := newEngine(t, Options{Mode: Async, Workers: 1})
	d := newCPU(1)
	y := unary(e, addOne, e.NewStorage(d, 8), fromFloats(e, d, 1))
	err := y.Wait(t.Context(), "a wait of this test")
	rtrace.Stop()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{addOne.Name, "a wait of this test"} {
		if !bytes.Contains(text.Bytes(), []byte(want)) {
			t.Errorf("the trace lacks %q", want)
		}
	}
}
