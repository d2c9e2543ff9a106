package main

import (
	"context"
	"runtime"
	"sync"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
	_ "github.com/asyncgen/asyncgen/device/opencl"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func oursVersion() string { return "this commit, " + backend().Caps().Description }

// oursFor does as the others do: what they compute into memory that exists is a command of the backend, all else goes through
// tensors, and waits.
func oursFor(q question) func() {
	switch q.Work {
	case "matmul":
		m, n, k := q.Sizes[0], q.Sizes[1], q.Sizes[2]
		f32 := device.Float32
		c := device.Command{Kernel: device.NewKernel("matmul", device.MatMul, nil, f32, f32, f32), N: m * n, Args: &device.Args{Ints: []int{m, n, k}}}
		c.Buf = [device.MaxOperands]*device.Buffer{buffer(m * n), normal(m * k), normal(k * n)}
		return command(c)
	case "conv":
		s := q.Sizes
		x, w := tensor.Randn(s[0], s[1], s[2], s[2]), tensor.Randn(s[5], s[1]/s[6], s[3], s[3])
		how := tensor.Conv{Stride: tensor.Both(s[4]), Padding: tensor.Both(s[3] / 2), Groups: s[6]}
		return fresh(func() *tensor.Tensor { return x.Conv2D(w, how) })
	case "pool":
		s := q.Sizes
		x := tensor.Randn(s[0], s[1], s[2], s[2])
		how := tensor.Pool{Window: tensor.Both(s[3]), Stride: tensor.Both(s[4]), Padding: tensor.Both(s[3] / 2)}
		if q.Op == "max" {
			return fresh(func() *tensor.Tensor { return x.MaxPool2D(how) })
		}
		return fresh(func() *tensor.Tensor { return x.AvgPool2D(how) })
	case "map":
		if q.Fresh {
			return freshMap(q.Op, q.Sizes[0])
		}
		return command(expression(map[string]*kernel.Expr{
			"add": kernel.Add(arg(0), arg(1)), "muladd": kernel.Add(kernel.Mul(arg(0), arg(1)), arg(2)),
			"relu": relu(arg(0)), "exp": kernel.Exp(arg(0)), "tanh": kernel.Tanh(arg(0)),
		}[q.Op], map[string]int{"add": 2, "muladd": 3, "relu": 1, "exp": 1, "tanh": 1}[q.Op], q.Sizes[0]))
	case "chain":
		return command(chainCommand(q.Sizes[0]))
	case "randn":
		return command(randnCommand(q.Sizes[0]))
	case "warmup":
		return func() {
			var products [10]*tensor.Tensor
			for i := range products {
				x := tensor.Randn(1000, 1000)
				products[i] = x.MatMul(x)
			}
			for _, x := range products {
				wait(x)
			}
			tensor.Dead(products[:]...)
		}
	case "step":
		net := nn.Sequential(nn.Dense(2048), nn.ReLU(), nn.Dense(512), nn.ReLU(), nn.Dense(1))
		target := tensor.Ones(1024, 1)
		nn.MSELoss(net.Forward(tensor.Randn(1024, 512)), target).Wait() // the first use finds the input width
		opt := optim.SGD(net.Params(), 0.005)
		return func() {
			loss := nn.MSELoss(net.Forward(tensor.Randn(1024, 512)), target)
			opt.Minimize(loss)
			for _, p := range net.Params() {
				wait(p.Value())
			}
		}
	case "matrix":
		return matrixWork(q.Op, q.Sizes[0], q.Sizes[1])
	case "tiny":
		x := tensor.Randn(2)
		return func() { wait(x.AddScalar(1)) }
	}
	return nil
}

func freshMap(op string, n int) func() {
	x, y, z := tensor.Randn(n), tensor.Randn(n), tensor.Randn(n)
	return fresh(map[string]func() *tensor.Tensor{
		"add":    func() *tensor.Tensor { return x.Add(y) },
		"muladd": func() *tensor.Tensor { return z.AddMul(x, y) },
		"relu":   x.ReLU, "exp": x.Exp, "tanh": x.Tanh,
	}[op])
}

// fresh computes f, waits and lets the memory go.
func fresh(f func() *tensor.Tensor) func() {
	return func() {
		r := f()
		wait(r)
		tensor.Dead(r)
	}
}

// matrixWork does what matrixOps says, in memory that the library finds.
func matrixWork(op string, n, m int) func() {
	x := tensor.Randn(n, m)
	const indices = 8192
	at := tensor.RandInt(0, n, indices)
	f := map[string]func() *tensor.Tensor{
		"softmax":        func() *tensor.Tensor { return x.Softmax(1) },
		"softmaxColumns": func() *tensor.Tensor { return x.Softmax(0) },
		"logsoftmax":     func() *tensor.Tensor { return x.LogSoftmax(1) },
		"cumsum":         func() *tensor.Tensor { return x.CumSum(1) },
		"cumsumColumns":  func() *tensor.Tensor { return x.CumSum(0) },
		"sumColumns":     func() *tensor.Tensor { return x.Sum(0) },
		"argmax":         func() *tensor.Tensor { return x.ArgMax(1) },
		"argmaxColumns":  func() *tensor.Tensor { return x.ArgMax(0) },
		"transpose":      func() *tensor.Tensor { return x.T().Reshape(-1) },
		"embedding":      func() *tensor.Tensor { return x.Take(0, at) },
	}[op]
	switch op {
	case "layernorm":
		gain, bias := tensor.Ones(m), tensor.Zeros(m)
		f = func() *tensor.Tensor { return x.LayerNorm(1, 1e-5, gain, bias) }
	case "sort", "topk":
		k := m
		if op == "topk" {
			k = 10
		}
		return func() {
			values, indices := x.TopK(k, 1, tensor.Descending)
			wait(values)
			tensor.Dead(values, indices)
		}
	case "sumMiddle":
		parts := x.Reshape(4, n/4, m)
		f = func() *tensor.Tensor { return parts.Sum(1) }
	case "pick":
		labels := tensor.RandInt(0, m, n)
		f = func() *tensor.Tensor { return x.Pick(labels) }
	case "embeddingGradient":
		table := x.Track()
		loss := table.Take(0, at).Mul(tensor.Randn(indices, m)).Sum()
		f = func() *tensor.Tensor { return tensor.Grad(loss, table)[0] }
	case "concat":
		y := tensor.Randn(n, m)
		f = func() *tensor.Tensor { return tensor.Concat(1, x, y) }
	case "stack":
		rows := make([]*tensor.Tensor, n)
		for i := range rows {
			rows[i] = tensor.Randn(m)
		}
		f = func() *tensor.Tensor { return tensor.Stack(0, rows...) }
	case "onehot":
		labels := tensor.RandInt(0, m, n)
		f = func() *tensor.Tensor { return labels.OneHot(m) }
	}
	return func() {
		r := f()
		wait(r)
		tensor.Dead(r)
	}
}

// chainCommand is a product, a sum, a maximum, a difference and a product, as one expression.
func chainCommand(n int) device.Command {
	e := kernel.Add(kernel.Mul(arg(0), arg(1)), arg(2))
	return expression(kernel.Mul(kernel.Sub(relu(e), arg(1)), arg(2)), 3, n)
}

// expression is the command that computes e, of so many inputs, into memory that exists.
func expression(e *kernel.Expr, inputs, n int) device.Command {
	in := make([]device.DType, inputs)
	c := device.Command{N: n}
	c.Buf[0] = buffer(n)
	for i := range in {
		in[i] = device.Float32
		c.Buf[i+1] = normal(n)
	}
	c.Kernel = device.NewKernel("expression", device.Map, e, device.Float32, in...)
	return c
}

func arg(i int) *kernel.Expr { return kernel.Arg(i, device.Float32) }

func relu(x *kernel.Expr) *kernel.Expr { return kernel.Max(x, kernel.Const(0, device.Float32)) }

// backend is the one for commands, that of the default device. The workers of the engine help the CPU's, as they would an
// operation.
func backend() device.Backend { return device.Default().Backend() }

// isGPU reports whether what is computed is waited for by settle alone.
func isGPU() bool { return device.Default().Kind() == device.KindGPU }

// last is the ticket of the last command.
var last device.Ticket

// settle waits for all that a GPU has to do.
func settle() {
	if !isGPU() {
		return
	}
	waitAll()
	if err := backend().Wait(context.Background(), last); err != nil {
		panic(err)
	}
}

// withWorkers sees to it that the engine has some: its first operation starts them.
var withWorkers = sync.OnceFunc(func() { wait(tensor.Ones(1).AddScalar(1)) })

func command(c device.Command) func() {
	withWorkers()
	commands := []device.Command{c}
	return func() {
		var err error
		if last, err = backend().Submit(commands); err != nil {
			panic(err)
		}
		runtime.KeepAlive(c)
	}
}

func buffer(n int) *device.Buffer {
	b, err := backend().Alloc(int64(4 * n))
	if err != nil {
		panic(err)
	}
	return b
}

func randnCommand(n int) device.Command {
	c := device.Command{Kernel: device.NewKernel("randn", device.Random, kernel.Normal, device.Float32), N: n}
	c.Buf[0] = buffer(n)
	return c
}

func normal(n int) *device.Buffer {
	c := randnCommand(n)
	command(c)()
	return c.Buf[0]
}

func wait(t *tensor.Tensor) {
	if isGPU() {
		return
	}
	if err := t.Wait(); err != nil {
		panic(err)
	}
}
