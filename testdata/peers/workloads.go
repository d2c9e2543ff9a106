package main

import "fmt"

// A workload is something that all peers can do, in float32.
type workload struct {
	Name  string
	Work  string // matmul, conv, pool, map, matrix, randn, warmup, step, chain or tiny
	Op    string // of map: add, muladd, relu, exp, tanh; of pool: max, avg; of matrix: see matrixOps
	Fresh bool   // of map: the result is in memory of its own, not in some that exists
	Sizes []int  // m, n and k of matmul; of conv and pool see there; else the number of elements
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
	all = append(all, planes()...)
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
	for _, op := range matrixOps {
		for _, n := range op.sizes {
			all = append(all, workload{Name: fmt.Sprintf("%s %d x %d", op.name, n[0], n[1]), Work: "matrix", Op: op.op, Sizes: n[:], Bytes: 4 * op.passes * float64(n[0]*n[1])})
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

// planes are convolutions and pooling as residual networks have them, with half the window as padding. Their Sizes are images, channels, side,
// side of the window, stride, and of convolutions channels of the result and groups.
func planes() []workload {
	var all []workload
	for _, s := range [][]int{{8, 3, 224, 7, 2, 64, 1}, {8, 64, 56, 3, 1, 64, 1}, {8, 64, 56, 1, 1, 256, 1}, {8, 256, 14, 3, 1, 256, 1}, {8, 144, 56, 3, 1, 144, 144}} {
		out := (s[2]+s[3]/2*2-s[3])/s[4] + 1
		name := fmt.Sprintf("conv %dx%dx%dx%d to %d by %dx%d", s[0], s[1], s[2], s[2], s[5], s[3], s[3])
		if s[6] > 1 {
			name += ", depthwise"
		}
		all = append(all, workload{Name: name, Work: "conv", Fresh: true, Sizes: s,
			Flops: 2 * float64(s[0]*s[5]*out*out) * float64(s[1]/s[6]*s[3]*s[3])})
	}
	for _, op := range []string{"max", "avg"} {
		all = append(all, workload{Name: op + " pool 8x64x112x112 by 3x3", Work: "pool", Op: op, Fresh: true, Sizes: []int{8, 64, 112, 3, 2},
			Bytes: 4 * 8 * 64 * (112*112 + 56*56)})
	}
	return all
}

// matrixOps are what is done with a matrix of random numbers. Passes is how many numbers have to be read and written at least
// for each of its elements; 0 where that is not what takes the time.
var matrixOps = []struct {
	op, name string
	passes   float64
	sizes    [][2]int
}{
	{"softmax", "softmax of rows,", 0, [][2]int{{1024, 10}, {1024, 1024}}},
	{"softmaxColumns", "softmax of columns,", 0, [][2]int{{1024, 1024}}},
	{"logsoftmax", "log-softmax of rows,", 0, [][2]int{{1024, 1024}}},
	{"layernorm", "layer norm of rows, with gain and bias,", 0, [][2]int{{1024, 1024}, {4096, 64}}},
	{"sort", "sorted rows, with indices,", 0, [][2]int{{1024, 1024}, {1, 1 << 20}}},
	{"topk", "greatest 10 of each row,", 0, [][2]int{{1024, 1024}}},
	{"cumsum", "cumulative sums of rows,", 0, [][2]int{{1024, 1024}}},
	{"cumsumColumns", "cumulative sums of columns,", 2, [][2]int{{1024, 1024}}},
	{"sumColumns", "sums of columns,", 1, [][2]int{{1024, 1024}}},
	{"sumMiddle", "sums over the middle of 4 x n/4 x m,", 1, [][2]int{{1024, 1024}}},
	{"argmax", "argmax of rows,", 1, [][2]int{{1024, 1024}}},
	{"argmaxColumns", "argmax of columns,", 1, [][2]int{{1024, 1024}}},
	{"transpose", "transposed copy,", 2, [][2]int{{1000, 1000}, {1024, 1024}, {4096, 4096}}},
	{"embedding", "embedding, 8192 of", 0, [][2]int{{32000, 256}}},
	{"pick", "one element of each row,", 0, [][2]int{{8192, 1024}}},
	{"embeddingGradient", "gradient of an embedding, 8192 of", 0, [][2]int{{32000, 256}}},
	{"concat", "two matrices side by side,", 4, [][2]int{{1024, 1024}}},
	{"stack", "rows of a matrix, stacked,", 2, [][2]int{{256, 256}}},
	{"onehot", "one-hot,", 1, [][2]int{{1024, 1000}}},
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
	case w.Work == "matmul" && w.Sizes[0] > 1 && w.Sizes[1] > 1, w.Work == "warmup", w.Work == "step", w.Work == "conv":
		return "peak"
	case w.Bytes > 0 && w.Op != "exp" && w.Op != "tanh" && w.Work != "randn":
		return "triad"
	}
	return "none"
}
