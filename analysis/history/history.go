package history

import (
	_ "embed"
	"go/types"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT023.
var Analyzer = rule.Analyzer()

var rule = &blocking.Rule{ID: "AT023", Package: "history", Doc: doc, Values: true, Check: check}

func check(p *blocking.Pass) {
	for _, k := range p.Keepings() {
		d := analysis.Diagnostic{Pos: k.Pos, End: k.End, Message: message(k)}
		if k.Loop != nil {
			d.Related = k.Loop.Related()
		}
		p.Report(blocking.Warning, d)
	}
}

func message(k blocking.Keeping) string {
	part := types.ExprString(k.Part)
	switch k.Kind {
	case blocking.Averaged:
		return k.Kept + " keeps the history of " + part + " of every iteration, although the loop trains; add " + part + ".Detach()"
	case blocking.Carried:
		return k.Kept + " keeps the history of every iteration before, and nothing is differentiated through it; assign " + part + ".Detach(), or compute it with frozen layers"
	case blocking.Copied:
		return "gradients go through " + part + ", but " + k.Kept + " only follows another network; use nn.Frozen(" + k.Kept + ")"
	case blocking.Given:
		return k.Kept + " keeps the history of " + part + " of every iteration, of which only values are read; give it " + part + ".Detach()"
	case blocking.Listed, blocking.Held:
		return k.Kept + " keeps the history of " + part + " of every iteration, and is only read; keep " + part + ".Detach(), or compute it with frozen layers"
	}
	if k.Loop == nil {
		return k.Kept + " keeps the history of " + part + " of every call, and is only read; add " + part + ".Detach()"
	}
	return k.Kept + " keeps the history of " + part + " of every iteration, and is only read; add " + part + ".Detach()"
}
