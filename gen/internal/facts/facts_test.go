package facts

import (
	"go/types"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

var typeParams = regexp.MustCompile(`\[.*\]`)

// TestEntries: every entry is one function or method that exists, and has a word for each slot.
func TestEntries(t *testing.T) {
	if _, err := parse(text); err != nil {
		t.Fatal(err)
	}
	found := make(map[string]bool)
	for fn := range listed(t) {
		found[typeParams.ReplaceAllString(fn.FullName(), "")] = true
		checkEntry(t, fn, Of(fn))
	}
	for name := range std() {
		if !found[name] {
			t.Errorf("there is no function %s", name)
		}
	}
}

// listed are the functions that the table has, as they are declared.
func listed(t *testing.T) iter.Seq[*types.Func] {
	t.Helper()
	paths := make(map[string]bool)
	for name := range std() {
		name = strings.TrimLeft(name, "(*")
		slash := strings.LastIndexByte(name, '/') + 1
		paths[name[:slash+strings.IndexByte(name[slash:], '.')]] = true
	}
	pkgs, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedImports | packages.NeedTypes}, slices.Sorted(maps.Keys(paths))...)
	if err != nil {
		t.Fatal(err)
	}
	return func(yield func(*types.Func) bool) {
		for _, pkg := range pkgs {
			if len(pkg.Errors) > 0 {
				t.Fatal(pkg.Errors)
			}
			for fn := range functions(pkg.Types) {
				if Of(fn) != nil && !yield(fn) {
					return
				}
			}
		}
	}
}

// functions are the functions and methods that a package declares.
func functions(pkg *types.Package) iter.Seq[*types.Func] {
	return func(yield func(*types.Func) bool) {
		for _, name := range pkg.Scope().Names() {
			switch obj := pkg.Scope().Lookup(name).(type) {
			case *types.Func:
				if !yield(obj) {
					return
				}
			case *types.TypeName:
				named, ok := obj.Type().(*types.Named)
				if !ok {
					continue
				}
				if i, ok := named.Underlying().(*types.Interface); ok {
					for m := range i.ExplicitMethods() {
						if !yield(m) {
							return
						}
					}
				}
				for m := range named.Methods() {
					if !yield(m) {
						return
					}
				}
			}
		}
	}
}

// checkEntry holds what e says of fn against its type.
func checkEntry(t *testing.T, fn *types.Func, e *Entry) {
	t.Helper()
	sig := fn.Signature()
	var slots []*types.Var
	if r := sig.Recv(); r != nil && leads(r.Type()) {
		slots = append(slots, r)
	}
	for v := range sig.Params().Variables() {
		if leads(v.Type()) {
			slots = append(slots, v)
		}
	}
	if e.Has(Blocks) && len(e.slots) == 0 {
		return
	}
	if len(slots) != len(e.slots) {
		t.Errorf("%s has slots %v, and %d words", fn.FullName(), slots, len(e.slots))
		return
	}
	for i, v := range slots {
		s, typ := e.slots[i], v.Type()
		if sig.Variadic() && v == sig.Params().At(sig.Params().Len()-1) {
			typ = typ.(*types.Slice).Elem()
		}
		_, isParam := typ.(*types.TypeParam)
		isInterface := types.IsInterface(typ) && !isParam
		_, isFunc := typ.Underlying().(*types.Signature)
		switch {
		case isFunc && !s.Has(Calls|Keeps):
			t.Errorf("%s: %v is a function: it calls or keeps it", fn.FullName(), v)
		case isInterface && !s.Has(Calls|Keeps|Formats|Fills|Looks|Changes):
			t.Errorf("%s: %v is an interface: it calls, formats, fills or keeps it", fn.FullName(), v)
		case s.Has(Calls) && !isInterface && !isFunc:
			t.Errorf("%s: %v has no methods of the user's", fn.FullName(), v)
		}
		for _, m := range s.Methods {
			if obj, _, _ := types.LookupFieldOrMethod(v.Type(), true, fn.Pkg(), m); s.Has(Calls) && isInterface && obj == nil && !strings.Contains("Is As Unwrap Timeout WriteString", m) {
				t.Errorf("%s: %v has no method %s", fn.FullName(), v, m)
			}
		}
	}
}
