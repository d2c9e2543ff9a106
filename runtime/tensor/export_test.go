package tensor

import (
	"testing"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
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

// SetAttentionSlab makes Attention compute so many weights at once until the function that it returns is called.
func SetAttentionSlab(n int) (reset func()) {
	before := slabSize
	slabSize = n
	return func() { slabSize = before }
}

// WholeAttention is Attention that keeps all weights.
func WholeAttention(q, k, v *Tensor, how AttentionOptions) *Tensor {
	return newAttending(q, k, v, how).whole(q, k, v)
}

// SetLazyFrom makes Lazy have an effect from so many elements on until the function that it returns is called.
func SetLazyFrom(n int) (reset func()) {
	before := lazyFrom
	lazyFrom = n
	return func() { lazyFrom = before }
}

// SetHosts sets hosts for a test.
func SetHosts(t testing.TB, by map[device.Device]device.Device) {
	hosts = by
	t.Cleanup(func() { hosts = nil })
}
