package severity

import (
	"context"
	"fmt"
	"iter"

	"github.com/asyncgen/asyncgen/runtime/data"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Letters that a person sees come, and words that a caller takes one by one.

type letters []rune

func (l letters) decode(ids []int64) string { return string(l[ids[0]]) }

func babble(net nn.Module, l letters, x *tensor.Tensor, n int) {
	net = nn.Frozen(net)
	for range n {
		x = net.Forward(x).ArgMax(0)
		fmt.Print(l.decode(x.Int64s()))
	}
	for range n {
		x = net.Forward(x).ArgMax(0)
		fmt.Print(string(rune(x.ItemInt())))
	}
	for range n {
		x = net.Forward(x).ArgMax(0)
		fmt.Printf("%c", rune(x.ItemInt()))
	}
	for range n {
		x = net.Forward(x).ArgMax(0)
		fmt.Printf("%d ", x.ItemInt()) // want `AT004`
	}
	for i := range n {
		y := net.Forward(x.AddScalar(float64(i))).ArgMax(0)
		fmt.Print(l.decode(y.Int64s())) // want `AT001`
	}
}

func words(ctx context.Context, net nn.Module, x *tensor.Tensor, n int) iter.Seq2[int64, error] {
	return func(yield func(int64, error) bool) {
		net := nn.Frozen(net)
		for range n {
			x = net.Forward(x).ArgMax(0)
			if err := x.WaitContext(ctx); err != nil {
				yield(0, err)
				return
			}
			if id := x.ItemInt(); id == 0 || !yield(id, nil) {
				return
			}
		}
	}
}

func spelled(ctx context.Context, net nn.Module, l letters, x *tensor.Tensor) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		net := nn.Frozen(net)
		for ctx.Err() == nil {
			x = net.Forward(x).ArgMax(0)
			id, err := x.ItemContext(ctx)
			if err != nil {
				yield("", err)
				return
			}
			if !yield(l.decode([]int64{int64(id)}), nil) {
				return
			}
		}
	}
}

func norms(net nn.Module, x *tensor.Tensor, n int) iter.Seq[float64] {
	return func(yield func(float64) bool) {
		net := nn.Frozen(net)
		for range n {
			x = net.Forward(x)
			if err := x.Wait(); err != nil { // want `AT009`
				return
			}
			fmt.Println(x.Norm().Item()) // want `AT004`
		}
	}
}

// The place of the next experiment has to be known.
type guess struct{ x, y *tensor.Tensor }

func (g *guess) next(at *tensor.Tensor) int { return int(at.Sub(g.x).MatMul(g.y).ArgMax().ItemInt()) }

func exploreNext(g *guess, at *tensor.Tensor, measure func(x []float32) float64, n int) {
	for range n {
		x := at.Row(g.next(at))
		y := measure(x.Float32s())
		g.x, g.y = tensor.Concat(0, g.x, x), tensor.Concat(0, g.y, tensor.From([]float32{float32(y)}))
	}
}

func exploreGrid(g *guess, grid [][]float32, at *tensor.Tensor, run func(x []float32) (float64, error), n int) {
	for range n {
		i := g.next(at)
		y, err := run(grid[i])
		if err != nil {
			return
		}
		g.x = tensor.Concat(0, g.x, at.Row(i).MulScalar(y))
	}
}

func exploreOwn(g *guess, at *tensor.Tensor, n int) (list []float32) {
	for range n {
		x := at.Row(g.next(at)).Square() // want `AT010`
		at = at.Add(x)
	}
	return at.Float32s()
}

// A table of sizes, in which each line has its own tensors.
func table(sizes []int) {
	for _, n := range sizes {
		x := tensor.Randn(n, n)
		fmt.Println(n, x.MatMul(x).Norm().Item())
	}
	x := tensor.Randn(8)
	for _, n := range sizes {
		x = x.MulScalar(float64(n))
		fmt.Println(n, x.Norm().Item()) // want `AT004`
	}
	for _, n := range sizes {
		fmt.Println(tensor.Randn(n, n).Norm().Item()) // want `AT004`
	}
}

func compare(nets map[string]nn.Module, x *tensor.Tensor) {
	for name, net := range nets {
		fmt.Println(name, nn.Frozen(net).Forward(x).Norm().Item())
	}
	for name := range nets {
		x = x.Square()
		fmt.Println(name, x.Norm().Item()) // want `AT004`
	}
}

// Steps in blocks: each is asked once whether it was enough.
func walk(x *tensor.Tensor, steps int) *tensor.Tensor {
	for range steps {
		x = x.Add(x.Square().MulScalar(0.1))
	}
	return x
}

func until(x *tensor.Tensor, block int, limit float64) *tensor.Tensor {
	for {
		x = walk(x, block)
		if x.Norm().Item() < limit {
			return x
		}
	}
}

func frames(x *tensor.Tensor, every, n int, show func([]float32)) {
	for range n {
		x = walk(x, every)
		show(x.Float32s())
	}
	for range n {
		x = walk(x, 1)
		show(x.Float32s()) // want `AT001`
	}
}

func cycles(x *tensor.Tensor, limit float64) *tensor.Tensor {
	for {
		x = walk(x, 2)
		if x.Norm().Item() < limit { // want `AT005`
			return x
		}
	}
}

func accepted(x *tensor.Tensor, leaps, n int) *tensor.Tensor {
	for range n {
		y := walk(x, leaps)
		if y.Norm().Item() < 1 { // want `AT005`
			x = y
		}
	}
	return x
}

// Data sets, over each of which a function goes once.
func meanLoss(net nn.Module, l *data.Loader) *tensor.Tensor {
	total := tensor.Zeros()
	for b, err := range l.All() {
		if err != nil {
			break
		}
		total = total.Add(nn.MSELoss(net.Forward(b.X), b.Y))
	}
	return total
}

func evaluated(net nn.Module, sets map[string]*data.Loader) {
	net = nn.Frozen(net)
	for name, l := range sets {
		fmt.Println(name, meanLoss(net, l).Item())
	}
}

// The rows of a matrix that each iteration computes from the one before are no data.
func newton(f func(x *tensor.Tensor) *tensor.Tensor, x *tensor.Tensor, n int) error {
	for range n {
		r := f(x)
		rows := make([]*tensor.Tensor, r.Dim(0))
		for i := range rows {
			rows[i] = r.Row(i).Square().Sum()
		}
		d := tensor.Stack(0, rows...)
		x = x.Sub(d)
		if err := d.Wait(); err != nil { // want `AT009`
			return err
		}
	}
	return nil
}

type embedded struct{ v *tensor.Tensor }

// Who receives a tensor can wait for it.
func embed(net nn.Module, in <-chan []float32, out chan<- embedded) {
	for x := range in {
		v := net.Forward(tensor.From(x))
		v.Wait() // want `AT009`
		out <- embedded{v}
	}
	for x := range in {
		v := net.Forward(tensor.From(x))
		if err := v.Wait(); err != nil {
			continue
		}
		out <- embedded{v}
	}
}

func told(ctx context.Context, net nn.Module, abc *data.Alphabet, ids []int64, out chan<- string) (text string) {
	net = nn.Frozen(net)
	for ctx.Err() == nil {
		id := net.Forward(tensor.From(ids, 1, len(ids))).ArgMax(0).Int64s()[0]
		select {
		case out <- abc.Decode([]int64{id}):
		case <-ctx.Done():
		}
		ids = append(ids, id)
	}
	for range 100 {
		id := net.Forward(tensor.From(ids, 1, len(ids))).ArgMax(0).Int64s()[0] // want `AT001`
		text += abc.Decode([]int64{id})
		ids = append(ids, id)
	}
	for i := range 100 {
		id := net.Forward(tensor.Ones(i)).ArgMax(0).Int64s()[0] // want `AT001`
		out <- abc.Decode([]int64{id})
	}
	return text
}

// The larger networks run only if the smaller ones are not sure.
func cascade(nets []nn.Module, x *tensor.Tensor, sure float64) *tensor.Tensor {
	for _, net := range nets {
		if y := nn.Frozen(net).Forward(x); y.Norm().Item() > sure {
			return y
		}
	}
	return nil
}

func sureOnes(nets []nn.Module, x *tensor.Tensor, sure float64) (ys []*tensor.Tensor) {
	for _, net := range nets {
		y := nn.Frozen(net).Forward(x)
		if y.Norm().Item() > sure { // want `AT005`
			continue
		}
		ys = append(ys, y.Square())
	}
	return ys
}

func firstSure(net nn.Module, xs []*tensor.Tensor, sure float64) *tensor.Tensor {
	for _, x := range xs {
		if y := nn.Frozen(net).Forward(x); y.Norm().Item() > sure { // want `AT005`
			return y
		}
	}
	return nil
}
