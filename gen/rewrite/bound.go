package rewrite

import (
	"cmp"
	"math"

	"github.com/asyncgen/asyncgen/gen/internal/load"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// Bound is the rewrite bound: the loop may run ahead of its entries by so many and no further, so
// that a loop of any length has flat memory. How many tests it runs past is another bound, ahead=,
// which the planner hands on to the runtime.
//
//	later := asyncrt.NewLater[struct{}](trainWindow)
var Bound = &Rewrite{
	Name: "bound",
	Was:  "R16",
	Code: plan.Bounded,
	Does: "runs at most %d reads ahead",
}

// unbounded is the window of what has no bound: there is not memory for so many.
const unbounded = math.MaxInt32

// bound sets the bound that the directive asks for.
func (p *planner) bound() { p.d.Window = cmp.Or(p.kernel.Window, load.DefaultWindow) }
