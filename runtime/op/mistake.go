package op

import (
	"cmp"
	"strings"

	"github.com/asyncgen/asyncgen/device"
)

// A Mistake is the value with which operations panic when a program makes a mistake, such as operands
// whose shapes don't fit, before anything is enqueued.
type Mistake struct {
	// Package is that of the function, such as "nn"; "" is tensor.
	Package string
	Op      string // the function: "Add"
	Text    string // in package tensor one of the constants below, or a text that begins with one
	Shapes  []device.Shape
	DTypes  []device.DType
	// Devices are those of the operands, if they are the mistake.
	Devices []device.Device
	// Layer says which layer of a model made the call: "encoder.layers.0, Dense(10)", with its name if that is known.
	Layer string
	// Part is that layer, a module of package nn or one that is in an nn.Sequential; nil: none is known.
	Part any
}

// The texts of mistakes.
const (
	MistakeBroadcast   = "operands cannot be broadcast together"
	MistakeShapes      = "operands differ in shape"
	MistakeDTypes      = "operands differ in element type: convert one with As"
	MistakeDevices     = "operands are on different devices: move one with To"
	MistakeType        = "element type not supported"
	MistakeMatMul      = "inner lengths differ"
	MistakeRank        = "wrong rank"
	MistakeChannels    = "channels do not fit"
	MistakeWindow      = "impossible window"
	MistakeAxis        = "axis out of range"
	MistakeTwice       = "axis named twice"
	MistakeReshape     = "number of elements differs"
	MistakeShape       = "impossible shape"
	MistakeRange       = "index out of range"
	MistakeStep        = "impossible step"
	MistakeIndices     = "indices are int64: convert with As"
	MistakeNothing     = "no operands"
	MistakeOperands    = "wrong number of operands"
	MistakeEmpty       = "no elements to choose from"
	MistakeBias        = "the bias is a vector as long as the rows of the product"
	MistakeVector      = "gain and bias are vectors as long as the axis"
	MistakeProbability = "a probability is from 0 to 1"
	MistakeEquation    = "wrong equation"
	MistakeScalar      = "constant is not an int64"
	MistakeRounds      = "constant does not fit the element type"
	MistakeExact       = "from 2^53 on a float64 does not hold every integer"
	MistakeCondition   = "the condition is a bool tensor: compare (GtScalar and the like), or convert with As"
	MistakeLength      = "data does not fill the shape"
	MistakeItem        = "not a one-element tensor"
	MistakeNil         = "nil tensor"
	MistakeGradient    = "no gradient"
	MistakeReleased    = "the graph was released by an earlier Backward"
	MistakeNoParameter = "parameter has no value yet: layers give theirs a value at their first Forward"
	MistakeNoBuffer    = "buffer has no value yet: layers give theirs a value at their first Forward"
	MistakeFrozen      = "its value is frozen"
	MistakeDead        = "used after the program declared it dead"
	MistakeCapture     = "can't be captured"
	MistakeRow         = "not of a row in VMap"
	MistakeRowEnded    = "the row of a VMap that has returned, or was declared dead"
)

// Error returns a text like "tensor: Add: operands cannot be broadcast together: float32[2 3], float32[4]".
func (m *Mistake) Error() string {
	var b strings.Builder
	b.WriteString(cmp.Or(m.Package, "tensor"))
	b.WriteString(": ")
	b.WriteString(m.Op)
	b.WriteString(": ")
	b.WriteString(m.Text)
	for i, s := range m.Shapes {
		if i == 0 {
			b.WriteString(": ")
		} else {
			b.WriteString(", ")
		}
		b.WriteString(m.DTypes[i].String())
		b.WriteString(s.String())
		if i < len(m.Devices) {
			b.WriteString(" on " + m.Devices[i].Name())
		}
	}
	if m.Layer != "" {
		b.WriteString(" (" + m.Layer + ")")
	}
	return b.String()
}

// Unsupported returns the text of a Mistake about operands that have none of the given types.
func Unsupported(types Types) string {
	return MistakeType + " (it takes " + types.String() + ": convert with As)"
}

// wrong panics with a Mistake about the first operands of the plan, as many as given.
func (p *Plan) wrong(name, text string, operands int) {
	m := &Mistake{Op: name, Text: text}
	for i := range operands {
		m.Shapes = append(m.Shapes, p.In[i].Shape)
		m.DTypes = append(m.DTypes, p.Types[i])
	}
	panic(m)
}
