package nn

import (
	"fmt"
	"strings"
	"sync"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// wrong panics with a [tensor.Mistake] about the function with the given name.
func wrong(name, format string, args ...any) {
	panic(&tensor.Mistake{Package: "nn", Op: name, Text: fmt.Sprintf(format, args...)})
}

// inLayer is deferred by the methods of the layer m that compute. A [tensor.Mistake] says that it is one of m, unless
// it is one of a layer within m, and by which name. Other panics go on as they are.
func inLayer(m any) {
	p := recover()
	if p == nil {
		return
	}
	if e, ok := p.(*tensor.Mistake); ok {
		locate(e, m)
	}
	panic(p)
}

// inPart is inLayer for a module that calls its parts in turn, of which at is the number of the present one.
func inPart(m any, parts []Module, at *int) {
	p := recover()
	if p == nil {
		return
	}
	if e, ok := p.(*tensor.Mistake); ok {
		locate(e, parts[*at])
		if locate(e, m) == "" {
			e.Layer = fmt.Sprintf("layer %d, %s", *at, e.Layer)
		}
	}
	panic(p)
}

// locate makes e a mistake of the layer m, or of the one within m that it is one of already. It returns the name of
// that, if that is known.
func locate(e *tensor.Mistake, m any) (name string) {
	if e.Part == nil {
		e.Part, e.Layer = m, describe(m)
	}
	cellsOf(m) // which gives parts of m their names
	l, ok := e.Part.(interface{ known() string })
	if !ok {
		return ""
	}
	if name = l.known(); name != "" {
		e.Layer = name + ", " + describe(e.Part)
	}
	return name
}

// A place is where a layer is in a model: its name, as [Named] has it, in the module for which that or [Params] was
// called. Layers embed it.
type place struct {
	name string
	seen func(y *tensor.Tensor) // not nil in the copy that Summary watches: it gets each result
}

func (p *place) watch(seen func(y *tensor.Tensor)) { p.seen = seen }

// saw is called with results of a layer that others hold by its own type, which nothing can stand in for.
func (p *place) saw(y *tensor.Tensor) {
	if p.seen != nil {
		p.seen(y)
	}
}

var placesMu sync.Mutex // guards names of places

// put says by which name a layer was found. A name in a part of the model says less than the one in the whole model.
func (p *place) put(name string) {
	placesMu.Lock()
	defer placesMu.Unlock()
	if name != "" && p.name != name && !strings.HasSuffix(p.name, "."+name) {
		p.name = name
	}
}

func (p *place) known() string {
	placesMu.Lock()
	defer placesMu.Unlock()
	return p.name
}
