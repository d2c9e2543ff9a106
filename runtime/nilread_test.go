package asyncrt_test

import (
	"fmt"
	"testing"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// TestReadOfNil: a nil tensor is found where its value is used, not where the
// Read is taken, and prints as it would itself.
func TestReadOfNil(t *testing.T) {
	outcome := func(f func()) (p any) {
		defer func() { p = recover() }()
		f()
		return nil
	}
	var none *tensor.Tensor
	later := asyncrt.NewLater[struct{}](1)
	noneAt := later.Read(none)
	want := outcome(func() { none.Item() })
	if got := outcome(func() { noneAt.Item() }); fmt.Sprint(got) != fmt.Sprint(want) || want == nil {
		t.Errorf("Item of a Read of nil: %v, of nil itself: %v", got, want)
	}
	for _, format := range []string{"%v", "%s", "%+v", "%.3f"} {
		if got, want := fmt.Sprintf(format, noneAt), fmt.Sprintf(format, none); got != want {
			t.Errorf("%s: %q, want %q", format, got, want)
		}
	}
}
