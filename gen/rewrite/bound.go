package rewrite

import (
	"github.com/asyncgen/asyncgen/gen/internal/load"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// Bound is R16: the loop may run ahead of its reads by so many entries and no
// further, so that a loop of any length has flat memory.
//
//	later := asyncrt.NewLater[struct{}](trainWindow)
var Bound = &Rewrite{
	ID:   "R16",
	Code: plan.Bounded,
	Does: "runs at most %d reads ahead",
}

// window is the bound for a function with the given directive, which may be nil.
func window(k *load.Kernel) int {
	if k == nil || k.Window == 0 {
		return load.DefaultWindow
	}
	return k.Window
}

// ahead is the bound for how far a function with the given directive, which may be nil, runs past tests; 0: none.
func ahead(k *load.Kernel) int {
	if k == nil {
		return 0
	}
	return k.Ahead
}
