package rewrite

import "github.com/asyncgen/asyncgen/gen/internal/plan"

// Scalar is defer-read, the rewrite that the others are special cases of: a value is
// read where it is needed, later.
//
//	l := loss.Item()        lossAt := later.Read(loss)
//	use(l)                  later.Do(func() {
//	                        	l := lossAt.Item()
//	                        	use(l)
//	                        })
var Scalar = &Rewrite{
	Name: "defer-read",
	Was:  "R1",
	Code: plan.DeferredRead,
	Does: "is read when it has arrived",
}
