package nn

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Summary returns a table of m, a [Module] or a pointer to a struct with parts: its layers with their
// names, the number of weights of each and of all, and how much memory parameters and buffers take.
// With an input x for a Module, it also has the shape of what each layer returns for it. Layers that m
// does not call by the Forward of a Module have none.
//
//	fmt.Println(nn.Summary(net, tensor.Zeros(1, 784)))
//
// With an x, Summary enqueues what Forward of a copy of m does, so weights that m does not have yet are
// counted. It leaves m and the generators as they are, and does not wait. It panics if Forward does,
// with an x if m is no Module, and if m is nil.
//
//asyncgen:api meta 0
func Summary(m any, x ...*tensor.Tensor) string {
	mustNotBeNil("Summary", m)
	in := optional("Summary", x)
	seen := &watcher{shapes: map[string]device.Shape{}}
	if in != nil {
		m = seen.run(m, in)
	}
	rows := [][3]string{{"layer", "output", "parameters"}}
	counted := map[*Param]bool{}
	draw(m, func(at branch) {
		weights, isWhole := weigh(counted, at.params)
		text := thousands(weights)
		if !isWhole {
			text = "?"
		}
		output := ""
		if shape, ok := seen.shapes[at.name]; ok {
			output = fmt.Sprint(shape)
		}
		line, _, _ := strings.Cut(describe(at.value), "\n")
		rows = append(rows, [3]string{at.first + line, output, text})
	})
	weights, isWhole := count(m)
	all := thousands(weights)
	if !isWhole {
		all += " and those that the first Forward makes"
	}
	rows = append(rows, [3]string{"total", "", all})
	return table(rows) + "memory: " + memory(m)
}

// weigh counts the weights of params that are not counted yet, and says whether all have a value.
func weigh(counted map[*Param]bool, params []*Param) (weights int, isWhole bool) {
	isWhole = true
	for _, p := range params {
		switch {
		case !p.IsSet():
			isWhole = false
		case !counted[p]:
			counted[p] = true
			weights += shape(p).Size()
		}
	}
	return weights, isWhole
}

// memory says how many bytes the parameters and buffers of m take.
func memory(m any) string {
	params, buffers := 0, 0
	for _, cell := range Named(m) {
		switch c := cell.(type) {
		case *Param:
			if c.IsSet() {
				params += bytesOf(c)
			}
		case *Buffer:
			if c.IsSet() {
				buffers += bytesOf(c)
			}
		}
	}
	text := bytes(params) + " of parameters"
	if buffers > 0 {
		text += ", " + bytes(buffers) + " of buffers"
	}
	return text
}

func bytesOf(c tensor.Cell) int {
	v := c.Value()
	defer tensor.Dead(v)
	return v.Size() * v.DType().Size()
}

// bytes is n in the unit that fits.
func bytes(n int) string {
	size, unit := float64(n), "KiB"
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n >= 1<<30:
		size, unit = size/(1<<30), "GiB"
	case n >= 1<<20:
		size, unit = size/(1<<20), "MiB"
	default:
		size /= 1 << 10
	}
	return fmt.Sprintf("%.2f %s", size, unit)
}

// table writes rows with a line below the first and one above the last. Numbers are to the right.
func table(rows [][3]string) string {
	var widths [3]int
	for i, row := range rows {
		for column, text := range row {
			if column == 2 && i == len(rows)-1 {
				continue // the total may be longer
			}
			widths[column] = max(widths[column], utf8.RuneCountInString(text))
		}
	}
	var b strings.Builder
	rule := strings.Repeat("─", widths[0]+widths[1]+widths[2]+4) + "\n"
	for i, row := range rows {
		if i == len(rows)-1 {
			b.WriteString(rule)
		}
		fmt.Fprintf(&b, "%-*s  %-*s  %*s\n", widths[0], row[0], widths[1], row[1], widths[2], row[2])
		if i == 0 {
			b.WriteString(rule)
		}
	}
	return b.String()
}

// A watcher knows what shapes the parts of a module have returned, by their names.
type watcher struct {
	shapes map[string]device.Shape
	path   []any // the modules around the one that is being copied
}

// run returns a clone of m, whose parts it has watched in one Forward of x.
func (w *watcher) run(m any, x *tensor.Tensor) any {
	root, ok := m.(Module)
	if !ok {
		wrong("Summary", "%T is no Module, which an input could be given to", m)
	}
	if r, ok := root.(*Replicas); ok {
		root = r.modules[0]
	}
	generators := []tensor.Cell{tensor.DefaultGenerator()}
	for _, c := range Cells(root) {
		if g, ok := c.(*tensor.Generator); ok {
			generators = append(generators, g)
		}
	}
	before := tensor.Snapshot(generators...)
	defer before.Restore()
	clone := Clone(root)
	y := w.watch("", clone).Forward(x)
	w.shapes[""] = y.Shape()
	return clone
}

// watch returns a copy of m with the same parameters. Its parts are watched, if they are in fields
// whose types allow it.
func (w *watcher) watch(name string, m Module) Module {
	if reflect.TypeOf(m).Kind() == reflect.Pointer {
		if slices.Contains(w.path, any(m)) { // a part points back to what it is in
			return m
		}
		w.path = append(w.path, m)
		defer func() { w.path = w.path[:len(w.path)-1] }()
	}
	copied := copyParts(m, visitor{copies: true, part: func(below string, v reflect.Value) {
		part, ok := v.Interface().(Module)
		if !ok {
			return
		}
		below = join(name, below)
		y := w.watch(below, part)
		if seen := (watched{y, below, w}); reflect.TypeOf(seen).AssignableTo(v.Type()) {
			y = seen
		}
		v.Set(reflect.ValueOf(y))
	}}, nil)
	return copied.(Module)
}

// watched is a module whose results are looked at.
type watched struct {
	Module
	name string
	by   *watcher
}

// Forward implements Module.
func (w watched) Forward(x *tensor.Tensor) *tensor.Tensor {
	y := w.Module.Forward(x)
	w.by.shapes[w.name] = y.Shape()
	return y
}

// String is that of the module.
func (w watched) String() string { return describe(w.Module) }
