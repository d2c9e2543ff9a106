package main

import (
	"fmt"
	"strings"

	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// variable returns the name of the variable in package op that holds d.
func variable(d *op.Def) string {
	if d == op.Every {
		return "Every" // All is a set of types
	}
	return d.Name
}

// methods returns the text of zops.go.
func methods() string {
	var b strings.Builder
	b.WriteString("package tensor\n\nimport (\n\t\"github.com/asyncgen/asyncgen/device/kernel\"\n\t\"github.com/asyncgen/asyncgen/runtime/op\"\n)\n\n")
	for _, d := range op.List() {
		switch {
		case d.Unlisted:
		case d.Expr != nil:
			elementwiseMethod(&b, d)
		case d.Reduces:
			reductionMethods(&b, d)
		}
	}
	for _, f := range kernel.MathFuncs() {
		mathMethod(&b, f)
	}
	return b.String()
}

// mathMethod writes the method of F64 for the function f of package math.
func mathMethod(b *strings.Builder, f kernel.MathFunc) {
	params, args, operand := "", "x", "F64{}"
	if f.Arity() == 2 {
		params, args, operand = "y F64", "x, y", "y"
	}
	fmt.Fprintf(b, "// %v returns math.%[1]v(%[2]s).\n//\n//asyncgen:api op batch\n//go:noinline\n"+
		"func (x F64) %[1]v(%[3]s) F64 { return x.math(kernel.Math%[1]v, %[4]s) }\n\n", f, args, params, operand)
}

// elementwiseMethod writes the method that calls d, or the function if d has a condition as its first
// operand. If d takes one constant, it also writes the method that takes an F64.
func elementwiseMethod(b *strings.Builder, d *op.Def) {
	doc(b, d.Name+" "+d.Doc)
	later := f64Name(d)
	fmt.Fprintf(b, "//\n//asyncgen:api op batch%s", marks[d.Fails])
	if later != "" {
		b.WriteString(" f64=" + later)
	}
	b.WriteString("\n//go:noinline\n")
	receiver, params, operands := "(t *Tensor) ", "", "t"
	switch {
	case d.Cond:
		receiver, params, operands = "", "cond, x, y *Tensor", "cond, x, y"
	case d.Tensors == 2:
		params, operands = "y *Tensor", "t, y"
	case d.Tensors == 3:
		params, operands = "x, y *Tensor", "t, x, y"
	}
	scalars := []string{"", "c", "lo, hi"}[d.Scalars]
	if d.Scalars > 0 {
		if params != "" {
			params += ", "
		}
		params += scalars + " float64"
	}
	fmt.Fprintf(b, "func %s%s(%s) *Tensor {\n\treturn elementwise(op.%s, [2]float64{%s}, operands{%s}, true)\n}\n\n",
		receiver, d.Name, params, variable(d), scalars, operands)
	if later != "" {
		fmt.Fprintf(b, "// %s is %s of a c that may not have been computed yet. With integers it waits for c.\n", later, d.Name)
		fmt.Fprintf(b, "//\n//asyncgen:api op batch\n//go:noinline\n"+
			"func (t *Tensor) %s(%s) *Tensor {\n\treturn withF64(op.%s, %q, c, operands{%s})\n}\n\n",
			later, strings.Replace(params, "c float64", "c F64", 1), variable(d), later, operands)
	}
}

// marks holds what directives say about Def.Fails.
var marks = map[bool]string{true: " fails"}

// f64Name returns the name of the method that takes an F64 instead of d's constant; "" if there is none.
func f64Name(d *op.Def) string {
	if d.Scalars != 1 {
		return ""
	}
	return strings.TrimSuffix(d.Name, "Scalar") + "F64"
}

func reductionMethods(b *strings.Builder, d *op.Def) {
	doc(b, d.Name+" "+d.Doc)
	const body = "//\n//asyncgen:api op batch\n//go:noinline\n" +
		"func (t *Tensor) %s(axes ...int) *Tensor { return t.reduce(op.%s, %q, axes, %v) }\n\n"
	fmt.Fprintf(b, body, d.Name, variable(d), d.Name, false)
	fmt.Fprintf(b, "// %sKeep is %s that keeps the reduced axes, with length 1.\n", d.Name, d.Name)
	fmt.Fprintf(b, body, d.Name+"Keep", variable(d), d.Name+"Keep", true)
}

// doc writes text as a comment, in lines of some 80 bytes.
func doc(b *strings.Builder, text string) {
	line := "//"
	for word := range strings.FieldsSeq(text) {
		if len(line)+1+len(word) > 80 {
			b.WriteString(line + "\n")
			line = "//"
		}
		line += " " + word
	}
	b.WriteString(line + "\n")
}

// testList returns the text of zops_test.go: how to call each elementwise operation, each reduction, and
// each method of F64.
func testList() string {
	var b strings.Builder
	b.WriteString(`package tensor_test

import (
	"math"

	"github.com/asyncgen/asyncgen/runtime/op"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// elementwiseOps is every elementwise operation of the package.
var elementwiseOps = []struct {
	def  *op.Def
	call func(c float64, x ...*tensor.Tensor) *tensor.Tensor
}{
`)
	for _, d := range op.List() {
		if d.Unlisted || d.Expr == nil {
			continue
		}
		call := "x[0]." + d.Name
		var args []string
		switch {
		case d.Cond:
			call = "tensor." + d.Name
			args = []string{"x[0]", "x[1]", "x[2]"}
		case d.Tensors == 2:
			args = []string{"x[1]"}
		case d.Tensors == 3:
			args = []string{"x[1]", "x[2]"}
		}
		switch d.Scalars {
		case 1:
			args = append(args, "c")
		case 2:
			args = append(args, "c-2", "c")
		}
		fmt.Fprintf(&b, "\t{op.%s, func(c float64, x ...*tensor.Tensor) *tensor.Tensor { return %s(%s) }},\n",
			variable(d), call, strings.Join(args, ", "))
	}
	b.WriteString("}\n\n// f64Ops is every operation with a constant that can be an F64, with both.\nvar f64Ops = []struct {\n\tdef  *op.Def\n" +
		"\tcall func(c float64, x ...*tensor.Tensor) *tensor.Tensor\n\tlater func(c tensor.F64, x ...*tensor.Tensor) *tensor.Tensor\n}{\n")
	for _, d := range op.List() {
		if later := f64Name(d); later != "" && !d.Unlisted {
			args := "c"
			if d.Tensors == 2 {
				args = "x[1], c"
			}
			fmt.Fprintf(&b, "\t{op.%s, func(c float64, x ...*tensor.Tensor) *tensor.Tensor { return x[0].%s(%s) }, func(c tensor.F64, x ...*tensor.Tensor) *tensor.Tensor { return x[0].%s(%s) }},\n",
				variable(d), d.Name, args, later, args)
		}
	}
	b.WriteString("}\n\n// mathMethods are the methods of F64 for functions of package math.\nvar mathMethods = []struct {\n" +
		"\thost  any\n\tlater func(x, y tensor.F64) tensor.F64\n}{\n")
	for _, f := range kernel.MathFuncs() {
		operand := ""
		if f.Arity() == 2 {
			operand = "y"
		}
		fmt.Fprintf(&b, "\t{math.%v, func(x, y tensor.F64) tensor.F64 { return x.%[1]v(%s) }},\n", f, operand)
	}
	b.WriteString("}\n\n// reductions is every reduction of the package, without and with the axes kept.\nvar reductions = []struct {\n" +
		"\tdef        *op.Def\n\tcall, keep func(x *tensor.Tensor, axes ...int) *tensor.Tensor\n}{\n")
	for _, d := range op.List() {
		if d.Reduces {
			fmt.Fprintf(&b, "\t{op.%s, (*tensor.Tensor).%s, (*tensor.Tensor).%sKeep},\n", variable(d), d.Name, d.Name)
		}
	}
	b.WriteString("}\n")
	return b.String()
}
