package nn

import (
	"reflect"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Clone returns a copy of m with parameters and buffers of its own, of the same type. They hold the
// same values as those of m, or none yet, as in m. What is shared within m, such as a weight that two
// layers have, is shared within the copy. Other cells, such as generators, and all that is no part of m
// (see [Named]) are copied as an assignment copies them.
//
// No element is copied, as tensors never change, and Clone doesn't wait. It panics if the method Params
// of m lists a parameter that is in no field.
//
//asyncgen:api value 0
func Clone[M any](m M) M {
	mustFind("Clone", m)
	return copyOf(&copier{name: "Clone", param: (*Param).Clone, buffer: (*Buffer).Clone}, m)
}

// A Freezer is a module that makes its own frozen form. It is for modules that a copy of the fields,
// with a [Mode] that is not training, wouldn't freeze. Modules that hold one do so as a pointer or in
// an interface.
type Freezer interface {
	Module
	// Freeze returns the result of Frozen. It has to freeze its parts by Frozen, and its parameters
	// and buffers by their methods Frozen.
	//
	//asyncgen:api value
	Freeze() Module
}

// Frozen returns m as it is now and as it is used when nothing is to be learnt: its parameters and
// buffers have today's values, for ever and untracked; layers that behave differently in training, such
// as [Dropout] and [BatchNorm], don't. Any number of goroutines may use it, also while m is trained
// further. It has the names of m, costs a few handles, and does not wait.
//
// It is also how a model is evaluated between epochs, as m itself stays in training:
//
//	accuracy := score(nn.Frozen(net), validation)
//
// To use m itself while another goroutine trains it is a data race: Set of a parameter beside its
// Value. So the goroutine that trains m makes the frozen one, and hands it to those that use it:
//
//	var serving atomic.Pointer[nn.Module] // read by handlers of requests
//	...
//	opt.Minimize(loss)
//	now := nn.Frozen(net)
//	serving.Store(&now)
//
// It panics if m, or a part of it, has a parameter without a value: call Forward once before. It also
// panics if the method Params of m lists a parameter that is in no field.
//
//asyncgen:api value 0
func Frozen[M any](m M) M {
	mustFind("Frozen", m)
	return copyOf(&copier{name: "Frozen", param: (*Param).Frozen, buffer: (*Buffer).Frozen, mode: func(m *Mode) { m.inUse = true }}, m)
}

// A copier makes one copy of a module.
type copier struct {
	name   string // of the function that the program has called
	param  func(*Param) *Param
	buffer func(*Buffer) *Buffer
	mode   func(*Mode) // not nil: the copy is frozen
	done   map[any]any // copies of what pointers point to
}

func copyOf[M any](c *copier, m M) M {
	mustNotBeNil(c.name, m)
	c.part("", reflect.ValueOf(&m).Elem())
	return m
}

// part replaces the part in v by its copy.
func (c *copier) part(_ string, v reflect.Value) {
	x := v.Interface()
	y := c.once(x)
	if !reflect.TypeOf(y).AssignableTo(v.Type()) {
		wrong(c.name, "%T became %T, which can't stand in its place, a %v", x, y, v.Type())
	}
	v.Set(reflect.ValueOf(y))
}

// once returns the copy of x. Asked again about the same pointer, it returns the same copy.
func (c *copier) once(x any) any {
	switch {
	case reflect.TypeOf(x).Kind() != reflect.Pointer:
		return c.copy(x)
	case isNil(x):
		return x
	}
	y, ok := c.done[x]
	if !ok {
		y = c.copy(x)
		c.keep(x, y)
	}
	return y
}

func (c *copier) keep(x, y any) {
	if c.done == nil {
		c.done = map[any]any{}
	}
	c.done[x] = y
}

// copy returns a copy of a part, which is a cell, a module, or a struct with parts.
func (c *copier) copy(x any) any {
	switch x := x.(type) {
	case *Param:
		return c.param(x)
	case *Buffer:
		return c.buffer(x)
	case tensor.Cell:
		return x
	case *Replicas:
		return c.replicas(x)
	case Freezer:
		if c.mode != nil {
			return x.Freeze()
		}
	}
	y := copyParts(x, visitor{part: c.part, mode: c.mode, copies: true}, func(y any) { c.keep(x, y) })
	if s, ok := y.(interface{ mergeReLUs() }); ok && c.mode != nil {
		s.mergeReLUs()
	}
	return y
}

// copyParts returns a copy of x, a module or a pointer to a struct; w visits the parts of the copy. If
// x is a pointer, begin is called with the copy first, as parts may point back to it. begin may be nil.
func copyParts(x any, w visitor, begin func(y any)) any {
	v := reflect.ValueOf(x)
	if v.Kind() == reflect.Pointer {
		y := reflect.New(v.Type().Elem())
		setShallow(y.Elem(), v.Elem())
		if begin != nil {
			begin(y.Interface())
		}
		w.inside("", y.Elem(), "")
		return y.Interface()
	}
	y := reflect.New(v.Type()).Elem()
	setShallow(y, v)
	w.inside("", y, "")
	return y.Interface()
}

// setShallow sets y to v. Layers may be given their names meanwhile.
func setShallow(y, v reflect.Value) {
	placesMu.Lock()
	defer placesMu.Unlock()
	y.Set(v)
}

// replicas returns the frozen form of r, which is that of its first replica. It panics if it is to be cloned.
func (c *copier) replicas(r *Replicas) *Replicas {
	if c.mode == nil {
		wrong(c.name, "a DataParallel can't be cloned: clone its Replica(0)")
	}
	m := c.once(r.modules[0]).(Module)
	return &Replicas{modules: []Module{m}, devices: r.devices[:1], params: [][]*Param{m.Params()}, buffers: [][]*Buffer{buffers(m)}, isFrozen: true}
}
