package plan

import (
	"go/types"
	"slices"

	"golang.org/x/tools/go/types/typeutil"
)

// A LocKind says what sort of place a [Loc] is.
type LocKind uint8

// Places. Memory is distinguished by type alone: Go without unsafe does not
// let an int be reached as a float64, so places of unrelated types differ.
// Structs with the same fields are related: a pointer to one converts to a pointer to the other.
const (
	Var     LocKind = iota // the variable Obj, or a part of it
	Own                    // memory that only the local variable Obj leads to
	Elem                   // elements, of type Type, of slices and of arrays behind pointers
	Field                  // the field Obj of structs, of the underlying type Type, behind pointers
	Deref                  // what pointers to Type point to
	MapElem                // elements of maps of type Type
	Memory                 // any memory
	World                  // what the outside can see: streams, files
	Cells                  // parameters, gradients, generators on the device
	Random                 // the random generators of the host
	Drafts                 // texts in the making, which nobody sees yet
	Process                // what the process has been given: environment, working directory
)

// A Loc is a place that statements read and write. Locs are comparable: types
// in them are canonical.
type Loc struct {
	Kind LocKind
	Obj  types.Object
	Type types.Type
}

// IsMemory reports whether l is reached through pointers, slices or maps, so
// that others may see it.
func (l Loc) IsMemory() bool { return Elem <= l.Kind && l.Kind <= Memory }

// A locSet is a set of places, each with the node that touched it first.
type locSet map[Loc]Cause

func (s locSet) add(l Loc, c Cause) {
	if _, ok := s[l]; !ok {
		s[l] = c
	}
}

func (s locSet) has(l Loc) bool { _, ok := s[l]; return ok }

// First returns what touches a place that is, and stands first in the source; or nil.
func (s locSet) First(is func(Loc) bool) (first *Cause) {
	for l, c := range s {
		if is(l) && (first == nil || c.Pos < first.Pos || c.Pos == first.Pos && c.Text < first.Text) {
			first = &c
		}
	}
	return first
}

// fieldType is the type of the field at l, for the type arguments of its struct.
func (l Loc) fieldType() types.Type {
	for f := range l.Type.(*types.Struct).Fields() {
		if f.Id() == l.Obj.(*types.Var).Id() {
			return f.Type()
		}
	}
	return l.Obj.Type()
}

// overlap reports whether a and b may be the same place.
func overlap(a, b Loc) bool {
	if a == b {
		return true
	}
	if a.Kind > b.Kind {
		a, b = b, a
	}
	if !a.IsMemory() || !b.IsMemory() {
		return false
	}
	if b.Kind == Memory {
		return true
	}
	switch {
	case a.Kind == MapElem && b.Kind == MapElem:
		return alike(a.Type, b.Type)
	case a.Kind == MapElem || b.Kind == MapElem:
		return false // elements of maps have no address
	case a.Kind == Elem && b.Kind == Elem:
		// What slices lead to are arrays, whole or in part: a field that is no array is an element of none.
		return alike(a.Type, b.Type) || hasArrayOf(a.Type, b.Type) || hasArrayOf(b.Type, a.Type)
	case a.Kind == Elem && b.Kind == Deref, a.Kind == Deref && b.Kind == Deref:
		return related(a.Type, b.Type)
	case a.Kind == Elem && b.Kind == Field:
		return hasField(a.Type, b) || hasArrayOf(b.fieldType(), a.Type)
	case a.Kind == Field && b.Kind == Field:
		return a.Obj.Name() == b.Obj.Name() && identical(a.Type, b.Type) || hasField(a.fieldType(), b) || hasField(b.fieldType(), a)
	case a.Kind == Field && b.Kind == Deref:
		return hasField(b.Type, a) || related(a.fieldType(), b.Type)
	}
	return true
}

// FieldLoc is the place of the field that sel selects, of structs behind pointers.
func FieldLoc(sel *types.Selection) Loc {
	t, path := sel.Recv(), sel.Index()
	for i, at := range path {
		if p, ok := t.Underlying().(*types.Pointer); ok {
			t = p.Elem()
		}
		if i == len(path)-1 {
			break
		}
		t = t.Underlying().(*types.Struct).Field(at).Type()
	}
	return Loc{Kind: Field, Obj: sel.Obj().(*types.Var).Origin(), Type: t.Underlying()}
}

// related reports whether a value of one type may be part of one of the other.
func related(a, b types.Type) bool { return holds(a, b) || holds(b, a) }

// alike reports whether memory may be of the type a as well as of the type b: a pointer to the one
// converts to a pointer to the other, or they are so for some type arguments.
func alike(a, b types.Type) bool {
	return identical(a, b) || identical(a.Underlying(), b.Underlying())
}

// identical reports whether a and b are one type, tags apart, for some type arguments.
func identical(a, b types.Type) bool {
	if types.IdenticalIgnoreTags(a, b) {
		return true
	}
	if isTypeParam(a) || isTypeParam(b) {
		return mayBe(a, b)
	}
	switch a := types.Unalias(a).(type) {
	case *types.Named:
		b, ok := types.Unalias(b).(*types.Named)
		if !ok || a.Origin() != b.Origin() {
			return false
		}
		for i := range a.TypeArgs().Len() {
			if !identical(a.TypeArgs().At(i), b.TypeArgs().At(i)) {
				return false
			}
		}
		return true
	case *types.Pointer:
		b, ok := types.Unalias(b).(*types.Pointer)
		return ok && identical(a.Elem(), b.Elem())
	case *types.Slice:
		b, ok := types.Unalias(b).(*types.Slice)
		return ok && identical(a.Elem(), b.Elem())
	case *types.Array:
		b, ok := types.Unalias(b).(*types.Array)
		return ok && identical(a.Elem(), b.Elem()) // of any length: arrays may be parts of one slice
	case *types.Chan:
		b, ok := types.Unalias(b).(*types.Chan)
		return ok && identical(a.Elem(), b.Elem())
	case *types.Map:
		b, ok := types.Unalias(b).(*types.Map)
		return ok && identical(a.Key(), b.Key()) && identical(a.Elem(), b.Elem())
	case *types.Struct:
		b, ok := types.Unalias(b).(*types.Struct)
		if !ok || a.NumFields() != b.NumFields() {
			return false
		}
		for i := range a.NumFields() {
			if a.Field(i).Id() != b.Field(i).Id() || !identical(a.Field(i).Type(), b.Field(i).Type()) {
				return false
			}
		}
		return true
	case *types.Signature:
		b, ok := types.Unalias(b).(*types.Signature)
		return ok && a.Params().Len() == b.Params().Len() && a.Results().Len() == b.Results().Len()
	case *types.Interface:
		b, ok := types.Unalias(b).(*types.Interface)
		return ok && a.NumMethods() == b.NumMethods()
	}
	return false
}

// holds reports whether a value of type t may contain one of type part,
// without following pointers.
func holds(t, part types.Type) bool {
	if alike(t, part) {
		return true
	}
	switch u := t.Underlying().(type) {
	case *types.Struct:
		for f := range u.Fields() {
			if holds(f.Type(), part) {
				return true
			}
		}
	case *types.Array:
		return holds(u.Elem(), part)
	}
	return false
}

func isTypeParam(t types.Type) bool { _, ok := types.Unalias(t).(*types.TypeParam); return ok }

// mayBe reports whether a and b, one of which is a type parameter or both, may stand for types with
// one underlying type.
func mayBe(a, b types.Type) bool {
	of := func(t types.Type) ([]types.BasicKind, bool) {
		if !isTypeParam(t) {
			return basics(t)
		}
		return basics(types.Unalias(t).(*types.TypeParam).Constraint())
	}
	x, okX := of(a)
	y, okY := of(b)
	if okX && okY {
		return slices.ContainsFunc(x, func(k types.BasicKind) bool { return slices.Contains(y, k) })
	}
	return !(okX && !isTypeParam(b) || okY && !isTypeParam(a)) // what is no basic type is not one of them
}

// isBasic reports whether t is a type parameter that stands for numbers, texts and truth values only.
func isBasic(t types.Type) bool {
	p, ok := types.Unalias(t).(*types.TypeParam)
	if !ok {
		return false
	}
	_, ok = basics(p.Constraint())
	return ok
}

// basics returns the kinds of the types that are underlying to those of the type set of t, or to t
// itself, if they are basic types and all known: those of ~int | ~string are, those of comparable
// are not.
func basics(t types.Type) ([]types.BasicKind, bool) {
	if b, ok := t.Underlying().(*types.Basic); ok {
		return []types.BasicKind{b.Kind()}, true
	}
	iface, ok := t.Underlying().(*types.Interface)
	if !ok || isTypeParam(t) {
		return nil, false
	}
	for e := range iface.EmbeddedTypes() { // each of them alone says enough
		union, ok := types.Unalias(e).(*types.Union)
		if !ok {
			if kinds, ok := basics(e); ok {
				return kinds, true
			}
			continue
		}
		var kinds []types.BasicKind
		for term := range union.Terms() {
			more, known := basics(term.Type())
			kinds, ok = append(kinds, more...), ok && known
		}
		if ok {
			return kinds, true
		}
	}
	return nil, false
}

// hasField reports whether a value of type t contains the field at l.
func hasField(t types.Type, l Loc) bool {
	if isTypeParam(t) {
		return !isBasic(t)
	}
	switch u := t.Underlying().(type) {
	case *types.Struct:
		for f := range u.Fields() {
			if hasField(f.Type(), l) {
				return true
			}
		}
		return identical(u, l.Type)
	case *types.Array:
		return hasField(u.Elem(), l)
	}
	return false
}

// hasArrayOf reports whether a value of type t contains an array with
// elements of type elem: slicing it makes them elements of a slice.
func hasArrayOf(t, elem types.Type) bool {
	if isTypeParam(t) {
		return !isBasic(t)
	}
	switch u := t.Underlying().(type) {
	case *types.Struct:
		for f := range u.Fields() {
			if hasArrayOf(f.Type(), elem) {
				return true
			}
		}
	case *types.Array:
		return related(u.Elem(), elem) || hasArrayOf(u.Elem(), elem)
	}
	return false
}

// canon makes identical types equal.
type canon struct{ m typeutil.Map }

func (c *canon) of(t types.Type) types.Type {
	if t == nil {
		return nil
	}
	if got := c.m.At(t); got != nil {
		return got.(types.Type)
	}
	c.m.Set(t, t)
	return t
}
