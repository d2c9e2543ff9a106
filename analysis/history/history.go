package history

import (
	"cmp"
	_ "embed"
	"go/types"
	"maps"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT023.
var Analyzer = rule.Analyzer()

var rule = &lint.Rule{ID: "AT023", Package: "history", Doc: doc, Infos: true, Values: true, Check: check}

func check(p *lint.Pass) {
	for _, k := range keepings(p.Package) {
		d := analysis.Diagnostic{Pos: k.Pos, End: k.End, Message: message(p, k)}
		if k.Loop != nil {
			d.Related = k.Loop.Related()
		}
		severity := lint.Warning
		if k.Given {
			severity = lint.Info
		}
		p.Report(severity, d)
	}
}

// variables lists the variables and fields that the package assigns, in the order of the source. Of two that one
// statement assigns, the first is reported.
func variables(pkg *blocking.Package) []*types.Var {
	return slices.SortedFunc(maps.Keys(pkg.Defs), func(v, w *types.Var) int { return cmp.Compare(v.Pos(), w.Pos()) })
}

func message(p *lint.Pass, k keeping) string {
	part := types.ExprString(k.Part)
	detached := part + ".Detach()"
	if !blocking.IsTensor(p.TypesInfo.TypeOf(k.Part)) { // a struct, or several results
		detached = "what Detach makes of it"
	}
	switch k.Kind {
	case averaging:
		if k.Loop == nil {
			return k.Kept + " keeps the history of each " + part + " that it averages; add " + part + ".Detach()"
		}
		return k.Kept + " keeps the history of " + part + " of every iteration, although the loop trains; add " + part + ".Detach()"
	case rewinding:
		return k.Kept + " keeps the history of every step before, which each step has differentiated; assign " + part + " without it, by Detach"
	case carrying:
		if k.Loop == nil {
			return k.Kept + " keeps the history of every call before, and nothing is differentiated through it; assign " + detached + ", or compute it with frozen layers"
		}
		return k.Kept + " keeps the history of every iteration before, and nothing is differentiated through it; assign " + detached + ", or compute it with frozen layers"
	case copying:
		return "gradients go through " + part + ", but " + k.Kept + " only follows another network; use nn.Frozen(" + k.Kept + ")"
	case untraining:
		return "gradients go through " + k.Kept + ", but the step doesn't train it; use " + part + ".Detach(), or nn.Frozen(" + k.Kept + ")"
	case aiming:
		return "gradients go through " + part + ", which is a part of what " + k.Kept + " is to predict; use Detach"
	case excluding:
		return "gradients go through " + part + ", but " + k.Kept + " is no part of what is trained; use nn.Frozen(" + k.Kept + ")"
	case evaluating:
		return part + " keeps what a gradient needs, and behaves as in training, but is only read; use nn.Frozen(" + k.Kept + ")"
	case giving:
		return k.Kept + " keeps the history of " + part + " of every iteration, of which only values are read; give it " + part + ".Detach()"
	case listing, holding:
		return k.Kept + " keeps the history of " + part + " of every iteration, and is only read; keep " + detached + ", or compute it with frozen layers"
	}
	if k.Loop == nil {
		return k.Kept + " keeps the history of " + part + " of every call, and is only read; add " + part + ".Detach()"
	}
	return k.Kept + " keeps the history of " + part + " of every iteration, and is only read; add " + part + ".Detach()"
}
