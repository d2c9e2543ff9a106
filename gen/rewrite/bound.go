package rewrite

import (
	"math"
	"slices"

	"github.com/asyncgen/asyncgen/gen/internal/load"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// Bound is the rewrite bound: the loop may run ahead of its reads by so many entries and no
// further, so that a loop of any length has flat memory.
//
//	later := asyncrt.NewLater[struct{}](trainWindow)
var Bound = &Rewrite{
	Name: "bound",
	Was:  "R16",
	Code: plan.Bounded,
	Does: "runs at most %d reads ahead",
}

// window is the bound for a function with the given directive.
func window(k *load.Kernel) int {
	switch {
	case slices.Contains(k.Off, Bound.Name):
		return math.MaxInt32 // which is more than there is memory for
	case k.Window == 0:
		return load.DefaultWindow
	}
	return k.Window
}

// ahead is the bound for how far a function with the given directive runs past tests; 0: none.
func ahead(k *load.Kernel) int {
	return k.Ahead
}
