package tensor

import (
	"unsafe"

	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// SetEngine makes everything run on e until restore is called.
func SetEngine(e *engine.Engine) (restore func()) {
	old := eng
	eng = func() *engine.Engine { return e }
	return func() { eng = old }
}

// CurrentEngine is what everything runs on.
func CurrentEngine() *engine.Engine { return eng() }

// ResultSize is the size of what a result allocates, in bytes.
const ResultSize = unsafe.Sizeof(result{})

// Rows is how many rows of VMap calls there are.
func Rows() int {
	rows.mu.Lock()
	defer rows.mu.Unlock()
	return len(rows.list)
}

// SameStorage reports whether x and y are in the same memory.
func SameStorage(x, y *Tensor) bool { return x.storage == y.storage }

// ViewOf is the view d of x.
func ViewOf(d *op.Def, x *Tensor) *Tensor { return viewOf(d, &op.Attr{}, x) }
