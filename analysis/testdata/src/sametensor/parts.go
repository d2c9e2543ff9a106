package sametensor

import (
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type net struct {
	params []*tensor.Param
	old    []*tensor.Tensor
	memo   []*tensor.Tensor
	out    *tensor.Tensor
}

func sameMaps(a, b map[string]*tensor.Tensor) bool {
	for k, v := range a {
		if b[k] != v { // want `b\[k\] != v compares two tensors by identity, not by value`
			return false
		}
	}
	for k := range b {
		w := a[k]
		if w != b[k] { // want `w != b\[k\] compares two tensors by identity, not by value`
			return false
		}
	}
	return maps.Equal(a, b) // want `maps.Equal\(a, b\) compares tensors by identity`
}

func hits(got, want []*tensor.Tensor) (n int) {
	for i := range got {
		if got[i] == want[i] { // want `got\[i\] == want\[i\] compares`
			n++
		}
	}
	if slices.Equal(got, want) { // want `slices.Equal\(got, want\) compares tensors by identity`
		n++
	}
	return n
}

func sameLayers(a, b layer) bool {
	return a.name == b.name && a.w == b.w // want `a.w == b.w compares`
}

func (n *net) changed(i int) bool {
	v := n.params[i].Value()
	return v != n.old[i] || // want `v != n.old\[i\] compares two tensors that are never the same one`
		n.params[i].Grad() != n.old[i] // want `never the same one`
}

func (n *net) keys(seen map[*tensor.Tensor]int, m *sync.Map, x *tensor.Tensor) bool {
	seen[x.Reshape(-1)]++                // want `seen\[x.Reshape\(-1\)\] looks for a tensor that was just made, and so is no key of a map`
	if _, ok := m.Load(x.Detach()); ok { // want `m.Load looks for a tensor that was just made`
		return true
	}
	y := x.Square()
	if _, ok := seen[y]; ok { // want `seen\[y\] looks for`
		return true
	}
	return slices.Contains(n.old, y) // want `slices.Contains looks for a tensor that was just made`
}

func (n *net) Has(x *tensor.Tensor) bool {
	return slices.Contains(n.old, x) // want `slices.Contains compares tensors by identity`
}

func kind(x, yes *tensor.Tensor) string {
	switch x.ArgMax(0) {
	case yes: // want `case yes compares two tensors that are never the same one`
		return "yes"
	}
	return "no"
}

func equalAny(a, b any) bool { return a == b }

func byAny(x *tensor.Tensor, n int) bool {
	return equalAny(n, 3) || equalAny(x.Square(), x) // want `equalAny\(x.Square\(\), x\) compares two tensors that are never the same one`
}

func indexOf[T comparable](list []T, x T) int {
	for i, y := range list {
		if x == y {
			return i
		}
	}
	return -1
}

func find(list []*tensor.Tensor, x *tensor.Tensor) bool {
	y := x.Square()
	return indexOf(list, x.Square()) >= 0 || // want `indexOf looks for a tensor that was just made`
		slices.ContainsFunc(list, func(t *tensor.Tensor) bool { return t == y }) // want `t == y compares two tensors that are never the same one`
}

// Silent.

func place(list []*tensor.Tensor, x *tensor.Tensor) int { return indexOf(list, x) }

func (n *net) run(xs []*tensor.Tensor) *tensor.Tensor {
	if slices.Equal(n.memo, xs) { // what the result was computed from
		return n.out
	}
	n.memo, n.out = xs, xs[0].Square()
	return n.out
}

func (n *net) drop(x *tensor.Tensor) {
	if !slices.Contains(n.old, x) {
		return
	}
	n.old = slices.DeleteFunc(n.old, func(y *tensor.Tensor) bool { return x == y }) // want `by identity`
}

func (n *net) keeps(x *tensor.Tensor) bool { return slices.Contains(n.memo, x) }

func sharesWeights(a, b layer) bool { return a.w == b.w } // want `by identity`

func names(xs []*tensor.Tensor) map[*tensor.Tensor]int {
	m := make(map[*tensor.Tensor]int)
	for i, x := range xs {
		m[x] = i
		y := x.Square()
		m[y] = i // somebody may have y
		xs[i] = y
		if m[y] > 0 {
			break
		}
	}
	return m
}

func tied(a, b []*tensor.Param) bool { return a[0] == b[0] }

func nameOf(named map[string]*tensor.Tensor, x *tensor.Tensor) (string, bool) {
	for name, v := range named {
		if v == x { // want `v == x compares two tensors by identity`
			return name, true
		}
	}
	return "", false
}

func index(list []*tensor.Tensor, x *tensor.Tensor) int {
	return slices.Index(list, x) // want `slices.Index compares tensors by identity`
}

func distinct(list []*tensor.Tensor) []*tensor.Tensor {
	return slices.Compact(list) // want `slices.Compact\(list\) compares tensors by identity`
}

func equalAll(a, b layer, p, q [2]*tensor.Tensor) bool {
	return a == b && // want `a == b compares the tensors in two values by identity`
		p != q // want `p != q compares the tensors in two values by identity`
}

type named map[string]*tensor.Tensor

func (n named) sorted() iter.Seq2[string, *tensor.Tensor] { return maps.All(n) }

func differences(a, b named) (list []string) {
	for name, x := range a.sorted() {
		y, ok := b[name]
		switch {
		case !ok:
		case x == y: // want `x == y compares two tensors by identity, not by value`
			continue
		}
		list = append(list, name)
	}
	for name, x := range maps.All(a) {
		if x != b[name] { // want `x != b\[name\] compares two tensors by identity`
			list = append(list, name)
		}
	}
	return list
}
