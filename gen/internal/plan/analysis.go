package plan

import (
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/load"
)

// An Analysis answers questions about the functions of a program. It is not
// safe for concurrent use.
type Analysis struct {
	Program *load.Program
	API     *tensorapi.Profile
	InPlace bool // functions are rewritten where they stand, and their lines stay

	divide    func(*Function) (*Lift, *Cause)
	types     canon
	summaries map[*types.Func]*Effects // nil while one is being made
	lifts     map[*types.Func]lifting
	idents    map[*load.Package]map[string]bool // all identifiers in a package, and new ones
}

// New returns an analysis of prog. How a function is divided is up to divide: see [Analysis.Lift].
func New(prog *load.Program, divide func(*Function) (*Lift, *Cause)) *Analysis {
	return &Analysis{Program: prog, API: tensorapi.Ours(), divide: divide, summaries: make(map[*types.Func]*Effects),
		lifts: make(map[*types.Func]lifting), idents: make(map[*load.Package]map[string]bool)}
}

// Summary returns what calling fn does, apart from what its arguments do:
// from its directive, from its body, or else that it is unknown.
func (a *Analysis) Summary(fn *types.Func) *Effects {
	fn = fn.Origin()
	if e, ok := a.summaries[fn]; ok {
		if e == nil {
			return unknown(fn, "calls itself")
		}
		return e
	}
	a.summaries[fn] = nil
	e := a.summarise(fn)
	a.summaries[fn] = e
	return e
}

func unknown(fn *types.Func, why string) *Effects {
	return &Effects{Barrier: &Cause{Pos: fn.Pos(), Text: why, Code: UnknownEffects}}
}

func (a *Analysis) summarise(fn *types.Func) *Effects {
	if d, ok := a.Program.Effects(fn); ok {
		return declared(d, fn.Pos())
	}
	body, ok := a.Program.Body(fn)
	if !ok {
		return unknown(fn, "has effects that are unknown")
	}
	if body.Stub {
		return unknown(fn, "is generated itself, or uses cgo")
	}
	f := a.Function(body.Pkg, body.Decl)
	e := f.walk(body.Decl.Body, nil)
	return f.Outside(e)
}

// declared returns the effects that somebody has declared, apart from those on
// and through the arguments of a call: see [walker.declaredCall].
func declared(d load.Effects, pos token.Pos) *Effects {
	e := &Effects{}
	if d.Output {
		c := Cause{Pos: pos, Text: "writes to the outside"}
		e.read(Loc{Kind: World}, c)
		e.write(Loc{Kind: World}, c)
	}
	if d.Builds {
		c := Cause{Pos: pos, Text: "adds to a text in the making"}
		e.read(Loc{Kind: Drafts}, c)
		e.write(Loc{Kind: Drafts}, c)
	}
	if d.Stamps {
		note(&e.Stamps, Cause{Pos: pos, Text: "writes the time of the call"})
	}
	if d.Input {
		note(&e.Barrier, Cause{Pos: pos, Text: "may wait for the outside", Code: Blocks})
	}
	if d.Device {
		c := Cause{Pos: pos, Text: "enqueues device work"}
		note(&e.Enqueues, c)
		e.read(Loc{Kind: Cells}, c)
		e.write(Loc{Kind: Cells}, c)
	}
	return e
}

// Implementations returns the methods called name of types that satisfy iface,
// among those that pkg and the packages of its module that it needs declare:
// any of them may be behind a value of that type. Types of other modules are
// not seen; what a library says of its interface holds for them.
func (a *Analysis) Implementations(pkg *load.Package, iface *types.Interface, name string) []*types.Func {
	return slices.DeleteFunc(a.Program.Methods(pkg, name), func(fn *types.Func) bool {
		recv := fn.Signature().Recv().Type()
		return !types.Implements(recv, iface) && !types.Implements(types.NewPointer(recv), iface)
	})
}
