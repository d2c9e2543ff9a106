package asyncrt_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A server gives each request a scope. If the client has gone, operations that have not begun are cancelled.
func ExampleSynchronize_scope() {
	weights := tensor.Ones(2, 2)
	ctx, cancel := context.WithCancel(context.Background())
	request := device.WithContext(ctx, device.Default())
	x := tensor.FromOn(request, []float32{1, 2}, 1, 2)
	y := x.MatMul(weights) // belongs to the request, as x does
	fmt.Println(y, asyncrt.Synchronize(request))
	cancel()
	fmt.Println(errors.Unwrap(y.AddScalar(1).Wait()))
	fmt.Println(asyncrt.Synchronize(request))
	// Output:
	// [[3. 3.]] <nil>
	// context canceled
	// context canceled
}

// What is made on a scope, and everything computed from it, belongs to the scope, with every operation. Nothing
// else does.
func TestResultsOfAScope(t *testing.T) {
	devices(t, func(t *testing.T, on device.Device) {
		plain := tensor.On(on).Ones(3, 3)
		request, other := device.WithContext(t.Context(), on), device.WithContext(t.Context(), on)
		x := tensor.On(request).Ones(3, 3)
		p := tensor.NewParam(plain)
		loss := x.MatMul(p.Value()).Sum()
		loss.Backward()
		tracked := plain.Track()
		functional := tensor.Grad(tracked.Mul(x).Sum(), tracked)[0]
		layer := nn.Dense(2)
		out := layer.Forward(x)
		for what, y := range map[string]*tensor.Tensor{
			"random":         tensor.On(request).Rand(2),
			"eye":            tensor.On(request).Eye(2),
			"data":           tensor.FromOn(request, []float32{1}),
			"binary":         plain.Add(x),
			"binary, first":  x.Add(plain),
			"where":          tensor.Where(plain.Gt(plain), plain, x),
			"matmul":         plain.MatMul(x),
			"row":            x.Row(0),
			"reshaped":       x.T().Reshape(9),
			"converted":      x.As(tensor.Float64),
			"moved in":       plain.To(request),
			"not moved out":  x.To(on),
			"loss":           loss,
			"gradient":       p.Grad(),
			"functional":     functional,
			"layer's output": out,
		} {
			if y.Device() != request {
				t.Errorf("%s is on %v, in scope: %v", what, y.Device(), y.Device().Scope() != nil)
			}
		}
		for what, y := range map[string]*tensor.Tensor{"operand": plain, "parameter": p.Value(), "weight": layer.Params()[0].Value(), "bias": layer.Params()[1].Value()} {
			if y.Device() != on {
				t.Errorf("%s belongs to a scope", what)
			}
		}
		both := x.Mul(tensor.On(other).Ones(3, 3)).Device()
		if !both.Scope().Within(request.Scope()) || !both.Scope().Within(other.Scope()) {
			t.Error("a result of two scopes does not belong to both")
		}
		if moved := x.To(device.CPU()).Device(); moved.Unscoped() != device.CPU() || !moved.Scope().Within(request.Scope()) {
			t.Errorf("a copy is on %v", moved)
		}
		if sum := out.Sum(); loss.Item() != 27 || sum.Wait() != nil {
			t.Errorf("the values are %v and %v", loss, sum)
		}
	})
}

// What was computed before a scope ended can be read afterwards. Everything else fails at each read.
func TestReadsAfterTheEnd(t *testing.T) {
	devices(t, func(t *testing.T, on device.Device) {
		gone := errors.New("the client is gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		request := device.WithContext(ctx, on)
		x := tensor.On(request).Ones(2)
		y := x.AddScalar(1)
		if err := asyncrt.Synchronize(request); err != nil {
			t.Fatal(err)
		}
		cancel(gone)
		z := y.AddScalar(1)
		if y.At(1) != 2 || fmt.Sprint(y) != "[2. 2.]" || y.Float32s()[0] != 2 {
			t.Errorf("what was computed is %v", y)
		}
		if v := y.BroadcastTo(2, 2).T(); v.Float32s()[3] != 2 || v.String() != "[[2. 2.]\n [2. 2.]]" {
			t.Errorf("a view of what was computed is %v", v)
		}
		if err := z.Wait(); !errors.Is(err, gone) {
			t.Errorf("what was not: %v", err)
		}
		if text := z.String(); !strings.HasSuffix(text, ": the client is gone>") {
			t.Errorf("what was not prints as %s", text)
		}
		if err := asyncrt.Synchronize(request); !errors.Is(err, gone) {
			t.Errorf("Synchronize: %v", err)
		}
		if err := asyncrt.WaitAll(); err != nil {
			t.Errorf("WaitAll: %v", err)
		}
	})
}

// Requests that are cancelled at any time do not affect others that share the weights.
func TestManyScopes(t *testing.T) {
	devices(t, func(t *testing.T, on device.Device) {
		w := tensor.On(on).Full(2, 8, 8)
		var wg sync.WaitGroup
		for i := range 60 {
			wg.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				request := device.WithContext(ctx, on)
				if i%3 == 0 {
					go cancel()
				} else {
					defer cancel()
				}
				x := tensor.On(request).Full(float64(i), 1, 8)
				for range 3 {
					x = x.MatMul(w).MulScalar(1. / 8)
				}
				got, err := x.Float32sContext(t.Context())
				switch {
				case err == nil && got[7] != float32(8*i):
					t.Errorf("request %d: %v", i, got)
				case err != nil && (i%3 != 0 || !errors.Is(err, context.Canceled)):
					t.Errorf("request %d: %v", i, err)
				}
				if err := asyncrt.Synchronize(request); err != nil && i%3 != 0 {
					t.Errorf("request %d: Synchronize: %v", i, err)
				}
			})
		}
		wg.Wait()
		if err := asyncrt.WaitAll(); err != nil {
			t.Error(err)
		}
	})
}
