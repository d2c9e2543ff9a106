package nn

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// describe returns what m says of itself in a line or several, "Dense(10)", or its type.
func describe(m any) string {
	switch m := m.(type) {
	case sequential:
		return "Sequential"
	case *residual:
		return "Residual"
	case *Replicas:
		return m.describe()
	case fmt.Stringer:
		return m.String()
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", m), "*")
}

// members lists the modules and the parameters that m itself holds, with those of what is embedded.
func members(m any) (modules []part, params []*Param) {
	for _, p := range partsOf(m) {
		switch c := p.value.(type) {
		case *Param:
			params = append(params, c)
		case tensor.Cell:
		default:
			if p.name == "" {
				below, own := members(c)
				modules, params = append(modules, below...), append(params, own...)
			} else {
				modules = append(modules, p)
			}
		}
	}
	return modules, params
}

// A branch is a module in the drawing of a tree.
type branch struct {
	part                 // by its name in all of the tree
	first, rest string   // what its first line begins with, and further ones
	params      []*Param // of itself
}

// draw calls visit for m and the modules below it. One that is a part of itself is not drawn again there.
func draw(m any, visit func(branch)) {
	var path []any
	var add func(b branch)
	add = func(b branch) {
		if isPointer := reflect.TypeOf(b.value).Kind() == reflect.Pointer; isPointer {
			if slices.Contains(path, b.value) {
				return
			}
			path = append(path, b.value)
			defer func() { path = path[:len(path)-1] }()
		}
		modules, params := members(b.value)
		b.params = params
		visit(b)
		for i, p := range modules {
			below := branch{part: part{join(b.name, p.name), p.value}, first: b.rest + "├─ " + p.name + " ", rest: b.rest + "│  "}
			if i == len(modules)-1 {
				below.first, below.rest = b.rest+"└─ "+p.name+" ", b.rest+"   "
			}
			add(below)
		}
	}
	add(branch{part: part{"", m}})
}

// tree draws m with its parts below it, each with its name and the shapes of its parameters, and says
// how many weights there are in all.
//
//	Sequential
//	├─ 0 Dense(512)  [784 512] [512]
//	├─ 1 ReLU()
//	└─ 2 Dense(10)  [512 10] [10]
//	407,050 weights
func tree(m any) string {
	var b strings.Builder
	draw(m, func(at branch) {
		lines := strings.Split(describe(at.value), "\n")
		b.WriteString(at.first + lines[0])
		shapes(&b, at.params)
		b.WriteByte('\n')
		for _, l := range lines[1:] {
			b.WriteString(at.rest + l + "\n")
		}
	})
	weights, isWhole := count(m)
	b.WriteString(thousands(weights) + " weights")
	if !isWhole {
		b.WriteString(", and those that the first Forward makes")
	}
	return b.String()
}

// Count returns how many numbers the parameters of m have in all, those that are shared once: m is a [Module], or
// a pointer to a struct with parts. Buffers don't count. It panics if a parameter has no value yet: call Forward once
// before, or use [Summary].
//
//asyncgen:api meta 0
func Count(m any) int {
	for name, c := range Named(m) {
		if p, ok := c.(*Param); ok && !p.IsSet() {
			wrong("Count", "%s has no value yet: layers give theirs a value at their first Forward", name)
		}
	}
	weights, _ := count(m)
	return weights
}

// count returns how many weights m and its parts have, and whether all parameters have values.
func count(m any) (weights int, isWhole bool) {
	isWhole = true
	for _, p := range Params(m) {
		if p.IsSet() {
			weights += shape(p).Size()
		} else {
			isWhole = false
		}
	}
	return weights, isWhole
}

// shapes writes the shapes of the parameters that have a value.
func shapes(b *strings.Builder, params []*Param) {
	separator := "  "
	for _, p := range params {
		if p.IsSet() {
			fmt.Fprintf(b, "%s%v", separator, shape(p))
			separator = " "
		}
	}
}

func shape(p *Param) device.Shape {
	v := p.Value()
	defer tensor.Dead(v)
	return v.Shape()
}

// thousands is n with a comma before each three digits.
func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// options lists what is set among the fields of a call, ", Stride 2x2", in the order given: a name,
// then a value.
func options(fields ...any) string {
	var b strings.Builder
	for i := 0; i < len(fields); i += 2 {
		switch v := fields[i+1].(type) {
		case tensor.Pair:
			if v != (tensor.Pair{}) {
				fmt.Fprintf(&b, ", %s %s", fields[i], pair(v))
			}
		case int:
			if v != 0 {
				fmt.Fprintf(&b, ", %s %d", fields[i], v)
			}
		}
	}
	return b.String()
}

// pair is "3x3".
func pair(p tensor.Pair) string { return fmt.Sprintf("%dx%d", p[0], p[1]) }
