package clc

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/asyncgen/asyncgen/device"
)

//go:embed dialect.h
var dialect string

//go:embed library.cl
var libraryText string

//go:embed kernels.cl
var kernelsText string

// A form is what the text of a kernel depends on besides the device.Kernel.
type form struct {
	part  part
	rank  uint8 // for how many axes its views are printed
	flags flags
	size  uint16 // that the text has as a constant
}

// A part is one of the kernels that a command is made of.
type part uint8

const (
	partWhole part = iota
	partTree
	partChunks
	partMerge
	partSums
	partSettle
	partZero
	partTiles
	partLong
	partFloat
)

// flags are choices of a form.
type flags uint16

const (
	isWide   flags = 1 << iota // numbers of elements need 64 bits
	isView                     // operands are not contiguous
	isAlone                    // an item computes a result
	isLast                     // the last part
	isVector                   // operands begin where vectors do
	isSoft                     // for a device without float64
)

// sources holds what was printed: by kernel and form, and by text.
var sources struct {
	mu     sync.RWMutex // guards what follows
	byForm map[formKey]*Source
	byText map[string]*Source
}

type formKey struct {
	kernel int
	form   form
}

func sourceOf(k *device.Kernel, f form, make func(*program, *device.Kernel, form) error) (*Source, error) {
	key := formKey{k.ID, f}
	sources.mu.RLock()
	s := sources.byForm[key]
	sources.mu.RUnlock()
	if s != nil {
		return s, nil
	}
	p := &program{isWide: f.flags&isWide != 0, isSoft: f.flags&isSoft != 0}
	if err := make(p, k, f); err != nil {
		return nil, err
	}
	text := p.text()
	sources.mu.Lock()
	defer sources.mu.Unlock()
	if sources.byForm == nil {
		sources.byForm, sources.byText = map[formKey]*Source{}, map[string]*Source{}
	}
	s = sources.byText[text]
	if s == nil {
		s = &Source{ID: len(sources.byText), Name: p.name, Text: text, usesFP64: strings.Contains(text[len(dialect):], "double"), canFail: p.canFail, lanes: max(p.lanes, 1)}
		sources.byText[text] = s
	}
	sources.byForm[key] = s
	return s, nil
}

// A program is a text that is being printed.
type program struct {
	name    string
	canFail bool
	isWide  bool
	isSoft  bool
	lanes   int             // see Source
	defines strings.Builder // macros and views
	words   int             // of the parameters so far
	body    string          // the kernel
}

// define adds a macro, perhaps one with operands.
func (p *program) define(name string, value any) {
	fmt.Fprintf(&p.defines, "#define %s %v\n", name, value)
}

// defineIf adds a macro that is 1 or 0.
func (p *program) defineIf(name string, is bool) {
	value := 0
	if is {
		value = 1
	}
	p.define(name, value)
}

// params adds words of the parameters, as the macros P_NAME.
func (p *program) params(names ...string) {
	for _, name := range names {
		p.define("P_"+name, fmt.Sprintf("p.w[%d]", p.words))
		p.words++
	}
}

// view adds the function ag_locate_NAME for a view of at most rank axes and the given number of
// operands, whose parameters are what [Lowering.view] pushes. It ends after the last axis that
// there is, without a loop, for which the parameters would have to be memory.
func (p *program) view(name string, rank uint8, operands int) {
	first, dims := p.words, p.words+1
	p.words += 1 + int(rank)*(1+operands)
	b := &p.defines
	fmt.Fprintf(b, "AG_INLINE void ag_locate_%s(I i, const ag_params *p", name)
	for o := range operands {
		fmt.Fprintf(b, ", long *x%d", o)
	}
	fmt.Fprintf(b, ")\n{\n\tI q, c;\n")
	for axis := range int(rank) {
		index := "i"
		if axis+1 < int(rank) {
			fmt.Fprintf(b, "\tq = p->w[%d] > %d ? i / (I)p->w[%d] : 0;\n\tc = i - q * (I)p->w[%[3]d];\n", first, axis+1, dims+axis)
			index = "c"
		}
		for o := range operands {
			fmt.Fprintf(b, "\t*x%d += (long)%s * (long)p->w[%d];\n", o, index, dims+(o+1)*int(rank)+axis)
		}
		if axis+1 < int(rank) {
			fmt.Fprintf(b, "\tif (p->w[%d] <= %d) return;\n\ti = q;\n", first, axis+1)
		}
	}
	b.WriteString("}\n")
}

// kernel makes the kernel of this name from kernels.cl the program's.
func (p *program) kernel(name string) { p.name, p.body = "ag_"+name, kernelTexts()[name] }

// text is the whole program.
func (p *program) text() string {
	index := "uint"
	if p.isWide {
		index = "ulong"
	}
	own := p.defines.String() + p.body
	if p.isSoft {
		own = strings.ReplaceAll(own, "ag_pow_f32(", "ag_soft_pow(")
	}
	var b strings.Builder
	b.WriteString(dialect)
	for _, paragraph := range needed(own) {
		b.WriteString(paragraph + "\n")
	}
	fmt.Fprintf(&b, "typedef struct { ulong w[%d]; } ag_params;\ntypedef %s I;\n%s", max(p.words, 1), index, own)
	return b.String()
}

var kernelTexts = sync.OnceValue(func() map[string]string {
	texts := map[string]string{}
	for _, part := range strings.Split(kernelsText, "\n//// ")[1:] {
		name, text, _ := strings.Cut(part, "\n")
		texts[name] = text
	}
	return texts
})

var word = regexp.MustCompile(`\bag_\w+`)

// library are the paragraphs of library.cl, by the first name in each.
var library = sync.OnceValue(func() map[string]string {
	paragraphs := map[string]string{}
	for _, text := range strings.Split(libraryText, "\n\n")[1:] {
		paragraphs[word.FindString(text)] = text
	}
	return paragraphs
})

// needed lists the paragraphs of the library that a text needs, each after those that it needs itself.
func needed(text string) (paragraphs []string) {
	seen := map[string]bool{}
	var visit func(text string)
	visit = func(text string) {
		for _, name := range word.FindAllString(text, -1) {
			if paragraph, ok := library()[name]; ok && !seen[name] {
				seen[name] = true
				visit(paragraph)
				paragraphs = append(paragraphs, paragraph)
			}
		}
	}
	visit(text)
	return paragraphs
}

// ctype is the type in the text, and suffix how the library's functions for it end.
func ctype(dt device.DType) string {
	return [...]string{device.Float32: "float", device.Float64: "double", device.Int64: "long", device.Bool: "uchar"}[dt]
}

func suffix(dt device.DType) string {
	return [...]string{device.Float32: "_f32", device.Float64: "_f64", device.Int64: "_i64", device.Bool: "_bool"}[dt]
}

// ofSize is an unsigned type of so many bytes, for what is only moved.
func ofSize(bytes int) string {
	return map[int]string{1: "uchar", 4: "uint", 8: "ulong"}[bytes]
}

// value is the text of a value of type dt with the given bits, an expression.
func value(dt device.DType, bits string) string {
	switch dt {
	case device.Float32:
		return "AG_FLOAT32(" + bits + ")"
	case device.Float64:
		return "AG_FLOAT64(" + bits + ")"
	case device.Int64:
		return "((long)(" + bits + "))"
	}
	return "((uchar)((" + bits + ") != 0))"
}
