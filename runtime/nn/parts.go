package nn

import (
	"cmp"
	"iter"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// What a module consists of is found in its fields, by reflection: here and in clone.go, and nowhere else.

// Named goes over the parameters and buffers of m and of its parts, each with its name. m is a
// [Module], or a pointer to any struct with parts, such as a model whose Forward takes two tensors.
//
// Parts are found in fields, exported or not: a [Param], a [Buffer], what has a method Forward, slices,
// arrays and maps of these with strings as keys, and structs and pointers to structs with parts. A
// struct without a Forward is looked into if its type and that of the struct around it are of one
// package.
//
// A name is made of fields, in snake case, and indices: "layers.0.weight" is the weight of the first
// module in the field layers. A [Sequential] numbers its parts: "0.weight". Embedded structs add
// nothing to the names of their parts. So models built like those of PyTorch have the names of its
// state_dict. A tag gives a field another name, and the tag "-" says that it is no part:
//
//	value   nn.Module `nn:"v_proj"`
//	teacher nn.Module `nn:"-"` // neither trained nor saved with this model
//
// The order never changes: fields and indices come in their order, and keys of maps sorted. A cell
// that is there twice, such as a weight that two layers share, comes once, by its first name. A
// parameter without a value yet has a name, too.
//
//	for name, cell := range nn.Named(net) {
//		fmt.Println(name, cell.Value().Shape())
//	}
//
// Named panics if the method Params of m lists a parameter that is in no field, if two parameters or
// buffers have the same name, such as those of fields called Scale and scale, and if a field seems to
// hold parts, but not as above: a Param that is no pointer, a map with integers as keys.
//
//asyncgen:api meta 0
func Named(m any) iter.Seq2[string, tensor.Cell] {
	list := mustFind("Named", m)
	names := make(map[string]bool, len(list))
	for _, p := range list {
		if names[p.name] {
			wrong("Named", "two parts of %T are called %s: give one of them another name by a tag", m, p.name)
		}
		names[p.name] = true
	}
	return func(yield func(string, tensor.Cell) bool) {
		for _, p := range list {
			switch c := p.value.(type) {
			case *Param:
				if !yield(p.name, c) {
					return
				}
			case *Buffer:
				if !yield(p.name, c) {
					return
				}
			}
		}
	}
}

// Params lists the parameters of m in the order of [Named]. The method Params of a module of one's own
// is a call of it:
//
//	func (b *block) Params() []*nn.Param { return nn.Params(b) }
//
//asyncgen:api meta 0
func Params(m any) []*Param {
	var list []*Param
	for _, p := range cellsOf(m) {
		if c, ok := p.value.(*Param); ok {
			list = append(list, c)
		}
	}
	return list
}

// A Mode is a field of modules that do something else in training than in use, such as [Dropout]. Its
// zero value says that the module is trained. [Frozen] sets it in the copy that it makes.
type Mode struct{ inUse bool }

// IsTraining reports whether the module with this Mode is trained, and not [Frozen].
//
//asyncgen:api pure
func (m Mode) IsTraining() bool { return !m.inUse }

// A part is a cell or a module, and where it is.
type part struct {
	name  string
	value any // a pointer to a struct with parts, a module, or a tensor.Cell
}

// mustFind is cellsOf for the function with the given name. It panics if m lists a parameter that is in
// no field.
func mustFind(name string, m any) []part {
	list := cellsOf(m)
	if module, ok := m.(Module); ok && !isReplicas(m) && !isNil(m) {
		for i, p := range module.Params() {
			if !slices.ContainsFunc(list, func(found part) bool { return found.value == any(p) }) {
				wrong(name, "parameter %d of %T is in none of its fields, nor in those of its parts", i, m)
			}
		}
	}
	return list
}

// mustNotBeNil panics if m, an argument of the function with the given name, is nil or a nil pointer.
func mustNotBeNil(name string, m any) {
	if isNil(m) {
		wrong(name, "the module is nil")
	}
}

func isNil(m any) bool {
	v := reflect.ValueOf(m)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

func isReplicas(m any) bool {
	_, ok := m.(*Replicas)
	return ok
}

// cellsOf lists the cells of m and of its parts, each once.
func cellsOf(m any) []part {
	var list []part
	seen := map[any]bool{}
	var add func(at part)
	add = func(at part) {
		if reflect.TypeOf(at.value).Kind() == reflect.Pointer {
			if seen[at.value] {
				return
			}
			seen[at.value] = true
		}
		if _, ok := at.value.(tensor.Cell); ok {
			list = append(list, at)
			return
		}
		if l, ok := at.value.(interface{ put(name string) }); ok {
			l.put(at.name)
		}
		for _, p := range partsOf(at.value) {
			add(part{join(at.name, p.name), p.value})
		}
	}
	if m != nil {
		add(part{"", m})
	}
	return list
}

// partsOf lists the cells and modules that m itself holds.
func partsOf(m any) (list []part) {
	if r, ok := m.(*Replicas); ok {
		return []part{{"", r.modules[0]}} // the others have the same parts
	}
	v := reflect.ValueOf(m)
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if !v.IsValid() {
		return nil
	}
	if !v.CanAddr() { // fields that are not exported are read at their address
		copied := reflect.New(v.Type()).Elem()
		copied.Set(v)
		v = copied
	}
	visitor{part: func(name string, v reflect.Value) { list = append(list, part{name, v.Interface()}) }}.inside("", v, "")
	return list
}

// A visitor goes over the parts that a module itself holds.
type visitor struct {
	part   func(name string, v reflect.Value) // for each part that is not nil; v can be set
	mode   func(m *Mode)                      // for each Mode, unless it is nil
	copies bool                               // slices and maps are copied before their elements are visited
}

// inside visits what v holds, which is addressable. Pkg is the package of the type around v, if there is one.
func (w visitor) inside(name string, v reflect.Value, pkg string) {
	t := v.Type()
	pkg = packageOf(t, pkg)
	switch v.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); isFieldWithParts(f, pkg) {
				// At its address a field can be read and set, also if it is not exported.
				field := reflect.NewAt(f.Type, v.Field(i).Addr().UnsafePointer())
				w.visit(join(name, nameOf(f)), field.Elem(), pkg)
			}
		}
	case reflect.Slice, reflect.Array:
		if w.copies && v.Kind() == reflect.Slice {
			v.Set(reflect.AppendSlice(reflect.MakeSlice(t, 0, v.Len()), v))
		}
		for i := range v.Len() {
			w.visit(join(name, strconv.Itoa(i)), v.Index(i), pkg)
		}
	case reflect.Map:
		whole := v
		if w.copies && !v.IsNil() {
			whole = reflect.MakeMapWithSize(t, v.Len())
		}
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
		for _, key := range keys {
			element := reflect.New(t.Elem()).Elem()
			element.Set(v.MapIndex(key))
			w.visit(join(name, key.String()), element, pkg)
			if w.copies {
				whole.SetMapIndex(key, element)
			}
		}
		if w.copies {
			v.Set(whole)
		}
	}
}

// visit visits v, which is addressable and held by a type of the package pkg. It panics if v has parts that are not
// found in a value of its type: a model would lose them without a word.
func (w visitor) visit(name string, v reflect.Value, pkg string) {
	if !hasParts(v.Type(), pkg, nil) {
		return
	}
	if want := insteadOf(v.Type()); want != "" {
		wrong("Named", "no parts are found in %s, a %v: want %s, or the tag `nn:\"-\"`", name, v.Type(), want)
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			w.part(name, v)
		}
	default:
		if m, ok := v.Addr().Interface().(*Mode); ok {
			if w.mode != nil {
				w.mode(m)
			}
			return
		}
		w.inside(name, v, pkg)
	}
}

var cell, module = reflect.TypeFor[tensor.Cell](), reflect.TypeFor[Module]()

// hasParts reports whether a value of type t, inside a value of package pkg, can be or hold parts or
// Modes. The types in seen are being asked about already.
func hasParts(t reflect.Type, pkg string, seen []reflect.Type) bool {
	if slices.Contains(seen, t) {
		return false
	}
	_, isModule := t.MethodByName("Forward")
	if isModule || t.Implements(cell) || isCellByValue(t) || t == reflect.TypeFor[Mode]() {
		return true
	}
	seen = append(seen, t)
	switch t.Kind() {
	case reflect.Struct:
		own := packageOf(t, pkg)
		if _, isModule := reflect.PointerTo(t).MethodByName("Forward"); !isModule && own != pkg {
			return false
		}
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Tag.Get("nn") != "-" && hasParts(f.Type, own, seen) {
				return true
			}
		}
		return false
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Array:
		return hasParts(t.Elem(), pkg, seen)
	}
	return false
}

// insteadOf says what a type t with parts should be so that they are found; "" if they are.
func insteadOf(t reflect.Type) string {
	switch {
	case isCellByValue(t):
		return "a pointer"
	case t.Kind() == reflect.Map && t.Key().Kind() != reflect.String:
		return "strings as keys"
	case t.Kind() == reflect.Pointer && t.Elem().Kind() != reflect.Struct && !t.Implements(module):
		return t.Elem().String()
	}
	return ""
}

// isCellByValue reports whether t is what pointers to cells point to.
func isCellByValue(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && !t.Implements(cell) && reflect.PointerTo(t).Implements(cell)
}

// packageOf is the package of the type t, or of the one around it if t has no name.
func packageOf(t reflect.Type, around string) string { return cmp.Or(t.PkgPath(), around) }

func isFieldWithParts(f reflect.StructField, pkg string) bool {
	return f.Tag.Get("nn") != "-" && hasParts(f.Type, pkg, nil)
}

// nameOf is what a field adds to the names of its parts.
func nameOf(f reflect.StructField) string {
	switch tag := f.Tag.Get("nn"); {
	case tag != "":
		return tag
	case f.Anonymous && !f.Type.Implements(cell):
		return ""
	}
	return snake(f.Name)
}

// snake is a Go name in snake case: runningMean and RunningMean are running_mean, MLPHead is mlp_head,
// fc1 is fc1.
func snake(name string) string {
	var b strings.Builder
	letters := []rune(name)
	for i, r := range letters {
		begins := i > 0 && unicode.IsUpper(r) && (!unicode.IsUpper(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1]))
		if begins && letters[i-1] != '_' {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// join is a name below another.
func join(above, name string) string {
	if above == "" || name == "" {
		return above + name
	}
	return above + "." + name
}
