package engine

import (
	"reflect"
	"runtime"
	"strings"
	"testing"
)

func TestIsOurs(t *testing.T) {
	const m = "github.com/asyncgen/asyncgen"
	for _, c := range []struct {
		fn, file string
		want     bool
	}{
		{m + "/runtime/tensor.(*Tensor).Item", "read.go", true},
		{m + "/runtime/tensor.From[...]", "make.go", true},
		{m + "/runtime/tensor.From[" + m + "/gen.X]", "make.go", true},
		{m + "/runtime.WaitAll", "asyncrt.go", true},
		{m + "/device/sim.(*device).run.func1", "sim.go", true},
		{m + "/runtime/tensor_test.TestItem", "read_test.go", false},
		{m + "/runtime/internal/engine.TestIsOurs", "site_test.go", false},
		{m + "/runtime2.F", "f.go", false},
		{m + "/gen.Generate", "gen.go", false},
		{m + "/testdata/programs/mlp.main", "main.go", false},
		{m + ".F", "f.go", false},
		{"main.main", "main.go", false},
		{"example.com/user/runtime.F", "f.go", false},
		{"quickstart/fmt.F", "f.go", false},
		{"fmt.Println", "print.go", true},
		{"encoding/json.Marshal", "encode.go", true},
		{"log/slog.(*Logger).Info", "logger.go", true},
		{"runtime.gopanic", "panic.go", true},
		{"slices.SortFunc[go.shape.[]" + m + "/runtime/tensor.T]", "sort.go", true},
		{"testing.tRunner", "testing.go", false},
	} {
		if got := isOurs(c.fn, c.file); got != c.want {
			t.Errorf("isOurs(%q) = %v", c.fn, got)
		}
	}
}

// Frame pointers tell what the runtime tells.
//
//go:noinline
func TestFramePCs(t *testing.T) { atDepth(t, 0) }

//go:noinline
func atDepth(t *testing.T, n int) {
	if n < 30 {
		atDepth(t, n+1)
	}
	var want [64]uintptr
	wantN := runtime.Callers(2, want[:])
	var got []uintptr
	for skip := 0; ; skip += 8 {
		var pcs [8]uintptr
		n := framePCs(&pcs, skip)
		got = append(got, pcs[:n]...)
		if n < len(pcs) {
			break
		}
	}
	names := func(pcs []uintptr) (list []string) {
		for _, pc := range pcs {
			f, _ := runtime.CallersFrames([]uintptr{pc}).Next()
			list = append(list, f.Function)
			if f.Function == "testing.tRunner" {
				break
			}
		}
		return list
	}
	if g, w := names(got), names(want[:wantN]); !reflect.DeepEqual(g, w) {
		t.Fatalf("at depth %d:\n got %v\nwant %v", n, g, w)
	}
}

// The line is that of the first caller outside the library, however deep in it (and in what calls on its behalf) we are.
func TestCallerPC(t *testing.T) {
	e := newEngine(t, Options{Mode: Async})
	dev := newCPU(1)
	for depth := range 10 {
		x := unary(e, addOne, e.NewStorage(dev, 8), fromFloats(e, dev, 1))
		var events []Event
		stop := e.Record(func(ev Event) { events = append(events, ev) })
		call := reflect.ValueOf(e.Enqueue)
		args := []reflect.Value{reflect.ValueOf(&Op{Cmd: opOf(x), Operands: [4]*Storage{x, x}})}
		for range depth {
			call, args = reflect.ValueOf(call.Call), []reflect.Value{reflect.ValueOf(args)}
		}
		line := here(1)
		call.Call(args)
		stop()
		if len(events) != 1 || events[0].Line != line || !strings.HasSuffix(events[0].File, "site_test.go") {
			t.Errorf("depth %d: got %+v, want line %d", depth, events, line)
		}
	}
	if at := siteOf(0); at != nil {
		t.Errorf("place of no address: %v", at)
	}
}

// What a go statement enqueues is that line's, or, where the runtime hides it, no line's.
func TestGoStatement(t *testing.T) {
	e := newEngine(t, Options{Mode: Async})
	dev := newCPU(1)
	x := fromFloats(e, dev, 1)
	op := &Op{Cmd: opOf(x), Operands: [4]*Storage{x, x}}
	op.Cmd.Kernel = failing
	line := here(1)
	go e.Enqueue(op)
	if runtime.GOARCH != "amd64" {
		line = 0
	}
	for x.last.Load() == 0 {
		runtime.Gosched()
	}
	if err, ok := x.Wait(bg, "read").(*OpError); !ok || err.Line != line {
		t.Errorf("got %+v, want line %d", err, line)
	}
}

// The table of known addresses grows.
func TestKnownAddresses(t *testing.T) {
	base := reflect.ValueOf(TestKnownAddresses).Pointer()
	for i := range uintptr(1000) {
		siteOf(base + i)
	}
	for i := range uintptr(1000) {
		if siteOf(base+i) != siteOf(base+i) {
			t.Fatal("two places for an address")
		}
	}
}
