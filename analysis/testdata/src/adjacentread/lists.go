package adjacentread

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"sync"

	"batch"
	"lists"

	"github.com/asyncgen/asyncgen/device"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// The numbers of a list, one by one, where nothing is enqueued any more.

type scored struct {
	loss *tensor.Tensor
	name string
}

type scalar struct{ *tensor.Tensor }

type recorder struct {
	series map[string][]float64
	kept   map[string][]*tensor.Tensor
}

func oneByOne(ts []*tensor.Tensor, byName map[string]*tensor.Tensor, scores []scored, scalars []scalar) (total float64) {
	for _, t := range ts {
		total += t.Item() // want `read after read: t.Item\(\) reads one tensor of ts at a time; stack them and read once \[AT007\]`
	}
	for i := range ts {
		total += ts[i].Item() // want `ts\[i\].Item\(\) reads one tensor of ts`
	}
	for i := len(ts) - 1; i >= 0; i-- {
		total = ts[i].Item() + 0.9*total // want `AT007`
	}
	for name, t := range byName {
		fmt.Println(name, t.Item()) // want `reads one tensor of byName`
	}
	for _, s := range scores {
		total += s.loss.Item() // want `s.loss.Item\(\) reads one tensor of scores`
		fmt.Println(len(s.name))
	}
	for _, s := range scalars {
		total += s.Item() // want `AT007`
	}
	for _, t := range ts {
		first := t.Reshape(1)
		read := first.Item
		total = max(total, read()) // want `AT007`
	}
	for _, t := range ts {
		v := t.Item() // want `AT007`
		if math.IsNaN(v) {
			panic("not a number")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		fmt.Println(name, byName[name].Item()) // want `reads one tensor of byName`
	}
	for _, t := range ts {
		total += batch.Value(t) // want `batch.Value reads one tensor of ts`
	}
	return total
}

func (r *recorder) all(name string, values iter.Seq[*tensor.Tensor]) (out []float64) {
	for _, t := range r.kept[name] {
		out = append(out, t.Item()) // want `reads one tensor of r.kept\[name\]`
	}
	var joined []float32
	for _, t := range r.kept[name] {
		joined = append(joined, t.Float32s()...) // want `reads one tensor of r.kept\[name\] at a time; concatenate them and read once`
	}
	for t := range values {
		out = append(out, t.Item()) // want `reads one tensor of values`
	}
	return out
}

// By way of a function.

func each[T, U any](list []T, f func(T) U) (out []U) {
	for _, x := range list {
		out = append(out, f(x))
	}
	return out
}

func fold[T, A any](seq iter.Seq[T], a A, f func(A, T) A) A {
	for x := range seq {
		a = f(a, x)
	}
	return a
}

type valuer interface{ Item() float64 }

func mean[T valuer](list []T) (sum float64) {
	for _, x := range list {
		sum += x.Item()
	}
	return sum / float64(len(list))
}

func meanOf(list []valuer) (sum float64) {
	for _, x := range list {
		sum += x.Item()
	}
	return sum / float64(len(list))
}

func passedOn[T valuer](list []T) float64 { return mean(list) }

func first[T valuer](list []T) float64 { return list[0].Item() }

type host struct{ v float64 }

func (h host) Item() float64   { return h.v }
func (s scored) Item() float64 { return s.loss.Item() }
func (s scored) half() float64 { return s.loss.Item() / 2 }

func elements[T device.Element](ts []*tensor.Tensor) (out []T) {
	for _, t := range ts {
		out = append(out, tensor.ItemOf[T](t)) // want `tensor.ItemOf\[T\]\(t\) reads one tensor of ts`
	}
	return out
}

func calls(ts []*tensor.Tensor, hosts []host, scores []scored, any []valuer) (total float64) {
	each(ts, (*tensor.Tensor).Item)                                  // want `\(\*tensor.Tensor\).Item reads one tensor of ts`
	each(ts, tensor.ItemOf[float64])                                 // want `tensor.ItemOf\[float64\] reads one tensor of ts`
	each(ts, func(t *tensor.Tensor) float64 { return 2 * t.Item() }) // want `t.Item\(\) reads one tensor of ts`
	each(ts, func(t *tensor.Tensor) *tensor.Tensor { return t.Norm() })
	fold(slices.Values(ts), 0, func(sum float64, t *tensor.Tensor) float64 {
		return sum + t.Item() // want `reads one tensor of slices.Values\(ts\)`
	})
	lists.Map(ts, (*tensor.Tensor).Item) // want `\(\*tensor.Tensor\).Item reads one tensor of ts`
	each(ts, (*tensor.Tensor).Norm)
	each(ts, (*tensor.Tensor).Float32s) // of any size
	each(hosts, host.Item)
	total += mean(ts)     // want `mean reads one tensor of ts`
	total += passedOn(ts) // want `passedOn reads one tensor of ts`
	total += mean(hosts)
	total += meanOf(any)
	total += first(ts)
	return total
}

// Silent.

func silent(ts []*tensor.Tensor, in <-chan *tensor.Tensor, data []Batch, n int) (total float64, all [][]float32) {
	for _, t := range ts {
		all = append(all, t.Float32s()) // of any size
	}
	for _, t := range ts[:2] {
		_ = t.Dim(0)
	}
	for _, t := range []*tensor.Tensor{ts[0], ts[1], ts[2]} {
		total += t.Item()
	}
	for i := range 3 {
		total += ts[i].Item()
	}
	for t := range in {
		total += t.Item()
	}
	for i, t := range ts {
		if i%100 == 0 {
			total += t.Item()
		}
		if t.Ready() {
			total += t.Item()
		}
	}
	for _, t := range ts { // perhaps the first few
		if t.Item() > 10 {
			break
		}
	}
	asyncrt.AllowSync(func() {
		for _, t := range ts {
			total += t.Item()
		}
	})
	var own []*tensor.Tensor
	for i := range n {
		own = append(own, tensor.From([]float64{float64(i)}))
	}
	for _, t := range own {
		total += t.Item() // the program has these anyway
	}
	for i := range n {
		total += ts[lookUp(i)].Item()
	}
	for i, b := range data { // work to do meanwhile
		batch.Loss(w, b)
		total += ts[i].Item()
	}
	var group sync.WaitGroup
	group.Go(func() {
		for _, t := range ts {
			fmt.Println(t.Item())
		}
	})
	group.Wait()
	return total, all
}

func lookUp(i int) int { return i * i }

func waited(ts []*tensor.Tensor) (total float64, err error) {
	if err := tensor.Wait(ts...); err != nil {
		return 0, err
	}
	for _, t := range ts {
		total += t.Item() // a copy, no more
	}
	return total, nil
}

// The element is read by a method.

type means struct{ sums map[string]*tensor.Tensor }

func (m *means) value(name string) float64 { return m.sums[name].Item() }

func (m *means) all(first []string) (out []float64) {
	for name := range m.sums {
		out = append(out, m.value(name)) // want `m.value reads one tensor of m.sums at a time`
	}
	for _, name := range first[:2] {
		out = append(out, m.value(name)) // two
	}
	return out
}

func show(xs []tensor.F64) {
	for i, x := range xs {
		fmt.Println(i, x) // want `fmt.Println reads one number of xs at a time; stack what As makes of them, and read once`
	}
}

func pairs(xs [][2]*tensor.Tensor) (sum float64) {
	for _, x := range xs {
		sum += x[0].Item() - x[1].Item() // want `x\[0\].Item\(\) reads one tensor of xs` `x\[1\].Item\(\) reads one tensor of xs`
	}
	return sum
}

type point struct{ at *tensor.Tensor }

func (p point) xy() (x, y float64) { return p.at.At(0), p.at.At(1) }

func moved(ps []point, by *tensor.Tensor) (out []point) {
	for _, p := range ps {
		out = append(out, point{p.at.Add(by)})
	}
	return out
}

func width(ps []point) (low, high float64) {
	for _, p := range ps {
		x, _ := p.xy() // want `p.xy reads one tensor of ps at a time`
		low, high = min(low, x), max(high, x)
	}
	return low, high
}

// In each step, which is a warning; see the folder severity.
func eachStep(data []Batch, opt *optim.Optimizer, kept []*tensor.Tensor) (total float64) {
	for _, b := range data {
		opt.Minimize(batch.Loss(w, b))
		for _, k := range kept {
			total += k.Item() // want `k.Item\(\) reads one tensor of kept at a time`
		}
	}
	return total
}

// The same part of each element.
func lowest(steps [][]*tensor.Tensor, part, at int) (low float64) {
	for _, s := range steps {
		low = min(low, s[part].At(at)) // want `reads one tensor of steps at a time`
	}
	for i, s := range steps {
		low = min(low, s[i].At(at)) // of another part each time
	}
	return low
}
