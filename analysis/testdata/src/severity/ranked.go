package severity

import (
	"cmp"
	"container/heap"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"

	"github.com/asyncgen/asyncgen/runtime/data"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// The host keeps in order what it chooses from.

type ranked struct {
	at    int
	score float64
}

type ranks []ranked

func (q ranks) Len() int           { return len(q) }
func (q ranks) Less(i, j int) bool { return q[i].score > q[j].score }
func (q ranks) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *ranks) Push(x any)        { *q = append(*q, x.(ranked)) }
func (q *ranks) Pop() any          { return nil }

func hardest(net nn.Module, opt *optim.Optimizer, x *tensor.Tensor, n int) (worst ranks) {
	var q ranks
	for i := range n {
		heap.Push(&q, ranked{i, net.Forward(x.Row(i)).Norm().Item()}) // want `AT001`
	}
	for range n {
		s := heap.Pop(&q).(ranked)
		loss := net.Forward(x.Row(s.at)).Norm()
		opt.Minimize(loss)
		heap.Push(&q, ranked{s.at, loss.Item()}) // the next one is the first of the queue
	}
	for i := range n { // the order changes nothing
		loss := net.Forward(x.Row(i)).Norm()
		opt.Minimize(loss)
		heap.Push(&worst, ranked{i, loss.Item()}) // want `AT001`
	}
	return worst
}

func worseHalf(net nn.Module, opt *optim.Optimizer, batches []*tensor.Tensor) {
	for _, x := range batches {
		var all []ranked
		for i, v := range nn.Frozen(net).Forward(x).Float32s() { // want `AT`
			all = append(all, ranked{i, float64(v)})
		}
		slices.SortFunc(all, func(a, b ranked) int { return cmp.Compare(a.score, b.score) })
		opt.Minimize(net.Forward(x.Row(all[0].at)).Norm())
	}
}

type hypothesis struct {
	ids   []int64
	score float64
}

func joined(beam []hypothesis) *tensor.Tensor {
	var flat []int64
	for _, h := range beam {
		flat = append(flat, h.ids...)
	}
	return tensor.From(flat)
}

func bestOf(all []hypothesis, width int) []hypothesis {
	slices.SortFunc(all, func(a, b hypothesis) int { return cmp.Compare(b.score, a.score) })
	return all[:width]
}

type scorer interface {
	next(prefixes *tensor.Tensor) *tensor.Tensor
}

func beamSearch(net scorer, beam []hypothesis, width, n int) []hypothesis {
	for range n {
		v, at := net.next(joined(beam)).TopK(width, 1, tensor.Descending)
		if tensor.Wait(v, at) != nil { // both are read
			return nil
		}
		scores, ids := v.Float32s(), at.Int64s()
		var all []hypothesis
		for i, h := range beam {
			all = append(all, hypothesis{append(slices.Clone(h.ids), ids[i]), h.score + float64(scores[i])})
		}
		beam = bestOf(all, width)
	}
	for i := range n {
		v, at := net.next(tensor.Ones(i)).TopK(width, 1, tensor.Descending)
		if tensor.Wait(v, at) != nil { // want `AT009`
			return nil
		}
	}
	return beam
}

// One candidate after the other.
func slowSearch(net nn.Module, beam []hypothesis, width, n int) []hypothesis {
	net = nn.Frozen(net)
	for range n {
		var all []hypothesis
		for _, h := range beam {
			v := net.Forward(joined([]hypothesis{h})).Max().Item() // want `AT001`
			all = append(all, hypothesis{h.ids, v})
		}
		beam = bestOf(all, width)
	}
	return beam
}

// A reader that the caller knows.
func recite(net nn.Module, abc *data.Alphabet, w io.Writer, r http.ResponseWriter, x *tensor.Tensor, n int) error {
	net = nn.Frozen(net)
	for range n {
		x = net.Forward(x).ArgMax(0)
		word := abc.Decode(x.Int64s())
		if _, err := io.WriteString(w, word); err != nil {
			return err
		}
		if word == "." {
			break
		}
	}
	for range n {
		x = net.Forward(x).ArgMax(0)
		io.WriteString(r, abc.Decode(x.Int64s())) // want `AT001`
	}
	for range n {
		x = net.Forward(x)
		fmt.Fprintln(w, x.Norm().Item()) // want `AT004`
	}
	return nil
}

// A line for each name.
func curves(kept map[string][]*tensor.Tensor, byName map[string]*tensor.Tensor) {
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		fmt.Println(name, tensor.Stack(0, kept[name]...).Mean())
	}
	for name, list := range kept {
		fmt.Println(name, tensor.Stack(0, list...).Mean().Item())
	}
	for name := range kept {
		fmt.Println(name, tensor.Stack(0, kept[name]...).Mean())
	}
	for _, list := range kept {
		fmt.Println(tensor.Stack(0, list...).Mean()) // want `AT004`
	}
	for name, x := range byName {
		fmt.Println(name, x.Norm()) // want `AT004`
	}
}

// chatty is no conversation.
func chatty(net nn.Module, opt *optim.Optimizer, xs []*tensor.Tensor) {
	for _, x := range xs {
		loss := net.Forward(x).Norm()
		opt.Minimize(loss)
		fmt.Println(loss) // want `AT004`
	}
}
