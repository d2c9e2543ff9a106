package asynctest

import (
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A dumper writes values as text in which equal means equal bit for bit,
// except that all NaNs are one.
type dumper struct {
	strings.Builder
	seen map[unsafe.Pointer]int
}

func newDumper() *dumper { return &dumper{seen: make(map[unsafe.Pointer]int)} }

// printf is for what is written seldom: it takes longer than the methods of Builder.
func (d *dumper) printf(format string, args ...any) { fmt.Fprintf(&d.Builder, format, args...) }

// value writes v and what it leads to.
func (d *dumper) value(v reflect.Value) {
	if !v.IsValid() {
		d.printf("nothing")
		return
	}
	if v.CanAddr() {
		v = open(v)
	}
	if v.Type() == tensorType && v.CanInterface() {
		d.tensor(v.Interface().(*tensor.Tensor))
		return
	}
	if v.Type() == reflect.TypeFor[asyncrt.F64]() && v.CanInterface() {
		d.tensor(v.Interface().(asyncrt.F64).As(tensor.Float64))
		return
	}
	switch v.Kind() {
	case reflect.Float32, reflect.Float64:
		d.float(v.Float())
	case reflect.Complex64, reflect.Complex128:
		d.float(real(v.Complex()))
		d.float(imag(v.Complex()))
	case reflect.Slice:
		if v.IsNil() {
			d.printf("nil slice")
			return
		}
		d.list(v)
	case reflect.Array:
		d.list(v)
	case reflect.Map:
		d.dict(v)
	case reflect.Struct:
		d.printf("%v{", v.Type())
		for i := range v.NumField() {
			d.WriteString(v.Type().Field(i).Name)
			d.WriteByte(':')
			d.value(v.Field(i))
			d.WriteByte(' ')
		}
		d.printf("}")
	case reflect.Interface:
		d.value(v.Elem())
	case reflect.Pointer:
		d.pointer(v)
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		d.printf("%v", v.Type())
	default:
		d.printf("%v", v)
	}
}

func (d *dumper) float(f float64) {
	if math.IsNaN(f) {
		d.printf("NaN")
		return
	}
	var room [64]byte
	text := strconv.AppendUint(room[:0], math.Float64bits(f), 16)
	text = append(text, '(')
	text = strconv.AppendFloat(text, f, 'g', -1, 64)
	d.Write(append(text, ')'))
}

func (d *dumper) list(v reflect.Value) {
	d.WriteByte('[')
	for i := range v.Len() {
		d.value(v.Index(i))
		d.WriteByte(' ')
	}
	d.WriteByte(']')
}

func (d *dumper) dict(v reflect.Value) {
	var entries []string
	for _, key := range v.MapKeys() {
		e := &dumper{seen: d.seen}
		e.value(key)
		e.printf(":")
		e.value(v.MapIndex(key))
		entries = append(entries, e.String())
	}
	slices.Sort(entries)
	d.printf("map%q", entries)
}

func (d *dumper) pointer(v reflect.Value) {
	if v.IsNil() {
		d.printf("nil")
		return
	}
	switch v.Type() {
	case reflect.TypeFor[*maker](), reflect.TypeFor[*os.File]():
		d.printf("%v", v.Type()) // what is written there is compared elsewhere
		return
	}
	if v.CanInterface() {
		if c, ok := v.Interface().(tensor.Cell); ok {
			d.printf("cell ")
			d.tensor(c.Value())
			return
		}
		if err, ok := v.Interface().(error); ok {
			d.printf("%s", panicText(err))
			return
		}
	}
	if strings.HasPrefix(v.Type().Elem().PkgPath(), reflect.TypeFor[asyncrt.Read]().PkgPath()) {
		d.printf("%v", v.Type()) // of the library: it has no fields that a program can see
		return
	}
	p := v.UnsafePointer()
	if n, ok := d.seen[p]; ok {
		d.printf("again %d", n)
		return
	}
	d.seen[p] = len(d.seen)
	d.printf("&")
	d.value(v.Elem())
}

// tensor writes shape, type and bits, or the failure.
func (d *dumper) tensor(t *tensor.Tensor) {
	if t == nil {
		d.printf("nil tensor")
		return
	}
	d.printf("%v%v", t.DType(), t.Shape())
	if err := t.Wait(); err != nil {
		var op *asyncrt.OpError
		if errors.As(err, &op) {
			err = op.Err
		}
		d.printf("failed: %v", err)
		return
	}
	var values any
	switch t.DType() {
	case tensor.Float32:
		values = t.Float32s()
	case tensor.Float64:
		values = t.Float64s()
	case tensor.Int64:
		values = t.Int64s()
	case tensor.Float16, tensor.BFloat16:
		values = t.As(tensor.Float32).Float32s()
	case tensor.Int32:
		values = tensor.SliceOf[int32](t)
	case tensor.Uint8:
		values = tensor.SliceOf[uint8](t)
	default:
		values = t.Bools()
	}
	d.list(reflect.ValueOf(values))
}
