package asynctest

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A maker makes arguments. The same seed gives the same ones.
type maker struct {
	args    any
	seed    uint64
	fault   int // which tensor fails, from 1; 0 for none
	capture *capture

	rand    *rand.Rand
	tensors int // made or found so far
	log     []byte
}

var (
	tensorType  = reflect.TypeFor[*tensor.Tensor]()
	writerType  = reflect.TypeFor[io.Writer]()
	contextType = reflect.TypeFor[context.Context]()
	randType    = reflect.TypeFor[*rand.Rand]()
)

// arguments makes the arguments for a function of type t.
func (m *maker) arguments(t reflect.Type) ([]reflect.Value, error) {
	if m.args != nil {
		return m.given(t)
	}
	in := make([]reflect.Value, t.NumIn())
	for i := range in {
		in[i] = reflect.New(t.In(i)).Elem()
		if err := m.fill(in[i], 0); err != nil {
			return nil, fmt.Errorf("parameter %d: %w", i, err)
		}
	}
	return in, nil
}

// given calls the user's function and makes one of its tensors fail.
func (m *maker) given(t reflect.Type) ([]reflect.Value, error) {
	args := reflect.ValueOf(m.args)
	if at := args.Type(); at.Kind() != reflect.Func || at.NumIn() != 1 || at.In(0) != randType || at.NumOut() != t.NumIn() {
		return nil, fmt.Errorf("arguments come from a func(*rand.Rand) with %d results (math/rand/v2), not from a %v", t.NumIn(), at)
	}
	in := args.Call([]reflect.Value{reflect.ValueOf(m.rand)})
	for i := range in {
		settable := reflect.New(t.In(i)).Elem()
		settable.Set(in[i])
		m.spoil(settable, make(map[unsafe.Pointer]bool))
		in[i] = settable
	}
	return in, nil
}

// spoil counts the tensors that v leads to, and replaces the one that is to
// fail. Writers are replaced by the log.
func (m *maker) spoil(v reflect.Value, seen map[unsafe.Pointer]bool) {
	v = open(v)
	switch {
	case v.Type() == tensorType:
		if !v.IsNil() {
			v.Set(reflect.ValueOf(m.maybeFailed(v.Interface().(*tensor.Tensor))))
		}
		return
	case v.Type() == writerType:
		v.Set(reflect.ValueOf(logWriter{m}))
		return
	}
	switch v.Kind() {
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			m.spoil(v.Index(i), seen)
		}
	case reflect.Struct:
		if v.Type().PkgPath() != tensorType.Elem().PkgPath() {
			for i := range v.NumField() {
				m.spoil(v.Field(i), seen)
			}
		}
	case reflect.Pointer:
		if !v.IsNil() && !seen[v.UnsafePointer()] && v.Type().Elem().PkgPath() != tensorType.Elem().PkgPath() {
			seen[v.UnsafePointer()] = true
			m.spoil(v.Elem(), seen)
		}
	}
}

// open makes a field settable that is not exported.
func open(v reflect.Value) reflect.Value {
	if v.CanSet() || !v.CanAddr() {
		return v
	}
	return reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
}

// fill sets v by its type.
func (m *maker) fill(v reflect.Value, depth int) error {
	v = open(v)
	switch v.Type() {
	case tensorType:
		v.Set(reflect.ValueOf(m.maybeFailed(m.tensor())))
		return nil
	case writerType:
		v.Set(reflect.ValueOf(logWriter{m}))
		return nil
	case contextType:
		v.Set(reflect.ValueOf(context.Background()))
		return nil
	case randType:
		v.Set(reflect.ValueOf(rand.New(rand.NewPCG(m.seed, 2))))
		return nil
	}
	if depth > 6 {
		return fmt.Errorf("%v leads too deep", v.Type())
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(m.rand.IntN(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(2 + m.rand.IntN(4)))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(2 + m.rand.IntN(4)))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(m.rand.Float64())
	case reflect.String:
		v.SetString(fmt.Sprintf("s%d", m.rand.IntN(10)))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 7, 7))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			if err := m.fill(v.Index(i), depth+1); err != nil {
				return err
			}
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
	case reflect.Struct:
		for i := range v.NumField() {
			if err := m.fill(v.Field(i), depth+1); err != nil {
				return err
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return m.fill(v.Elem(), depth+1)
	default:
		return fmt.Errorf("a %v can't be made by type: write a function that makes the arguments", v.Type())
	}
	return nil
}

// tensor makes the next tensor; all of one input have the same shape.
func (m *maker) tensor() *tensor.Tensor {
	n := int(2 + m.seed%3)
	return tensor.Uniform(-1, 1, n, n)
}

// maybeFailed counts t, and returns a tensor of its shape and type that has
// failed if its turn has come.
func (m *maker) maybeFailed(t *tensor.Tensor) *tensor.Tensor {
	m.tensors++
	if m.tensors != m.fault {
		return t
	}
	nothing := tensor.From([]int64{0}).Reshape()
	failed := nothing.Div(nothing).As(device.Float32).BroadcastTo(t.Shape()...) // there is no integer 0/0
	return failed.As(t.DType()).To(t.Device())
}

// A logWriter appends to the log of its maker, which all writers of an input
// share: the order among them counts.
type logWriter struct{ m *maker }

func (w logWriter) Write(p []byte) (int, error) {
	w.m.log = append(w.m.log, p...)
	return len(p), nil
}
