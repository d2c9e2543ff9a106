package clc

import (
	"fmt"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// mapArgs are the arguments of a Map kernel, by its number of inputs. mapFaultArgs also have the
// fault slots.
var mapArgs, mapFaultArgs [device.MaxInputs + 1][]Operand

func init() {
	for inputs := range device.MaxInputs + 1 {
		for i := range inputs + 1 {
			mapArgs[inputs] = append(mapArgs[inputs], operandOf(i))
		}
		mapFaultArgs[inputs] = append(mapArgs[inputs][:inputs+1:inputs+1], Operand{Kind: Fault})
	}
}

// operandOf is operand i of a command.
func operandOf(i int) Operand {
	if i < device.MaxOperands {
		return Operand{Buf, i}
	}
	return Operand{Part, i - device.MaxOperands}
}

func (l *Lowering) lowerMap(c *device.Command) error {
	k := c.Kernel
	f := form{flags: wide(c.N)}
	space := &l.axes[0]
	var strides [device.MaxInputs][]int
	hasViews := false
	for i := range k.In {
		strides[i] = c.Strides(i + 1)
		hasViews = hasViews || strides[i] != nil
	}
	if hasViews {
		if err := space.merge(c.Args.Shape, strides[:len(k.In)]...); err != nil {
			return err
		}
		if !space.isContiguous() {
			f.flags |= isView
			f.rank = printed(space)
		}
	}
	if f.flags&isView == 0 && c.N >= vectorsFrom && l.isAligned(c) {
		f.flags |= isVector
	}
	s, err := l.source(k, f, printMap)
	if err != nil {
		return err
	}
	l.within(c, 0, 0, c.N-1)
	for i := range k.In {
		if f.flags&isView != 0 {
			l.spans(c, i+1, i, space)
		} else {
			l.within(c, i+1, 0, c.N-1)
		}
	}
	args := mapArgs[len(k.In)]
	l.push(uint64(c.N), c.Imm[0], c.Imm[1])
	l.off(c, 0, k.Out.Size())
	for i, dt := range k.In {
		l.off(c, i+1, dt.Size())
	}
	for i := len(c.Imm); i < s.imms; i++ {
		l.push(c.Immediate(i))
	}
	if s.canFail {
		l.slot()
		args = mapFaultArgs[len(k.In)]
	}
	if f.flags&isView != 0 {
		l.view(space, f.rank)
	}
	l.launch(s, args, groupsFor((c.N+s.lanes-1)/s.lanes), items)
	return nil
}

const (
	lanes       = 4       // of a vector
	vectorsFrom = 1 << 16 // elements that make vectors worth a kernel of their own
	vectorNodes = 12      // most nodes of an expression that memory limits, not arithmetic
)

// isAligned reports whether all operands of c, which are contiguous, are aligned for vectors. The
// memory objects themselves are aligned.
func (l *Lowering) isAligned(c *device.Command) bool {
	isAligned := l.offset(c, 0, c.Kernel.Out.Size())%lanes == 0
	for i, dt := range c.Kernel.In {
		isAligned = isAligned && l.offset(c, i+1, dt.Size())%lanes == 0
	}
	return isAligned
}

// isSimple reports whether computing e takes less time than loading its operands.
func isSimple(e *kernel.Expr) bool {
	nodes := e.Nodes()
	return len(nodes) <= vectorNodes && !slices.ContainsFunc(nodes, func(x *kernel.Expr) bool {
		if x.Kind() != kernel.Application {
			return false
		}
		switch x.Prim() {
		case kernel.PrimPow, kernel.PrimMod, kernel.PrimExp, kernel.PrimExpm1, kernel.PrimLog, kernel.PrimLog1p, kernel.PrimSin, kernel.PrimCos, kernel.PrimTanh, kernel.PrimErf:
			return true
		}
		return dividesInts(x)
	})
}

// dividesInts reports whether e is an operation that fails for some integers.
func dividesInts(e *kernel.Expr) bool {
	return e.Kind() == kernel.Application && (e.Prim() == kernel.PrimDiv || e.Prim() == kernel.PrimPow) && e.DType() == device.Int64
}

// isOf returns an error unless e is an expression of k's inputs that has the type of its output.
func isOf(k *device.Kernel, e *kernel.Expr) error {
	if e == nil || e.DType() != k.Out || e.Args() > len(k.In) || len(k.In) > device.MaxInputs {
		return unsupported(k)
	}
	for _, x := range e.Nodes() {
		if x.Kind() == kernel.Operand && x.DType() != k.In[x.Index()] {
			return unsupported(k)
		}
	}
	return nil
}

func printMap(p *program, k *device.Kernel, f form) error {
	e, ok := k.Body.(*kernel.Expr)
	if !ok {
		return unsupported(k)
	}
	if err := isOf(k, e); err != nil {
		return err
	}
	p.name = "ag_map"
	p.params("N", "IMM0", "IMM1", "OUT")
	for i := range k.In {
		p.params(fmt.Sprintf("IN%d", i))
	}
	p.imms = e.Imms()
	for i := len(device.Command{}.Imm); i < p.imms; i++ {
		p.params(fmt.Sprintf("IMM%d", i))
	}
	fails := slices.ContainsFunc(e.Nodes(), dividesInts)
	if p.canFail = fails; fails {
		p.params("SLOT")
	}
	isView := f.flags&isView != 0
	if isView {
		p.view("space", f.rank, len(k.In))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "AG_KERNEL AG_SIZE(%d) void ag_map(AG_GLOBAL %s *out", items, ctype(k.Out))
	for i, dt := range k.In {
		fmt.Fprintf(&b, ", AG_GLOBAL const %s *in%d", ctype(dt), i)
	}
	if fails {
		b.WriteString(", AG_GLOBAL ulong *fault")
	}
	b.WriteString(", ag_params p)\n{\n")
	begin := "AG_GLOBAL_ID"
	if f.flags&isVector != 0 && isSimple(e) {
		p.lanes = lanes
		printVectors(&b, k, e)
		begin += " + P_N / 4 * 4" // the rest, one by one
	}
	fmt.Fprintf(&b, "\tfor (I i = %s; i < P_N; i += AG_GLOBAL_SIZE) {\n", begin)
	operand := func(i int) string { return fmt.Sprintf("in%d[P_IN%[1]d + i]", i) }
	if isView {
		names := ""
		for i := range k.In {
			fmt.Fprintf(&b, "\t\tlong at%d = P_IN%[1]d;\n", i)
			names += fmt.Sprintf(", &at%d", i)
		}
		fmt.Fprintf(&b, "\t\tag_locate_space(i, &p%s);\n", names)
		operand = func(i int) string { return fmt.Sprintf("in%d[at%[1]d]", i) }
	}
	if fails {
		b.WriteString("\t\tint wrong = 0;\n")
	}
	result := printExpr(&b, e, operand)
	if fails {
		fmt.Fprintf(&b, "\t\tif (wrong) fault[P_SLOT] = %d;\n", zeroDivision)
	}
	fmt.Fprintf(&b, "\t\tout[P_OUT + i] = %s;\n\t}\n}\n", result)
	p.body = b.String()
	return nil
}

// printVectors prints a loop in which an item computes four neighbouring elements at a time.
func printVectors(b *strings.Builder, k *device.Kernel, e *kernel.Expr) {
	b.WriteString("\tfor (I i = AG_GLOBAL_ID; i < P_N / 4; i += AG_GLOBAL_SIZE) {\n")
	for i, dt := range k.In {
		fmt.Fprintf(b, "\t\tconst %s4 x%d = ((AG_GLOBAL const %[1]s4 *)(in%[2]d + P_IN%[2]d))[i];\n", ctype(dt), i)
	}
	fmt.Fprintf(b, "\t\t%s4 y;\n", ctype(k.Out))
	for _, lane := range []string{"x", "y", "z", "w"} {
		b.WriteString("\t\t{\n")
		result := printExpr(b, e, func(i int) string { return fmt.Sprintf("x%d.%s", i, lane) })
		fmt.Fprintf(b, "\t\ty.%s = %s;\n\t\t}\n", lane, result)
	}
	fmt.Fprintf(b, "\t\t((AG_GLOBAL %s4 *)(out + P_OUT))[i] = y;\n\t}\n", ctype(k.Out))
}

// printExpr prints a statement for each node of e and returns the name of the result. operand
// returns the text of an operand.
func printExpr(b *strings.Builder, e *kernel.Expr, operand func(i int) string) string {
	names := map[*kernel.Expr]string{}
	for i, x := range e.Nodes() {
		var text string
		switch x.Kind() {
		case kernel.Operand:
			text = operand(x.Index())
		case kernel.Immediate:
			text = value(x.DType(), fmt.Sprintf("P_IMM%d", x.Index()))
		case kernel.Constant:
			text = value(x.DType(), fmt.Sprintf("%#xUL", x.Bits()))
		case kernel.Application:
			var operands [3]string
			for i, in := range x.In() {
				operands[i] = names[in]
			}
			text = primitive(x, operands)
		}
		names[x] = fmt.Sprintf("v%d", i)
		fmt.Fprintf(b, "\t\tconst %s v%d = %s;\n", ctype(x.DType()), i, text)
	}
	return names[e]
}

// primitives are the texts for floats. _ stands for the type's suffix, # for its size in bits.
var primitives = map[kernel.Prim]string{
	kernel.PrimNeg:   "-x",
	kernel.PrimAbs:   "ag_abs_(x)",
	kernel.PrimAdd:   "x + y",
	kernel.PrimSub:   "x - y",
	kernel.PrimMul:   "x * y",
	kernel.PrimDiv:   "x / y",
	kernel.PrimMax:   "ag_max_(x, y)",
	kernel.PrimMin:   "ag_min_(x, y)",
	kernel.PrimPow:   "ag_pow_(x, y)",
	kernel.PrimMod:   "ag_mod_(x, y)",
	kernel.PrimSqrt:  "AG_SQRT#(x)",
	kernel.PrimExp:   "ag_exp_(x)",
	kernel.PrimExpm1: "ag_expm1_(x)",
	kernel.PrimLog:   "ag_log_(x)",
	kernel.PrimLog1p: "ag_log1p_(x)",
	kernel.PrimSin:   "ag_sin_(x)",
	kernel.PrimCos:   "ag_cos_(x)",
	kernel.PrimTanh:  "ag_tanh_(x)",
	kernel.PrimErf:   "ag_erf_(x)",
	kernel.PrimFloor: "AG_FLOOR#(x)",
	kernel.PrimCeil:  "AG_CEIL#(x)",
	kernel.PrimRound: "AG_RINT#(x)",
	kernel.PrimShl:   "ag_shl_(x, y)",
	kernel.PrimShr:   "ag_shr_(x, y)",
	kernel.PrimEq:    "x == y",
	kernel.PrimNe:    "x != y",
	kernel.PrimLt:    "x < y",
	kernel.PrimLe:    "x <= y",
	kernel.PrimAnd:   "x & y",
	kernel.PrimOr:    "x | y",
	kernel.PrimNot:   "x ^ 1",
	kernel.PrimWhere: "x ? y : z",
}

// intPrimitives are the texts for int64 where they differ.
var intPrimitives = map[kernel.Prim]string{
	kernel.PrimNeg: "ag_neg_(x)",
	kernel.PrimAdd: "ag_add_(x, y)",
	kernel.PrimSub: "ag_sub_(x, y)",
	kernel.PrimMul: "ag_mul_(x, y)",
	kernel.PrimDiv: "ag_div_(x, y, &wrong)",
	kernel.PrimPow: "ag_pow_(x, y, &wrong)",
	kernel.PrimNot: "~x",
}

// primitive returns the text of the application e for operands with these names.
func primitive(e *kernel.Expr, operands [3]string) string {
	if e.Prim() == kernel.PrimCast {
		return cast(operands[0], e.In()[0].DType(), e.DType())
	}
	of := e.In()[len(e.In())-1].DType()
	text := primitives[e.Prim()]
	if special, ok := intPrimitives[e.Prim()]; ok && of == device.Int64 {
		text = special
	}
	return expand(text, of, operands)
}

// expand replaces the operands x, y and z and the marks _ and # in a text.
func expand(text string, of device.DType, operands [3]string) string {
	bits := "32"
	if of == device.Float64 {
		bits = "64"
	}
	var b strings.Builder
	isLetter := func(i int) bool {
		return i >= 0 && i < len(text) && (text[i] >= 'a' && text[i] <= 'z' || text[i] == '_')
	}
	for i := range len(text) {
		switch c := text[i]; {
		case c == '#':
			b.WriteString(bits)
		case c == '_' && i+1 < len(text) && text[i+1] == '(':
			b.WriteString(suffix(of))
		case c >= 'x' && c <= 'z' && !isLetter(i-1) && !isLetter(i+1):
			b.WriteString(operands[c-'x'])
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// cast returns the text that converts x as the primitive does: between two types for which [kernel.Converts] holds.
func cast(x string, from, to device.DType) string {
	switch {
	case from == to:
		return x
	case to == device.Float16 || to == device.BFloat16:
		if from != device.Float32 {
			x = "ag_odd" + suffix(from) + "(" + x + ")"
		}
		return "ag_to" + suffix(to) + "(" + x + ")"
	case from == device.Float16 || from == device.BFloat16:
		return "ag_from" + suffix(from) + "(" + x + ")"
	case to == device.Bool:
		return x + " != 0"
	case to == device.Int64 && from.IsFloat():
		return "ag_long" + suffix(from) + "(" + x + ")"
	}
	return "(" + ctype(to) + ")" + x
}

// reducerText returns a reducer as the body of a macro with operands x and y.
func reducerText(r kernel.Reducer, dt device.DType) string {
	text := primitives[r.Prim()]
	if special, ok := intPrimitives[r.Prim()]; ok && dt == device.Int64 {
		text = special
	}
	return "(" + expand(text, dt, [3]string{"(x)", "(y)", ""}) + ")"
}
