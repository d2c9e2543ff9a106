package tensor

import (
	"slices"

	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// worthReleasing is from how many bytes on memory is given back before the collector finds it: it
// costs as much as a small operation, and less than that is on the Go heap on the CPU.
const worthReleasing = 4096

// temporaries are storages that were made by the library for itself. A program has no handle of them.
type temporaries struct{ storages []*engine.Storage }

// note notes the storage of out if it is none of the operands', and returns out.
func (m *temporaries) note(out *Tensor, operands ...op.Value) *Tensor {
	if m == nil || out.size*out.dtype.Size() < worthReleasing {
		return out
	}
	for _, x := range operands {
		if x.(*Tensor).storage == out.storage {
			return out // a view
		}
	}
	m.storages = append(m.storages, out.storage)
	return out
}

// release gives the memory of all back, behind the operations that use it, except for
// that of what is kept.
func (m *temporaries) release(kept map[*engine.Storage]bool) {
	eng().Release(slices.DeleteFunc(m.storages, func(s *engine.Storage) bool { return kept[s] })...)
}
