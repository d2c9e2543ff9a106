package fuzz

import (
	"fmt"
	"regexp"
	"strings"
)

// Helpers that stand in a package of their own, away from the kernels: what is made of them there must not need
// anything of that package that only it can name.

// awayHead begins the file of that package.
const awayHead = `// Package away has functions that kernels of other packages call.
package away

import (
	"context"
	"fmt"
	"io"
	"math"
	"sort"
	"strings"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"

	"example.com/fuzz/help"
)

// What functions need, perhaps.
var (
	_ = fmt.Sprint
	_ io.Writer
	_ = math.Abs
	_ = sort.Float64s
	_ = strings.ToUpper
	_ = nn.MSELoss
	_ *tensor.Tensor
	_ = help.Most
	_ context.Context
)

// None does nothing.
func None() {}
`

// ofKernels finds what only the package of the kernels has: what is handed to kernels, types, and
// the functions and variables of the header.
var ofKernels = func() *regexp.Regexp {
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^(?:func|var) (\w+)`).FindAllStringSubmatch(header, -1) {
		names = append(names, m[1])
	}
	return regexp.MustCompile(`\b(m\.|in\b|stat\b|(` + strings.Join(names, "|") + `)[(\[.])`)
}()

// awayHelper makes a function of the package away, if it happens to need nothing of that of the
// kernel; else it stands there.
func (g *maker) awayHelper() {
	fn := &function{result: []kind{tFloat, tMat, none}[g.choose(3)], params: []*variable{{name: "x", kind: tMat}, {name: "v", kind: tFloat}}}
	g.second(fn)
	noCells := g.noCells
	g.noCells = true
	g.helperOf(fn)
	g.noCells = noCells
	fn.isAway = !ofKernels.MatchString(g.p.newPrinter().function(fn))
}

// away are the functions of p that stand in the package away, as source.
func (p *program) away() string {
	if p.kept != nil {
		return p.kept.away
	}
	w := p.newPrinter()
	text := ""
	for _, h := range p.helpers {
		if h.isAway && w.called[h.name] {
			text += fmt.Sprintf("\n// %s is called by kernels.\n%s", w.helper(h), w.function(h))
		}
	}
	return text
}

// listing is all of the source of p.
func (p *program) listing() string {
	text := p.source("")
	if away := p.away(); away != "" {
		text += "// In the package away:\n" + away
	}
	return text
}
