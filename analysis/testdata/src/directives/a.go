package directives

import (
	"fmt"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func used(x *tensor.Tensor) (sum float64) {
	for range 10 {
		x = x.AddScalar(1)
		sum += x.Item() //asyncgen:ignore AT001 this is what is shown
		//asyncgen:ignore AT001,AT004 two in one
		sum = weigh(fmt.Sprint(x.MulScalar(2)), tensorOf(x).Item())
		//asyncgen:ignore AT005 of a severity that nobody asked for
		if x.AddScalar(2).Item() > 3 {
			break
		}
		x.AddScalar(3).Item() //nolint:asyncgen
	}
	return sum
}

func weigh(s string, v float64) float64 { return v }

func tensorOf(x *tensor.Tensor) *tensor.Tensor { return x.AddScalar(4) }

/* want `there is no directive //asyncgen:ignored; did you mean "ignore"\?` */ //asyncgen:ignored is another word

/* want `there is no directive //asyncgen:kernal; did you mean "kernel"\?` */ //asyncgen:kernal

/* want `directive has no finding of AT001 to ignore; remove it \[AT031\]` */ //asyncgen:ignore AT001 it is long gone
func stale(x *tensor.Tensor) (sum float64) {
	/* want `directive has no finding of AT004, AT008 to ignore` */ //asyncgen:ignore AT004,AT008 neither
	sum = x.Item()
	for range 10 {
		x = x.AddScalar(1)
		sum += x.Item() /* want `no finding of AT004 to` */ //asyncgen:ignore AT001,AT004 one of them
	}
	/* want `directive names no rule; write //asyncgen:ignore AT001 and the reason` */ //asyncgen:ignore because
	/* want `directive names no rule: there is no AT06; did you mean "AT006"\?; write` */ //asyncgen:ignore AT06 because
	/* want `directive names no rule: there is no at001; did you mean "AT001"\?; write` */ //asyncgen:ignore AT004,at001 because
	/* want `a directive has no space after //; write //asyncgen:ignore AT006 \[AT031\]` */ // asyncgen:ignore AT006 because
	/* want `a directive has no space after //; write //asyncgen:kernel \[AT031\]` */ // asyncgen:kernel
	// asyncgen:ignore is a directive, and so is asyncgen:kernel.
	// asyncgen:kernel marks functions.
	/* want `directive names AT999, which is no rule` */ //asyncgen:ignore AT999 because
	/* want `directive names no rule` */ //asyncgen:ignore
	/* want `directive names no rule` */ //asyncgen:ignore AT001:because
	/* want `directive gives no reason` */ //asyncgen:ignore AT031
	return sum
}

func hinted(x *tensor.Tensor) (sum float64) {
	for range 10 {
		x = x.AddScalar(1)
		sum += x.Item() //asyncgen:ignore AT001
	}
	//asyncgen:ignore AT031 so that the next one may stay
	//asyncgen:ignore AT001 as a memory
	return sum
}
