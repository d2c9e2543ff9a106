package nn

import (
	"fmt"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// wrong panics with a [tensor.Mistake] about the function with the given name.
func wrong(name, format string, args ...any) {
	panic(&tensor.Mistake{Package: "nn", Op: name, Text: fmt.Sprintf(format, args...)})
}

// named is deferred by a module that calls its parts in turn: a [tensor.Mistake] says which of them
// panics with it. Other panics go on as they are.
func named(parts []Module, at *int) {
	p := recover()
	if p == nil {
		return
	}
	if m, ok := p.(*tensor.Mistake); ok {
		if m.Layer == "" {
			m.Layer = fmt.Sprintf("layer %d, %s", *at, describe(parts[*at]))
		} else {
			m.Layer = fmt.Sprintf("layer %d, %s", *at, m.Layer) // it is a Sequential, which has named its own layer
		}
	}
	panic(p)
}
