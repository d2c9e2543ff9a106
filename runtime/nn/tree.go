package nn

import (
	"fmt"
	"strings"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// describe returns what m says of itself in a line or several, "Dense(10)", or its type.
func describe(m any) string {
	switch m := m.(type) {
	case sequential:
		return "Sequential"
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

// tree draws m with its parts below it, each with its name and the shapes of its parameters, and says how many
// weights there are in all.
//
//	Sequential
//	├─ 0 Dense(512)  [784 512] [512]
//	├─ 1 ReLU()
//	└─ 2 Dense(10)  [512 10] [10]
//	407,050 weights
func tree(m any) string {
	var b strings.Builder
	modules, params := members(m)
	b.WriteString(describe(m))
	shapes(&b, params)
	b.WriteByte('\n')
	branches(&b, "", modules)
	weights, isWhole := count(m)
	b.WriteString(thousands(weights) + " weights")
	if !isWhole {
		b.WriteString(", and those that the first Forward makes")
	}
	return b.String()
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

// branches draws modules, each line behind indent.
func branches(b *strings.Builder, indent string, modules []part) {
	for i, m := range modules {
		branch, below := "├─ ", "│  "
		if i == len(modules)-1 {
			branch, below = "└─ ", "   "
		}
		parts, params := members(m.value)
		lines := strings.Split(describe(m.value), "\n")
		fmt.Fprintf(b, "%s%s%s %s", indent, branch, m.name, lines[0])
		shapes(b, params)
		b.WriteByte('\n')
		for _, l := range lines[1:] {
			b.WriteString(indent + below + l + "\n")
		}
		branches(b, indent+below, parts)
	}
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

// options lists what is set among the fields of a call, ", Stride 2x2", in the order given: a name, then a value.
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
