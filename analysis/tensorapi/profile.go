package tensorapi

import (
	"go/types"
	"path"
	"slices"
	"strings"
	"sync"
)

// A Profile describes one tensor library. Profiles are immutable.
type Profile struct {
	// Name is what messages call the library.
	Name string
	// Packages are the import paths of the library's core; one that ends in
	// "/..." stands for everything below it, too. The code of the core is not
	// analysed.
	Packages []string
	// Types are the tensor types, as "import/path.Name".
	Types []string
	// Cells are the types that hold tensors which change: parameters,
	// generators, and the interfaces to them.
	Cells []string
	// Funcs has an entry for each exported function, by Name. What is missing
	// is unknown: analyzers are silent about it, the generator refuses it.
	Funcs map[string]Func
	// Patterns speak of functions that are missing in Funcs. The first that
	// matches counts.
	Patterns []Pattern
	// Ops says that all other functions of the core that return a tensor are of the kind [Op]:
	// those that Funcs and Patterns do not mention.
	Ops bool
	// Printers are functions, of whatever package, that format their last
	// arguments as package fmt does.
	Printers map[string]bool
	// Rebuilds are functions that build or compile a graph or plan, by Name.
	Rebuilds map[string]bool
	// Values says that tensors never change, so that an operation does nothing
	// but return its result.
	Values bool
	// Finishes says that operations have finished when they return, although
	// their results stay on the device. A clock needs no wait then.
	Finishes bool
	Async    Level

	once   sync.Once
	spoken map[string]bool // the packages that it has a function or type of
}

// A Pattern stands for functions with similar names.
type Pattern struct {
	Prefix string // of the full name, up to and with the last dot
	Glob   string // of what follows, as package path matches it: "*_"
	Func   Func   // what they do; the Name is that of the pattern
}

// Lookup returns what p says about fn, which may be nil. An instance of a
// generic function is looked up by its origin.
func (p *Profile) Lookup(fn *types.Func) (Func, bool) {
	if fn == nil || fn.Pkg() == nil {
		return Func{}, false
	}
	return p.lookup(fn.Origin(), fn.Origin().FullName())
}

func (p *Profile) lookup(fn *types.Func, full string) (Func, bool) {
	if f, ok := p.Funcs[full]; ok {
		return f, true
	}
	full = bare(full)
	if f, ok := p.Funcs[full]; ok {
		return f, true
	}
	for _, pattern := range p.Patterns {
		if name, ok := strings.CutPrefix(full, pattern.Prefix); ok {
			if ok, _ := path.Match(pattern.Glob, name); ok {
				return pattern.Func, true
			}
		}
	}
	if p.Ops && p.Owns(fn.Pkg().Path()) && p.returnsTensor(fn.Signature()) {
		return Func{Name: full, Kind: Op, Arg: None}, true
	}
	return Func{}, false
}

func (p *Profile) returnsTensor(sig *types.Signature) bool {
	for v := range sig.Results().Variables() {
		t := v.Type()
		if s, ok := types.Unalias(t).(*types.Slice); ok {
			t = s.Elem()
		}
		if p.IsTensor(t) {
			return true
		}
	}
	return false
}

// bare is the full name of a method without the type parameters of its
// receiver: "(*example.com/t.Tensor).Item".
func bare(full string) string {
	open := strings.IndexByte(full, '[')
	if open < 0 {
		return full
	}
	shut := strings.LastIndexByte(full, ']')
	return full[:open] + full[shut+1:]
}

// Owns reports whether the package with the given import path belongs to the
// library's core, so that the profile, not its code, says what it does.
func (p *Profile) Owns(path string) bool {
	for _, pattern := range p.Packages {
		root, below := strings.CutSuffix(pattern, "/...")
		if path == root || below && strings.HasPrefix(path, root) && path[len(root)] == '/' {
			return true
		}
	}
	return false
}

func (p *Profile) speaks() map[string]bool {
	p.once.Do(func() { p.spoken = p.findSpoken() })
	return p.spoken
}

// IsTensor reports whether t is a tensor type of the library or a pointer to
// one.
func (p *Profile) IsTensor(t types.Type) bool { return named(t, p.Types) }

// IsCell reports whether t is a cell type of the library or a pointer to one.
func (p *Profile) IsCell(t types.Type) bool { return named(t, p.Cells) }

// Formats reports whether package fmt waits for a tensor of type t when it formats it.
func (p *Profile) Formats(t types.Type) bool {
	f, ok := p.method(t, "Format", "Error", "String", "LogValue", "GoString")
	return ok && f.Kind == Print
}

// Encodes reports whether package encoding/json waits for a tensor of type t when it encodes it.
func (p *Profile) Encodes(t types.Type) bool {
	f, ok := p.method(t, "MarshalJSON", "MarshalText")
	return ok && f.Waits()
}

// method returns what the profile says about a method of values of type t: the first of names that
// it knows.
func (p *Profile) method(t types.Type, names ...string) (Func, bool) {
	t = types.Unalias(t)
	receivers := []string{"(%)."}
	if ptr, ok := t.(*types.Pointer); ok {
		t = types.Unalias(ptr.Elem())
		receivers = []string{"(*%).", "(%)."}
	}
	n, ok := t.(*types.Named)
	if !ok || n.Obj().Pkg() == nil {
		return Func{}, false
	}
	full := n.Obj().Pkg().Path() + "." + n.Obj().Name()
	for _, name := range names {
		for _, recv := range receivers {
			if f, ok := p.Funcs[strings.Replace(recv, "%", full, 1)+name]; ok {
				return f, true
			}
		}
	}
	return Func{}, false
}

func named(t types.Type, names []string) bool {
	if ptr, ok := types.Unalias(t).(*types.Pointer); ok {
		t = ptr.Elem()
	}
	n, ok := types.Unalias(t).(*types.Named)
	if !ok || n.Obj().Pkg() == nil {
		return false
	}
	path, name := n.Obj().Pkg().Path(), n.Obj().Name()
	for _, full := range names {
		if rest, ok := strings.CutPrefix(full, path); ok && len(rest) == len(name)+1 && rest[0] == '.' && rest[1:] == name {
			return true
		}
	}
	return false
}

// A Set is the libraries that a program knows. It may be used concurrently.
//
// Most programs use none of them. So a profile that comes as a file is parsed only when somebody
// asks for a package that its text mentions.
type Set struct {
	own     []*Profile
	shipped []shipped
	about   sync.Map // from import path to []*Profile
}

// NewSet returns the set of the given profiles and of those that come with the module. If two have the
// same name, only the first is a member. If two describe the same function, the first one counts.
func NewSet(own ...*Profile) *Set {
	s := &Set{shipped: shippedFiles()}
	for _, p := range append(own, ours) {
		if !s.has(p.Name) {
			s.own = append(s.own, p)
		}
	}
	return s
}

func (s *Set) has(name string) bool {
	return slices.ContainsFunc(s.own, func(p *Profile) bool { return p.Name == name })
}

// Named returns the member with the given name, or nil.
func (s *Set) Named(name string) *Profile {
	for _, p := range s.own {
		if p.Name == name {
			return p
		}
	}
	for _, f := range s.shipped {
		if p := f.profile(); p.Name == name {
			return p
		}
	}
	return nil
}

// About lists the libraries that have something to say about the package with
// the given import path.
func (s *Set) About(path string) []*Profile {
	if list, ok := s.about.Load(path); ok {
		return list.([]*Profile)
	}
	var list []*Profile
	add := func(p *Profile) {
		if p.Owns(path) || p.speaks()[path] {
			list = append(list, p)
		}
	}
	for _, p := range s.own {
		add(p)
	}
	for _, f := range s.shipped {
		if f.mentions(path) && !s.has(f.profile().Name) {
			add(f.profile())
		}
	}
	s.about.Store(path, list)
	return list
}

// Owner returns the library to whose core the package with the given import
// path belongs, or nil.
func (s *Set) Owner(path string) *Profile {
	for _, p := range s.About(path) {
		if p.Owns(path) {
			return p
		}
	}
	return nil
}

// Lookup returns what a profile says about fn, and that profile. For a function that none knows, or nil, it
// returns the zero Func and nil.
func (s *Set) Lookup(fn *types.Func) (Func, *Profile) {
	if fn == nil || fn.Pkg() == nil {
		return Func{}, nil
	}
	list := s.About(fn.Pkg().Path())
	if len(list) == 0 {
		return Func{}, nil
	}
	fn = fn.Origin()
	full := fn.FullName()
	for _, p := range list {
		if f, ok := p.lookup(fn, full); ok {
			return f, p
		}
	}
	return Func{}, nil
}

// TensorOf returns the library that t is a tensor of, or a pointer to one, or
// nil.
func (s *Set) TensorOf(t types.Type) *Profile {
	if ptr, ok := types.Unalias(t).(*types.Pointer); ok {
		t = ptr.Elem()
	}
	n, ok := types.Unalias(t).(*types.Named)
	if !ok || n.Obj().Pkg() == nil {
		return nil
	}
	for _, p := range s.About(n.Obj().Pkg().Path()) {
		if p.IsTensor(n) {
			return p
		}
	}
	return nil
}

// IsPrinter reports whether a library says that fn formats its last arguments.
func (s *Set) IsPrinter(fn *types.Func) bool {
	return s.listed(fn, func(p *Profile) map[string]bool { return p.Printers })
}

// Rebuilds reports whether fn builds or compiles a graph or plan.
func (s *Set) Rebuilds(fn *types.Func) bool {
	return s.listed(fn, func(p *Profile) map[string]bool { return p.Rebuilds })
}

func (s *Set) listed(fn *types.Func, list func(*Profile) map[string]bool) bool {
	if fn == nil || fn.Pkg() == nil {
		return false
	}
	for _, p := range s.About(fn.Pkg().Path()) {
		if list(p)[bare(fn.Origin().FullName())] {
			return true
		}
	}
	return false
}

// findSpoken lists the packages that p's functions and types are in.
func (p *Profile) findSpoken() map[string]bool {
	set := make(map[string]bool)
	for full := range p.Funcs {
		set[packageOf(full)] = true
	}
	for full := range p.Printers {
		set[packageOf(full)] = true
	}
	for full := range p.Rebuilds {
		set[packageOf(full)] = true
	}
	for _, pattern := range p.Patterns {
		set[packageOf(pattern.Prefix)] = true
	}
	for _, full := range append(slices.Clip(p.Types), p.Cells...) {
		set[packageOf(full)] = true
	}
	return set
}

// packageOf is the import path in a full name, or in what comes before its last
// part.
func packageOf(full string) string {
	full = bare(full)
	if method, ok := strings.CutPrefix(full, "("); ok {
		full, _, _ = strings.Cut(strings.TrimPrefix(method, "*"), ")")
	}
	return full[:strings.LastIndexByte(full, '.')]
}

// A shipped profile is the text of one, parsed when it is asked for.
type shipped struct {
	text    string
	profile func() *Profile
}

// mentions reports whether the profile may have something to say about a package: its text has the name
// of the module that the package seems to belong to.
func (f shipped) mentions(path string) bool {
	host, _, _ := strings.Cut(path, "/")
	if !strings.Contains(host, ".") {
		return false // the standard library
	}
	parts := 2
	if host == "github.com" {
		parts = 3
	}
	root := path
	for i, n := 0, 0; i < len(path); i++ {
		if path[i] == '/' {
			if n++; n == parts {
				root = path[:i]
			}
		}
	}
	return strings.Contains(f.text, root)
}
