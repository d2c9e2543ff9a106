package adjacentread

import (
	"fmt"
	"hash/fnv"
	"io"
	"strings"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func groups(xs []*tensor.Tensor) map[string]int {
	seen := make(map[string]int)
	for i, x := range xs {
		key := fmt.Sprintf("%v", x) // want `read after read: fmt.Sprintf reads one tensor of xs at a time; stack them and read once`
		seen[key] = i
	}
	return seen
}

func joinedKey(xs []*tensor.Tensor) string {
	var b strings.Builder
	for _, x := range xs {
		b.WriteString(x.String()) // want `x.String\(\) reads one tensor of xs at a time`
	}
	return b.String()
}

func nameOf(xs map[string]*tensor.Tensor) (s string) {
	for k, x := range xs {
		s += fmt.Sprint(k, x) // want `AT007`
	}
	return s
}

func sum64(xs []*tensor.Tensor) uint64 {
	h := fnv.New64a()
	for _, x := range xs {
		io.WriteString(h, fmt.Sprint(x)) // want `AT007`
	}
	for _, x := range xs {
		fmt.Fprint(h, x) // want `fmt.Fprint reads one tensor of xs`
	}
	return h.Sum64()
}

type entry struct {
	id int
	x  *tensor.Tensor
}

func (e entry) key() string { return e.x.String() }

func byKey(list []entry) map[string]int {
	m := make(map[string]int)
	for _, e := range list {
		m[e.key()] = e.id // want `e.key reads one tensor of list at a time`
	}
	return m
}

// Silent from here on.

func shapeKeys(xs []*tensor.Tensor) (list []string) {
	for _, x := range xs {
		list = append(list, fmt.Sprintf("%i", x))
	}
	return list
}

func ids(list []entry) map[string]int {
	m := make(map[string]int)
	for _, e := range list {
		m[fmt.Sprint(e.id)] = e.id
	}
	return m
}

func lines(xs []*tensor.Tensor) (list []string) {
	for _, x := range xs {
		list = append(list, fmt.Sprintf("%v", x))
	}
	return list
}

func addUp(xs []tensor.F64) (sum float64) {
	for _, x := range xs {
		sum += x.Item()
	}
	return sum
}

func rest(xs []*tensor.Tensor) (sum float64) {
	var queue []*tensor.Tensor
	for _, x := range xs {
		queue = append(queue, x.Sum())
		if len(queue) > 8 {
			sum += queue[0].Item()
			queue = queue[1:]
		}
	}
	for _, x := range queue {
		sum += x.Item()
	}
	return sum
}
