// Package clc prints kernels in OpenCL C. It turns a command of package device into launches of
// kernels on a GPU, with the results that package kernel defines.
//
// The text is OpenCL C 1.2 behind a layer of macros (dialect.h), so clang can also compile it to
// NVIDIA's PTX. It uses only correctly rounded IEEE 754 operations, fused multiply-adds and bit
// operations, with contraction off; the functions of package kernel are made of these. So on a
// device that rounds correctly and keeps denormal numbers, all results have the bits of the CPU's.
// An OpenCL device does so in float64, and in float32 if it offers
// -cl-fp32-correctly-rounded-divide-sqrt. Without that option, quotients and square roots of
// float32 may be 3 ulp off.
//
// The package knows no driver: backends compile the text and run it.
//
//	l := clc.Lowering{Limits: limits}
//	err := l.Lower(&command, &clc.Place{})
//	for _, launch := range l.Launches {
//		// compile launch.Source, set launch.Args and launch.Params, enqueue
//	}
package clc

import (
	"fmt"

	"github.com/asyncgen/asyncgen/device"
)

// Options are the compiler options that every program needs. A device with
// CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT also needs -cl-fp32-correctly-rounded-divide-sqrt.
const Options = "-cl-std=CL1.2 -w"

// Limits are the capabilities of a device.
type Limits struct {
	FP64       bool // it has float64; if not, commands that need it fail with ErrUnsupported
	GroupSize  int  // work items of a work group: at least 256
	LocalBytes int  // local memory of a work group: at least 32 KiB
	Units      int  // roughly how many work groups run at once
}

// A Source is the text of a program with one kernel. Equal texts are the same Source.
type Source struct {
	ID   int // dense, from 0
	Name string
	Text string

	usesFP64 bool
	canFail  bool // the kernel takes the buffer of fault slots as an argument
	imms     int  // how many immediates the kernel of a Map or Reduce takes
	lanes    int  // how many elements a work item of a Map computes at a time
}

// An OperandKind says which memory an Operand is.
type OperandKind uint8

const (
	Buf     OperandKind = iota // Command.Buf[Index]
	Scratch                    // Lowering.Scratch[Index]
	Fault                      // the buffer of all fault slots
	Part                       // the buffer of Command.Args.Parts[Index]
)

// An Operand is a pointer argument of a kernel.
type Operand struct {
	Kind  OperandKind
	Index int
}

// A Launch runs the kernel of Source in one dimension, with Groups work groups of Local items
// each. The kernel's arguments are Args, in order, followed by Params as one struct by value.
type Launch struct {
	Source        *Source
	Args          []Operand // shared: callers do not change them
	Params        []uint64
	Groups, Local int
}

// A Place says where the operands of a command are.
type Place struct {
	// Base has, for each operand, the offset in bytes of its buffer in the kernel's memory object.
	// Offsets are multiples of 8.
	Base [device.MaxOperands]int64
	// Parts has the same offsets for Args.Parts. If it is nil, all of them are 0.
	Parts []int64
	// Fault is the index of the command's slot in the buffer of fault slots. A slot has FaultWords
	// words.
	Fault int64
}

// base is the offset of operand i of a command.
func (p *Place) base(i int) int64 {
	switch {
	case i < device.MaxOperands:
		return p.Base[i]
	case p.Parts == nil:
		return 0
	}
	return p.Parts[i-device.MaxOperands]
}

// A Lowering turns commands into launches. It is reused, by one goroutine at a time.
type Lowering struct {
	Limits Limits
	// Launches has the launches of all commands lowered since Reset, in the order to run them.
	// Their Params are valid until the next Reset.
	Launches []Launch
	// Scratch has the sizes in bytes of the scratch buffers that the last command's launches use.
	// The buffers need not be initialised.
	Scratch []int64
	// CanFail says that the last command may fail. If it fails, it writes to its fault slot, which
	// must be zero before.
	CanFail bool

	words   []uint64 // the Params of all launches
	first   int      // where the next launch's words begin
	place   *Place
	axes    [4]axes
	outside error // names the command's first operand that reaches outside of its buffer; nil: none
}

// Reset forgets the launches.
func (l *Lowering) Reset() {
	l.Launches, l.words = l.Launches[:0], l.words[:0]
}

// Lower appends the launches of c: none if c has no elements. On an error it appends nothing. The
// error wraps ErrUnsupported, or says that an operand reaches outside of its buffer. The codes
// Math, Upload and Download are never supported. Lowering an element-wise command allocates nothing
// but room for its launches.
func (l *Lowering) Lower(c *device.Command, at *Place) error {
	l.Scratch, l.CanFail, l.place = l.Scratch[:0], false, at
	if l.Limits.GroupSize < 256 || l.Limits.LocalBytes < 32<<10 {
		return fmt.Errorf("opencl: work groups of %d items with %d bytes, 256 with %d are needed: %w", l.Limits.GroupSize, l.Limits.LocalBytes, 32<<10, device.ErrUnsupported)
	}
	if int(c.Kernel.Code) >= len(lowerings) || lowerings[c.Kernel.Code] == nil || len(c.Kernel.In) > device.MaxInputs {
		return unsupported(c.Kernel)
	}
	if c.N <= 0 {
		return nil
	}
	launches, words := len(l.Launches), len(l.words)
	l.first = words
	l.outside = nil
	err := lowerings[c.Kernel.Code](l, c)
	if err == nil {
		err = l.outside
	}
	if err != nil {
		l.Launches, l.words = l.Launches[:launches], l.words[:words]
		return err
	}
	return nil
}

var lowerings = [...]func(*Lowering, *device.Command) error{
	device.Map:        (*Lowering).lowerMap,
	device.Reduce:     (*Lowering).lowerReduce,
	device.ArgReduce:  (*Lowering).lowerArgReduce,
	device.Scan:       (*Lowering).lowerScan,
	device.ArgSort:    (*Lowering).lowerArgSort,
	device.Rows:       (*Lowering).lowerRows,
	device.MatMul:     (*Lowering).lowerMatMul,
	device.Conv:       (*Lowering).lowerConv,
	device.Pool:       (*Lowering).lowerPool,
	device.ArgPool:    (*Lowering).lowerPool,
	device.Gather:     (*Lowering).lowerGather,
	device.ScatterAdd: (*Lowering).lowerScatterAdd,
	device.Copy:       (*Lowering).lowerCopy,
	device.Concat:     (*Lowering).lowerConcat,
	device.Fill:       (*Lowering).lowerFill,
	device.Iota:       (*Lowering).lowerIota,
	device.Random:     (*Lowering).lowerRandom,
}

func unsupported(k *device.Kernel) error {
	return fmt.Errorf("opencl: kernel %s, a %v of %v to %v: %w", k.Name, k.Code, k.In, k.Out, device.ErrUnsupported)
}

// FaultWords is the length of a fault slot in words of 8 bytes. The first word says what went wrong
// (0: nothing). For a wrong index, the others are its row-major place among the indices, the index
// itself, and the length of the axis.
const FaultWords = 4

const (
	wrongIndex   = 1
	zeroDivision = 2
)

// errZeroDivision is the error of a CPU kernel that divides by zero: Go's panic, as an error. So a
// program reports the same on all devices.
var errZeroDivision = func() (err error) {
	defer func() { err = fmt.Errorf("kernel panicked: %w", recover().(error)) }()
	zero := 0
	return fmt.Errorf("no panic: %d", 1/zero)
}()

// Failure returns the error in the fault slot of a command that has run, or nil.
func Failure(slot []int64) error {
	switch slot[0] {
	case 0:
		return nil
	case wrongIndex:
		return &device.IndexError{Index: slot[2], Length: int(slot[3])}
	}
	return errZeroDivision
}

// within checks that the elements least to most of operand i, counted from where it begins, are in its
// buffer. If not, it sets l.outside, and Lower fails.
func (l *Lowering) within(c *device.Command, i, least, most int) {
	dt := c.Kernel.Out
	if i > 0 {
		dt = c.Kernel.In[i-1]
	}
	b, off := c.Operand(i)
	if l.outside == nil && (off+least < 0 || int64(off+most+1) > b.Bytes/int64(dt.Size())) {
		l.outside = fmt.Errorf("opencl: kernel %s: operand %d reaches outside of its buffer", c.Kernel.Name, i)
	}
}

// spans does what within does for all elements of operand i in the product of the given spaces. In
// each space the operand is number o.
func (l *Lowering) spans(c *device.Command, i, o int, spaces ...*axes) {
	least, most := 0, 0
	for _, a := range spaces {
		for axis, d := range a.dims[:a.rank] {
			if d == 0 {
				return
			}
			span := (d - 1) * a.strides[o][axis]
			least, most = least+min(span, 0), most+max(span, 0)
		}
	}
	l.within(c, i, least, most)
}

// push appends words to the parameters of the next launch.
func (l *Lowering) push(words ...uint64) { l.words = append(l.words, words...) }

// offset returns where operand i of c begins in its memory object, in elements of the given size.
func (l *Lowering) offset(c *device.Command, i, size int) uint64 {
	_, off := c.Operand(i)
	return uint64(l.place.base(i))/uint64(size) + uint64(off)
}

// off pushes the offset of operand i.
func (l *Lowering) off(c *device.Command, i, size int) { l.push(l.offset(c, i, size)) }

// slot pushes where the command's fault slot begins.
func (l *Lowering) slot() {
	l.CanFail = true
	l.push(uint64(l.place.Fault) * FaultWords)
}

// launch appends a launch of s with the words pushed since the last launch.
func (l *Lowering) launch(s *Source, args []Operand, groups, local int) {
	l.Launches = append(l.Launches, Launch{Source: s, Args: args, Params: l.words[l.first:len(l.words):len(l.words)], Groups: groups, Local: local})
	l.first = len(l.words)
}

// scratch adds a scratch buffer.
func (l *Lowering) scratch(bytes int) { l.Scratch = append(l.Scratch, int64(bytes)) }

// source returns the Source of form f of k. make prints it if it is new. If the text needs float64
// and the device has none, source tries the soft form.
func (l *Lowering) source(k *device.Kernel, f form, make func(*program, *device.Kernel, form) error) (*Source, error) {
	s, err := sourceOf(k, f, make)
	if err == nil && s.usesFP64 && !l.Limits.FP64 {
		f.flags |= isSoft
		s, err = sourceOf(k, f, make)
	}
	if err == nil && s.usesFP64 && !l.Limits.FP64 {
		return nil, fmt.Errorf("opencl: kernel %s needs float64, which the device has not: %w", k.Name, device.ErrUnsupported)
	}
	return s, err
}

const (
	items     = 256     // of a work group
	maxGroups = 1 << 16 // most work groups of a kernel whose items loop over the elements
)

// groupsFor returns how many work groups compute n elements. Each item computes one or more.
func groupsFor(n int) int { return min((n+items-1)/items, maxGroups) }
