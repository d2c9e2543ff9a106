package growth

import "github.com/asyncgen/asyncgen/runtime/tensor"

// Maps that nobody looks at.

var byName = map[string]*tensor.Tensor{}

var looked = map[string]*tensor.Tensor{}

type index struct {
	recent, cut, asked, again map[string]*tensor.Tensor
	groups                    map[string][]*tensor.Tensor
	counts                    map[string]int
}

func newIndex() *index {
	return &index{recent: make(map[string]*tensor.Tensor), cut: make(map[string]*tensor.Tensor), groups: make(map[string][]*tensor.Tensor)}
}

func (x *index) add(name string, t *tensor.Tensor) int {
	y := t.MulScalar(2)
	x.recent[name] = y // want `x.recent keeps tensors, and nothing ever looks at them; count them, or drop the map`
	byName[name] = y   // want `byName keeps tensors`
	looked[name] = y
	x.cut[name] = y
	delete(x.cut, name)
	x.asked[name] = y
	x.groups[name] = append(x.groups[name], y)
	x.counts[name]++
	x.again = make(map[string]*tensor.Tensor)
	x.again[name] = y
	return len(x.recent)
}

func (x *index) ask(name string) *tensor.Tensor { return x.asked[name].Add(looked[name]) }
