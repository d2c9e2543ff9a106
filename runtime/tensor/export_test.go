package tensor

import (
	"unsafe"

	"github.com/asyncgen/asyncgen/runtime/internal/engine"
)

// SetEngine makes everything run on e until restore is called.
func SetEngine(e *engine.Engine) (restore func()) {
	old := eng
	eng = func() *engine.Engine { return e }
	return func() { eng = old }
}

// IsView reports whether t and u share memory.
func IsView(t, u *Tensor) bool { return t.storage == u.storage }

// ResultSize is the size of what a result allocates, in bytes.
const ResultSize = unsafe.Sizeof(result{})
