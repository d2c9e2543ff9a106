package plan

import (
	"go/types"

	"golang.org/x/tools/go/types/typeutil"
)

// A LocKind says what sort of place a [Loc] is.
type LocKind uint8

// Places. Memory is distinguished by type alone: Go without unsafe does not
// let an int be reached as a float64, so places of unrelated types differ.
const (
	Var     LocKind = iota // the variable Obj, or a part of it
	Own                    // memory that only the local variable Obj leads to
	Elem                   // elements, of type Type, of slices and of arrays behind pointers
	Field                  // the field Obj of structs behind pointers
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
	case a.Kind == MapElem || b.Kind == MapElem:
		// Elements of maps have no address. Maps of different types are
		// different maps.
		return false
	case a.Kind == Elem && b.Kind == Elem:
		// What slices lead to are arrays, whole or in part: a field that is no array is an element of none.
		return sameType(a.Type, b.Type) || hasArrayOf(a.Type, b.Type) || hasArrayOf(b.Type, a.Type)
	case a.Kind == Elem && b.Kind == Deref, a.Kind == Deref && b.Kind == Deref:
		return related(a.Type, b.Type)
	case a.Kind == Elem && b.Kind == Field:
		return hasField(a.Type, b.Obj) || hasArrayOf(b.Obj.Type(), a.Type)
	case a.Kind == Field && b.Kind == Field:
		return hasField(a.Obj.Type(), b.Obj) || hasField(b.Obj.Type(), a.Obj)
	case a.Kind == Field && b.Kind == Deref:
		return hasField(b.Type, a.Obj) || related(a.Obj.Type(), b.Type)
	}
	return true
}

// related reports whether a value of one type may be part of one of the other.
func related(a, b types.Type) bool { return holds(a, b) || holds(b, a) }

// sameType reports whether memory may be of the type a as well as of the type b.
func sameType(a, b types.Type) bool {
	return isTypeParam(a) || isTypeParam(b) || types.Identical(a, b) || types.Identical(a.Underlying(), b.Underlying())
}

// holds reports whether a value of type t may contain one of type part,
// without following pointers.
func holds(t, part types.Type) bool {
	if sameType(t, part) {
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

// hasField reports whether a value of type t contains the field f.
func hasField(t types.Type, field types.Object) bool {
	if isTypeParam(t) {
		return true
	}
	switch u := t.Underlying().(type) {
	case *types.Struct:
		for f := range u.Fields() {
			if f.Origin() == field || hasField(f.Type(), field) {
				return true
			}
		}
	case *types.Array:
		return hasField(u.Elem(), field)
	}
	return false
}

// hasArrayOf reports whether a value of type t contains an array with
// elements of type elem: slicing it makes them elements of a slice.
func hasArrayOf(t, elem types.Type) bool {
	if isTypeParam(t) {
		return true
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
