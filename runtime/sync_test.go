package asyncrt_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func ExampleSyncMode() {
	defer asyncrt.SyncMode(asyncrt.SyncMode(asyncrt.Error))
	loss := tensor.Ones(1000).Sum() // reading it right here would panic, were it not ready by chance
	asyncrt.AllowSync(func() { fmt.Println(loss.Item()) })
	// Output: 1000
}

// How each kind of call fails if it would have to wait and that is forbidden.
func TestForbiddenReads(t *testing.T) {
	on, g := gated()
	defer g.let(1)
	if err := asyncrt.WaitAll(); err != nil {
		t.Fatal(err)
	}
	defer asyncrt.SyncMode(asyncrt.SyncMode(asyncrt.Error))
	x := tensor.On(on).Ones(1).Tanh()
	forbidden := func(call string, err error) {
		t.Helper()
		if e, ok := errors.AsType[*asyncrt.SyncError](err); !ok || e.Call != call || filepath.Base(e.File) != "sync_test.go" {
			t.Errorf("%s: %v", call, err)
		}
	}
	raised := func(f func()) (err error) {
		defer func() { err, _ = recover().(error) }()
		f()
		return nil
	}
	forbidden("Item", raised(func() { x.Item() }))
	forbidden("Float32s", raised(func() { x.Float32s() }))
	forbidden("Item", raised(func() { _ = asyncrt.Try(func() { x.Item() }) }))
	forbidden("Wait", x.Wait())
	_, err := x.ItemContext(t.Context())
	forbidden("ItemContext", err)
	forbidden("WaitAll", asyncrt.WaitAll())
	if text := x.String(); !strings.HasPrefix(text, "<failed: ") || !strings.HasSuffix(text, ": String waits, which is forbidden here>") {
		t.Errorf("it prints as %s", text)
	}
}

// Waits of a Later are allowed. A function of the backlog must not wait for a value that was not read for it.
func TestLaterMayWait(t *testing.T) {
	defer asyncrt.SyncMode(asyncrt.SyncMode(asyncrt.Error))
	later := asyncrt.NewLater[struct{}](2)
	x := tensor.Ones(4)
	sum := 0.0
	for range 10 {
		x = x.AddScalar(1)
		at := later.Read(x.Sum())
		later.Do(func() { sum += at.Item() })
	}
	later.Flush()
	if sum != 4*(2+11)*10/2 {
		t.Errorf("the sum is %v", sum)
	}
	defer func() {
		if _, ok := recover().(*asyncrt.SyncError); !ok {
			t.Error("a function of the backlog may wait for what it has not been given")
		}
	}()
	on, g := gated()
	defer g.let(1)
	late := tensor.On(on).Ones(1).Tanh()
	later.Do(func() { late.Item() })
}
