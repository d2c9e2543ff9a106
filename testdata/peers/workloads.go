package main

import "fmt"

// A workload is something that all peers can do, in float32.
type workload struct {
	Name  string
	Work  string // matmul, map, randn, warmup, step, chain or tiny
	Op    string // of map: add, muladd, relu, exp, tanh
	Fresh bool   // of map: the result is in memory of its own, not in some that exists
	Sizes []int  // m, n and k of matmul; else the number of elements
	Flops float64
	Bytes float64
}

var workloads = allWorkloads()

func allWorkloads() []workload {
	var all []workload
	matmul := func(m, n, k int) {
		all = append(all, workload{Name: fmt.Sprintf("matmul %d x %d x %d", m, n, k), Work: "matmul", Sizes: []int{m, n, k},
			Flops: 2 * float64(m) * float64(n) * float64(k), Bytes: 4 * float64(m*n+m*k+n*k)})
	}
	for _, n := range []int{64, 128, 256, 512, 1024, 2048} {
		matmul(n, n, n)
	}
	matmul(1024, 2048, 512) // of the perceptron
	matmul(1024, 512, 2048)
	matmul(2048, 512, 1024)
	matmul(1, 512, 2048) // row times matrix
	matmul(1024, 1, 512) // matrix times column
	for _, op := range []struct {
		name     string
		operands float64
	}{{"add", 3}, {"muladd", 4}, {"relu", 2}, {"exp", 2}, {"tanh", 2}} {
		for _, n := range []int{1 << 10, 1 << 14, 1 << 18, 1 << 20, 1 << 24} {
			for _, fresh := range []bool{false, true} {
				name := fmt.Sprintf("%s %s", op.name, count(n))
				if fresh {
					if n < 1<<20 {
						continue
					}
					name += ", fresh"
				}
				all = append(all, workload{Name: name, Work: "map", Op: op.name, Fresh: fresh, Sizes: []int{n}, Bytes: 4 * op.operands * float64(n)})
			}
		}
	}
	const million = 1 << 20
	return append(all,
		workload{Name: "randn 1M", Work: "randn", Sizes: []int{million}, Bytes: 4 * million},
		workload{Name: "ten randn(1000, 1000) and products", Work: "warmup", Flops: 10 * 2e9},
		workload{Name: "step of a perceptron, batch 1024", Work: "step", Flops: stepFlops},
		workload{Name: "chain of five, 1M", Work: "chain", Sizes: []int{million}, Bytes: 4 * 4 * million},
		workload{Name: "y = x + 1, two elements", Work: "tiny"},
	)
}

// stepFlops is that of a step of a perceptron of 512-2048-512-1 on a batch of 1024: for each layer a product going forward, and one
// for the gradient of the weights; and one for the gradient of what went in, but for the first.
const stepFlops = 2 * 1024 * (3*2048*512 + 3*512 + 2*512*2048)

func count(n int) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%dM", n>>20)
	}
	return fmt.Sprintf("%dK", n>>10)
}

// limit is the question about the machine that w is compared with.
func (w *workload) limit() string {
	switch {
	case w.Work == "matmul" && w.Sizes[0] > 1 && w.Sizes[1] > 1, w.Work == "warmup", w.Work == "step":
		return "peak"
	case w.Bytes > 0 && w.Op != "exp" && w.Op != "tanh" && w.Work != "randn":
		return "triad"
	}
	return "none"
}
