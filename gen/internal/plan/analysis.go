package plan

import (
	"go/token"
	"go/types"
	"maps"
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
	summaries map[calledFrom]*Effects
	making    map[calledFrom]int // functions that are being summarised, and how deep in each other
	outermost int                // the depth of the outermost of them that was called since the innermost began
	byHome    bool               // what has been summarised since the innermost began is what it is for this home
	partial   map[calledFrom]partial
	lifts     map[functionForm]lifting
	idents    map[*load.Package]map[string]bool // all identifiers in a package
	variants  map[*load.Package]map[string]bool // the names of the variants that stand there
	buffers   map[*load.Package]bool            // see sharesBuffers
}

// New returns an analysis of prog. How a function is divided is up to divide: see [Analysis.Lift].
func New(prog *load.Program, divide func(*Function) (*Lift, *Cause)) *Analysis {
	return &Analysis{Program: prog, API: tensorapi.Ours(), divide: divide, summaries: make(map[calledFrom]*Effects),
		making: make(map[calledFrom]int), partial: make(map[calledFrom]partial), lifts: make(map[functionForm]lifting), idents: make(map[*load.Package]map[string]bool),
		variants: make(map[*load.Package]map[string]bool), buffers: make(map[*load.Package]bool)}
}

// A calledFrom is a function, and the package that it is called from, if what it does differs with that.
type calledFrom struct {
	fn   *types.Func
	home *load.Package
}

// Summary returns what calling fn does, apart from what its arguments do:
// from its directive, from its body, or else that it is unknown. The call
// comes, by way of others perhaps, from home: behind an interface there may be
// a type which that package declares, and that of fn has never heard of.
//
// Functions that call each other, such as those that walk a tree, or the Write
// of a writer that writes to another, do together what each of them does by
// itself: a call of one that is being summarised adds nothing that its own body
// does not add to it. What has been left out of the others on the way is
// looked for again when they are asked for: only the outermost has all.
func (a *Analysis) Summary(fn *types.Func, home *load.Package) *Effects {
	fn = fn.Origin()
	if e, ok := a.summaries[calledFrom{fn: fn}]; ok {
		return e
	}
	key := calledFrom{fn, home}
	if e, ok := a.summaries[key]; ok {
		a.byHome = true
		return e
	}
	if depth, ok := a.making[key]; ok {
		a.outermost = min(a.outermost, depth)
		return &Effects{}
	}
	if p, ok := a.partial[key]; ok {
		a.outermost = min(a.outermost, p.outermost)
		a.byHome = a.byHome || p.byHome
		return p.effects
	}
	before, byHome, depth := a.outermost, a.byHome, len(a.making)
	a.making[key], a.outermost, a.byHome = depth, depth, false
	e := a.summarise(fn, home)
	delete(a.making, key)
	switch {
	case a.outermost < depth:
		a.partial[key] = partial{e, a.outermost, a.byHome}
	case a.byHome:
		a.summaries[key] = e
	default:
		a.summaries[calledFrom{fn: fn}] = e
	}
	if a.outermost >= depth {
		maps.DeleteFunc(a.partial, func(_ calledFrom, p partial) bool { return p.outermost >= depth })
	}
	a.outermost, a.byHome = min(a.outermost, before), a.byHome || byHome
	return e
}

// isInProgress reports whether fn is being summarised.
func (a *Analysis) isInProgress(fn *types.Func, home *load.Package) bool {
	_, ok := a.making[calledFrom{fn.Origin(), home}]
	return ok
}

// A partial summary lacks what functions do that were being summarised when it was made.
type partial struct {
	effects   *Effects
	outermost int // the depth of the outermost of them
	byHome    bool
}

func (a *Analysis) unknown(fn *types.Func, why string) *Effects {
	return &Effects{Barrier: &Cause{Pos: fn.Pos(), Text: why, Code: UnknownEffects, Hint: a.sayFunc(fn)}}
}

func (a *Analysis) summarise(fn *types.Func, home *load.Package) *Effects {
	if d, ok := a.Program.Effects(fn); ok {
		return declared(d, fn.Pos())
	}
	body, ok := a.Program.Body(fn)
	if text := waitsFor(fn); !ok && text != "" {
		return &Effects{Barrier: &Cause{Pos: fn.Pos(), Text: text, Code: Blocks, Hint: blocking(fn)}}
	}
	if !ok {
		return a.unknown(fn, "has effects that are unknown")
	}
	if body.Stub {
		return a.unknown(fn, "is generated itself, or uses cgo")
	}
	f := a.Function(body.Pkg, body.Decl)
	f.summarised, f.Home = true, home
	e := f.walk(body.Decl.Body, nil)
	if f.unsafe != nil {
		e.Unsafe = f.unsafe
	}
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

// Implementations returns the methods called name that a call through iface may reach,
// among those that home and the packages of its module that it needs declare:
// those of types that satisfy iface, and those that such types get from what is embedded in them.
// Types of other modules are not seen; what a library says of its interface holds for them.
func (a *Analysis) Implementations(home *load.Package, iface *types.Interface, name string) []*types.Func {
	return slices.DeleteFunc(a.methods(home, name), func(fn *types.Func) bool {
		return !satisfies(fn.Signature().Recv().Type(), iface) && !a.isPromoted(home, fn, iface)
	})
}

// satisfies reports whether t, or a pointer to t, has the methods of iface. What a generic type has
// depends on its arguments.
func satisfies(t types.Type, iface *types.Interface) bool {
	return isGenericType(t) || types.Implements(t, iface) || types.Implements(types.NewPointer(t), iface)
}

// isPromoted reports whether fn may be the method of that name of a struct that satisfies iface,
// because its receiver, or an interface that leads to it, is embedded there.
func (a *Analysis) isPromoted(home *load.Package, fn *types.Func, iface *types.Interface) bool {
	recv, _ := derefNamed(fn.Signature().Recv().Type())
	return slices.ContainsFunc(a.Program.Embedders(home), func(t types.Type) bool {
		if !satisfies(t, iface) {
			return false
		}
		obj, _, _ := types.LookupFieldOrMethod(t, true, fn.Pkg(), fn.Name())
		got, ok := obj.(*types.Func)
		if !ok {
			return false
		}
		if from, ok := got.Signature().Recv().Type().Underlying().(*types.Interface); ok {
			return satisfies(recv, from)
		}
		return got.Origin() == fn.Origin()
	})
}

// isGenericType reports whether t, or what it points to, has type parameters.
func isGenericType(t types.Type) bool {
	n, ok := derefNamed(t)
	return ok && n.TypeParams().Len() > 0
}

// methods returns the methods called name that home and the packages of its module that it needs declare.
func (a *Analysis) methods(home *load.Package, name string) []*types.Func {
	a.byHome = true
	return a.Program.Methods(home, name)
}
