package unusedread

import (
	"context"
	"fmt"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type model struct{ loss *tensor.Tensor }

func dropped(x, w *tensor.Tensor, m *model, ctx context.Context) error {
	y := x.MatMul(w)
	y.Item()                      // want `value of y.Item\(\) is not used, only waited for; call y.Wait\(\) if the wait is wanted \[AT030\]`
	_ = y.Float32s()              // want `value of y.Float32s\(\) is not used`
	_ = (m.loss.Item())           // want `call m.loss.Wait\(\) if`
	_ = y.Mean().ItemInt()        /* kept */ // want `AT030`
	_ = tensor.ItemOf[float64](y) // want `call y.Wait\(\) if`
	_, err := y.ItemContext(ctx)  // want `call y.WaitContext if`
	if err != nil {
		return err
	}
	if _, err := y.ItemContext(ctx); err != nil { // want `AT030`
		return err
	}
	y.ItemContext(ctx) // want `AT030`
	if m != nil {
		// The comment stays.
		x.Item() // want `AT030`
	}
	err.Error()
	return nil
}

func noFix(x *tensor.Tensor) {
	_ = x.At(1, 2) // want `value of x.At\(1, 2\) is not used`
	v := x.Item()  // want `value of x.Item\(\) is not used`
	_ = v
	_ = x.Item( // want `AT030`
	)
	func() { _ = x.Item() }() // want `AT030`
	var _ = x.Item()          // want `AT030`
	_, n := x.Item(), 1       // want `AT030`
	fmt.Println(n)
	if _ = x.Item(); n > 0 { // want `AT030`
		fmt.Println(n)
	}
}

func looped(x *tensor.Tensor) {
	for range 10 {
		x = x.AddScalar(1)
		x.Item() // want `AT030`
	}
}

// Silent from here on.

func used(x *tensor.Tensor) (v float64) {
	x.Item() //asyncgen:ignore AT030 a barrier
	v = x.Item()
	v += x.Item()
	w := x.Item()
	_ = w
	fmt.Println(w)
	var kept float64
	kept = x.Item()
	_ = kept + 1
	if x.Item() > 0 {
		v++
	}
	x.Wait()
	_ = x.Ready()
	_ = x.Dim(0)
	_ = x.Add(x)
	return v
}

func tried(x *tensor.Tensor) error {
	go x.Item()
	return asyncrt.Try(func() {
		x.Item()
		func() { _ = x.Float32s() }()
	})
}
