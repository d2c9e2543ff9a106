package severity

import (
	"fmt"
	"log/slog"

	"batch"

	"github.com/asyncgen/asyncgen/runtime/files"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Whoever sends waits for what is shown, or done.
func live(in <-chan *tensor.Tensor, alarm func()) {
	for x := range in {
		if x.Sub(w).Max().Item() > 1 {
			alarm()
		}
	}
	for x := range in {
		fmt.Println("said:", word(x.MatMul(w)))
	}
}

var dictionary []string

func word(x *tensor.Tensor) string { return dictionary[x.ArgMax().ItemInt()] }

// A list is no stream, a log is for later, a number is no text, what trains has its own pace, and a sum is for the end.
func notLive(in <-chan *tensor.Tensor, xs []*tensor.Tensor, opt *optim.Optimizer, alarm func()) (sum float64) {
	for _, x := range xs {
		if x.Sub(w).Max().Item() > 1 { // want `AT001`
			alarm()
		}
	}
	for x := range in {
		slog.Info("word", "index", x.MatMul(w).ArgMax().ItemInt()) // want `AT004`
	}
	for x := range in {
		fmt.Println(x.MatMul(w).Mean().Item()) // want `AT004`
	}
	for x := range in {
		loss := x.MatMul(w).Mean()
		opt.Minimize(loss)
		if loss.Item() > 1 { // want `AT001`
			alarm()
		}
	}
	for x := range in {
		sum += x.MatMul(w).Mean().Item() // want `AT001`
	}
	return sum
}

type sensor struct {
	name    string
	windows []*tensor.Tensor
}

// A file for each part is what is asked for.
func partsToFiles(sensors []sensor) error {
	for _, s := range sensors {
		all := make(map[string]*tensor.Tensor)
		for i, x := range s.windows {
			all[fmt.Sprint(i)] = x.MatMul(w)
		}
		if err := files.Write(s.name, all, nil); err != nil {
			return err
		}
	}
	return nil
}

// A file in each step is not, though a loop has made it, and neither is one that grows.
func stepsToFiles(xs []*tensor.Tensor) error {
	all := make(map[string]*tensor.Tensor)
	for i, x := range xs {
		x = x.MatMul(w)
		one := map[string]*tensor.Tensor{"x": x}
		if err := files.Write(fmt.Sprint(i), one, nil); err != nil { // want `AT001`
			return err
		}
		all[fmt.Sprint(i)] = x
		if err := files.Write("all", all, nil); err != nil { // want `AT001`
			return err
		}
	}
	return nil
}

type Fold struct{ train, test batch.Batch }

// There is a handful of folds.
func foldsOf(folds []Fold, data []batch.Batch) (list []float64) {
	for _, f := range folds {
		list = append(list, batch.Loss(w, f.test).Item())
	}
	for _, f := range data {
		list = append(list, batch.Loss(w, f).Item()) // want `AT001`
	}
	return list
}

// Among parameters all answers are there at once, and among networks they aren't.
func anyLarge(params []*tensor.Param) bool {
	for _, p := range params {
		if p.Value().Norm().Max().Item() > 1e3 { // want `AT005`
			return true
		}
	}
	return false
}

func anySure(nets []nn.Module, x *tensor.Tensor) *tensor.Tensor {
	for _, net := range nets {
		if y := net.Forward(x); y.Max().Item() > 0.9 {
			return y
		}
	}
	return nil
}
