package report

import (
	"regexp"
	"testing"
)

// Where leaves what stands before the operation, and the cause.
func TestWhere(t *testing.T) {
	where := regexp.MustCompile(Where)
	for _, text := range []string{
		"Add float32[2 3] from float32[2 3] float32[3] on cpu, enqueued at /home/me/train.go:57: ",
		"upload uint8 from uint8 on sim:0: ",
		"average of squares float32[10] from float32[10] float32[10] on cpu, enqueued at C:/my code/train.go:43: ",
		"As float16[] from int32[] on gpu:1, enqueued at a.go:1: ",
	} {
		if got := where.ReplaceAllString("panic: asyncgen: "+text+"cause", ""); got != "panic: asyncgen: cause" {
			t.Errorf("of %q is left %q", text, got)
		}
	}
	if text := "panic: asyncgen: the device is lost"; where.ReplaceAllString(text, "") != text {
		t.Errorf("something is left out of %q", text)
	}
}
