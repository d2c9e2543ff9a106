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

// CurrentEngine returns the engine that everything runs on.
func CurrentEngine() *engine.Engine { return eng() }

// ResultSize is the number of bytes that a result allocates.
const ResultSize = unsafe.Sizeof(result{})

// Rows returns how many rows of VMap calls are alive.
func Rows() int {
	rows.mu.Lock()
	defer rows.mu.Unlock()
	return len(rows.list)
}

// SameStorage reports whether x and y share memory.
func SameStorage(x, y *Tensor) bool { return x.storage == y.storage }

// ViewOf returns the view d of x.
func ViewOf(d *op.Def, x *Tensor) *Tensor { return viewOf(d, &op.Attr{}, x) }
