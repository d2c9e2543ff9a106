package sametensor

import (
	"reflect"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type layer struct {
	name string
	w    *tensor.Tensor
}

func lists(a, b []*tensor.Tensor, m map[string]*tensor.Tensor, l layer, names []string) bool {
	return reflect.DeepEqual(a, b) || // want `reflect.DeepEqual compares how tensors are kept, not their values; compare elements with Eq, or what they are read as \[AT033\]`
		reflect.DeepEqual(m, map[string]*tensor.Tensor{"a": a[0]}) || // want `AT033`
		reflect.DeepEqual(l, layer{"a", b[0]}) || // want `AT033`
		reflect.DeepEqual(names, []string{l.name}) ||
		reflect.DeepEqual(a[0].Float32s(), b[0].Float32s()) ||
		reflect.DeepEqual(a, nil)
}
