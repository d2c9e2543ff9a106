package nn

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Summary returns a table of m, a [Module] or a pointer to a struct with parts: its layers with their
// names, the number of weights of each and of all, and how much memory parameters and buffers take.
// With x, as many tensors as Forward of m takes, it also has the shape of what each layer returns for
// them. Modules of one's own that another one holds by their own types, and not as a Module, have none:
// there is no place to look. Their parts have.
//
//	fmt.Println(nn.Summary(net, tensor.Zeros(1, 784)))
//	fmt.Println(nn.Summary(translator, source, target))
//
// With x, Summary enqueues what Forward of a copy of m does, so weights that m does not have yet are
// counted. It leaves m and the generators as they are, and does not wait. It panics if Forward does,
// if m has no Forward of so many tensors, and if m is nil.
//
//asyncgen:api meta 0
func Summary(m any, x ...*tensor.Tensor) string {
	mustNotBeNil("Summary", m)
	seen := &watcher{shapes: map[string]string{}}
	if len(x) > 0 {
		m = seen.run(m, x)
	}
	rows := [][3]string{{"layer", "output", "parameters"}}
	counted := map[*Param]bool{}
	draw(m, func(at branch) {
		weights, isWhole := weigh(counted, at.params)
		text := thousands(weights)
		if !isWhole {
			text = "?"
		}
		line, _, _ := strings.Cut(describe(at.value), "\n")
		rows = append(rows, [3]string{at.first + line, seen.shapes[at.name], text})
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
	shapes map[string]string
	path   []any // the modules around the one that is being copied
}

// run returns a clone of m, whose parts it has watched in one Forward of x.
func (w *watcher) run(m any, x []*tensor.Tensor) any {
	root := m
	if r, ok := m.(*Replicas); ok {
		root = r.modules[0]
	}
	clone := Clone(root)
	forward := reflect.ValueOf(w.watch("", clone)).MethodByName("Forward")
	if !forward.IsValid() || !takes(forward.Type(), len(x)) {
		wrong("Summary", "%T has no Forward of %d tensors", m, len(x))
	}
	generators := []tensor.Cell{tensor.DefaultGenerator()}
	for _, c := range Cells(root) {
		if g, ok := c.(*tensor.Generator); ok {
			generators = append(generators, g)
		}
	}
	before := tensor.Snapshot(generators...)
	defer before.Restore()
	in := make([]reflect.Value, len(x))
	for i := range x {
		in[i] = reflect.ValueOf(x[i])
	}
	var outputs []string
	for _, y := range forward.Call(in) {
		if t, ok := y.Interface().(*tensor.Tensor); ok && t != nil {
			outputs = append(outputs, t.Shape().String())
		}
	}
	w.shapes[""] = strings.Join(outputs, " ")
	return clone
}

// takes reports whether a function of type t takes n tensors.
func takes(t reflect.Type, n int) bool {
	if t.IsVariadic() || t.NumIn() != n {
		return false
	}
	for i := range n {
		if t.In(i) != reflect.TypeFor[*tensor.Tensor]() {
			return false
		}
	}
	return true
}

// watch returns a copy of m with the same parameters. Its parts are watched, if they are in fields
// whose types allow it.
func (w *watcher) watch(name string, m any) any {
	if reflect.TypeOf(m).Kind() == reflect.Pointer {
		if slices.Contains(w.path, m) { // a part points back to what it is in
			return m
		}
		w.path = append(w.path, m)
		defer func() { w.path = w.path[:len(w.path)-1] }()
	}
	copied := copyParts(m, visitor{copies: true, part: func(below string, v reflect.Value) {
		if _, ok := v.Interface().(tensor.Cell); ok {
			return
		}
		below = join(name, below)
		y := w.watch(below, v.Interface())
		part, ok := y.(Module)
		if seen := (watched{part, below, w}); ok && reflect.TypeOf(seen).AssignableTo(v.Type()) {
			y = seen
		}
		v.Set(reflect.ValueOf(y))
	}}, nil)
	if l, ok := copied.(interface{ watch(func(*tensor.Tensor)) }); ok {
		l.watch(func(y *tensor.Tensor) { w.shapes[name] = y.Shape().String() })
	}
	return copied
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
	w.by.shapes[w.name] = y.Shape().String()
	return y
}

// String is that of the module.
func (w watched) String() string { return describe(w.Module) }
