package earlyread

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Work outside of loops that doesn't need what is read before it.

type option struct{ spot, strike float64 }

func (o option) price(n, steps int) float64 {
	s := tensor.Ones(n).MulScalar(o.spot)
	for range steps {
		s = s.Mul(tensor.Randn(n))
	}
	return s.SubScalar(o.strike).Mean().Item()
}

func (o option) delta(n int) float64 {
	up, down := o, o
	up.spot, down.spot = o.spot+1, o.spot-1
	above := up.price(n, 50) // want `early read: up.price waits for the device before down.price gives it more to do, which needs no value; enqueue both, then read \[AT024\]`
	below := down.price(n, 50)
	return above - below
}

type explainer struct{ net nn.Module }

func (e *explainer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := tensor.Ones(4).Track()
	y := e.net.Forward(x).Sum()
	score, err := y.ItemContext(r.Context()) // want `early read: y.ItemContext`
	if err != nil {
		http.Error(w, err.Error(), 500)
		return
	}
	g, err := tensor.Grad(y, x)[0].Sum().ItemContext(r.Context())
	if err != nil {
		http.Error(w, err.Error(), 500)
		return
	}
	fmt.Fprintln(w, score, g)
}

func importance(net nn.Module, x, y *tensor.Tensor, names []string) {
	base := nn.MSELoss(net.Forward(x), y).Item() // want `early read`
	for i, name := range names {
		loss := nn.MSELoss(net.Forward(x.AddScalar(float64(i))), y)
		fmt.Println(name, loss.Item()-base)
	}
}

func root(net nn.Module, x *tensor.Tensor) float64 {
	a := math.Sqrt(net.Forward(x).Sum().Item()) // want `early read`
	return a + net.Forward(x.AddScalar(1)).Sum().Item()
}

func limits(x *tensor.Tensor) (lo, hi float64) {
	return x.Min().Item(), x.Max().Item() // want `x.Min\(\).Item\(\) waits`
}

// Silent.

func enqueued(net nn.Module, x, y *tensor.Tensor) (a, b float64) {
	first, second := net.Forward(x).Sum(), net.Forward(y).Sum()
	return first.Item(), second.Item()
}

func asked(net nn.Module, x *tensor.Tensor) float64 {
	size := net.Forward(x).Norm().Item()
	y := net.Forward(x.DivScalar(size))
	return y.Sum().Item()
}

func chosen(net nn.Module, x *tensor.Tensor) float64 {
	n := net.Forward(x).ArgMax().ItemInt()
	scale := 2 * float64(n)
	if scale < 3 {
		return 0
	}
	return net.Forward(x.AddScalar(1)).Sum().Item()
}

func iteration(x *tensor.Tensor) float64 {
	size := x.Norm().Item()
	for range 10 {
		x = x.DivScalar(size)
	}
	return x.Sum().Item()
}

func trained(net nn.Module, opt *optim.Optimizer, x, y *tensor.Tensor) (before, after float64) {
	before = nn.MSELoss(net.Forward(x), y).Item()
	opt.Minimize(nn.MSELoss(net.Forward(x), y))
	after = nn.MSELoss(net.Forward(x), y).Item()
	return before, after
}

func timed(net nn.Module, x *tensor.Tensor) (float64, time.Duration) {
	y := net.Forward(x).Sum().Item()
	start := time.Now()
	z := net.Forward(x).Sum().Item()
	return y + z, time.Since(start)
}

func shown(net nn.Module, x *tensor.Tensor) float64 {
	fmt.Println(net.Forward(x).Sum().Item())
	return net.Forward(x.AddScalar(1)).Sum().Item()
}

type room struct{ level float64 }

func (r *room) stored(net nn.Module, x *tensor.Tensor) float64 {
	r.level = net.Forward(x).Sum().Item()
	return r.next(net, x)
}

func (r *room) next(net nn.Module, x *tensor.Tensor) float64 {
	return net.Forward(x.MulScalar(r.level)).Sum().Item()
}

func given(x *tensor.Tensor, host []float32) float64 {
	n := tensor.From(host).At(0)
	return n + x.AddScalar(2).Sum().Item()
}

func last(net nn.Module, x *tensor.Tensor) (*tensor.Tensor, float64) {
	v := net.Forward(x).Sum().Item()
	return x.MulScalar(2), v
}

func trusted(net nn.Module, xs []*tensor.Tensor, y *tensor.Tensor) *tensor.Tensor {
	before := net.Forward(y).Sum().Item()
	for _, x := range xs {
		next := y.Sub(x)
		now := net.Forward(next).Sum().Item()
		if gain := before - now; gain > 0 {
			y, before = next, now
		}
	}
	return y
}

func scaled(net nn.Module, xs []*tensor.Tensor) (total, all float64) {
	first := net.Forward(xs[0]).Sum()
	scale := first.Item()
	for i, x := range xs {
		total += float64(i) * scale
		all = net.Forward(x).Sum().Item()
	}
	return total, all
}

func warmed(net nn.Module, x *tensor.Tensor) float64 {
	_ = net.Forward(x).Float32s()
	return net.Forward(x).Sum().Item()
}

func posted(net nn.Module, x *tensor.Tensor) (float64, error) {
	v := net.Forward(x).Sum().Item()
	if _, err := http.Post("http://localhost", "text/plain", strings.NewReader("done")); err != nil {
		return 0, err
	}
	return v + net.Forward(x.AddScalar(1)).Sum().Item(), nil
}

func either(net nn.Module, x *tensor.Tensor, strict bool) bool {
	v := net.Forward(x).Sum().Item()
	return strict && net.Forward(x.AddScalar(1)).Sum().Item() > 1 || v > 0
}

func finished(net nn.Module, x *tensor.Tensor) float64 {
	y := net.Forward(x).Sum()
	fmt.Println(y)
	v := y.Item()
	return v + net.Forward(x.AddScalar(1)).Sum().Item()
}

func sometimes(net nn.Module, x *tensor.Tensor, strict bool) float64 {
	if !strict {
		return 0
	}
	return net.Forward(x).Sum().Item()
}

func afterSometimes(net nn.Module, x *tensor.Tensor, strict bool) float64 {
	v := sometimes(net, x, strict)
	return v + net.Forward(x.AddScalar(1)).Sum().Item()
}

func checkedFirst(net nn.Module, x *tensor.Tensor) (float64, float64, error) {
	a := net.Forward(x).Sum()
	if err := a.Wait(); err != nil { // want `early read: a.Wait\(\) waits for the device before net.Forward`
		return 0, 0, err
	}
	va := a.Item()
	b := net.Forward(x.AddScalar(1)).Sum()
	if err := b.Wait(); err != nil {
		return 0, 0, err
	}
	return va, b.Item(), nil
}

func checkedBoth(net nn.Module, x *tensor.Tensor) (float64, float64, error) {
	a, b := net.Forward(x).Sum(), net.Forward(x.AddScalar(1)).Sum()
	if err := a.Wait(); err != nil {
		return 0, 0, err
	}
	va := a.Item()
	if err := b.Wait(); err != nil {
		return 0, 0, err
	}
	return va, b.Item(), nil
}

func checkedAlone(net nn.Module, x *tensor.Tensor) (float64, error) {
	a := net.Forward(x).Sum()
	if err := a.Wait(); err != nil { // nothing is read of it
		return 0, err
	}
	return net.Forward(x.AddScalar(1)).Sum().Item(), nil
}

func checkedForNext(net nn.Module, x *tensor.Tensor) (float64, error) {
	a := net.Forward(x).Sum()
	if err := a.Wait(); err != nil {
		return 0, err
	}
	va := a.Item()
	b := net.Forward(x.AddScalar(va)).Sum()
	if err := b.Wait(); err != nil {
		return 0, err
	}
	return b.Item(), nil
}
