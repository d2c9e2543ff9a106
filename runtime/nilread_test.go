package asyncrt_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// TestReadOfNil: a nil tensor panics where its value is used, not at the Read, and prints as a nil tensor does.
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
	for name, text := range map[string]func(x any) string{
		"json": func(x any) string { b, err := json.Marshal(x); return fmt.Sprint(string(b), err) },
		"slog": func(x any) string {
			var b strings.Builder
			slog.New(slog.NewTextHandler(&b, nil)).Info("", "x", x)
			return b.String()[strings.Index(b.String(), "x="):]
		},
	} {
		if got, want := text(noneAt), text(none); got != want || strings.Contains(want, "panic") {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
