package nn_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/devicetest"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func ExampleSequential() {
	net := nn.Sequential(nn.Dense(512), nn.ReLU(), nn.Dense(1))
	y := net.Forward(tensor.Ones(8, 20))
	fmt.Println(y.Shape())
	fmt.Println(net)
	// Output:
	// [8 1]
	// Sequential
	// ├─ 0 Dense(512)  [20 512] [512]
	// ├─ 1 ReLU()
	// └─ 2 Dense(1)  [512 1] [1]
	// 11,265 weights
}

// Dense multiplies by weights that it draws when it sees the first input.
func TestDense(t *testing.T) {
	for _, name := range devicetest.Names(t) {
		on, err := device.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		tensor.Seed(1)
		layer := nn.Dense(3)
		if ps := layer.Params(); len(ps) != 2 || ps[0].IsSet() || ps[1].IsSet() {
			t.Errorf("parameters before the first input: %v", ps)
		}
		x := tensor.FromOn(on, []float64{1, 0, 0, 1}, 2, 2)
		y := layer.Forward(x)
		w, b := layer.Params()[0].Value(), layer.Params()[1].Value()
		if y.DType() != tensor.Float64 || w.Device() != on || !slices.Equal(w.Shape(), []int{2, 3}) || !slices.Equal(b.Shape(), []int{3}) {
			t.Errorf("%i = %i·%i + %i", y, x, w, b)
		}
		if !slices.Equal(y.Float64s(), w.Float64s()) {
			t.Errorf("the product with the identity is %v, the weights are %v", y, w)
		}
		limit := math.Sqrt(6.0 / 5)
		for _, v := range w.Float64s() {
			if math.Abs(v) > limit {
				t.Errorf("weight %v is beyond %v", v, limit)
			}
		}
		if again := layer.Forward(x); !slices.Equal(again.Float64s(), y.Float64s()) {
			t.Error("the weights are drawn again")
		}
	}
}

func TestMSELoss(t *testing.T) {
	pred, target := tensor.From([]float32{1, 2, 3, 4}, 2, 2), tensor.From([]float32{1, 1, 1, 1}, 2, 2)
	if got := nn.MSELoss(pred, target).Item(); got != (0+1+4+9)/4.0 {
		t.Errorf("the loss is %v", got)
	}
}

// mistaken checks that each function panics with the mistake that has its text.
func mistaken(t *testing.T, calls map[string]func()) {
	t.Helper()
	for want, f := range calls {
		func() {
			defer func() {
				p := recover()
				if m, ok := p.(*tensor.Mistake); !ok || m.Error() != want {
					t.Errorf("got  %v\nwant %s", p, want)
				}
			}()
			f()
		}()
	}
}

func TestMistakes(t *testing.T) {
	scores := tensor.Ones(2, 3)
	mistaken(t, map[string]func(){
		"nn: MSELoss: predictions have shape [2 1], targets [2]": func() { nn.MSELoss(tensor.Ones(2, 1), tensor.Ones(2)) },
		"nn: Dense: -1 outputs":                                  func() { nn.Dense(-1) },
		"nn: Dense: the input is a number, want a vector for each sample (Dense(1))": func() {
			nn.Dense(1).Forward(tensor.Scalar(3))
		},
		"nn: CrossEntropy: the labels are float32[2 3], as the scores, want the number of a class for each sample, int64[2]: of one-hot rows that is ArgMax(-1)": func() {
			nn.CrossEntropy(scores, tensor.Eye(3).Slice(0, 0, 2))
		},
		"nn: CrossEntropy: the labels are float32, want int64: convert with As": func() { nn.CrossEntropy(scores, tensor.Ones(2)) },
		"nn: CrossEntropy: the scores have shape [2 3] and the labels [3], want a label for each vector of scores along the last axis": func() {
			nn.CrossEntropy(scores, tensor.From([]int{0, 1, 2}))
		},
		"nn: CrossEntropy: the scores have shape [] and the labels [], want a label for each vector of scores along the last axis": func() {
			nn.CrossEntropy(tensor.Scalar(1), tensor.FullInt(1))
		},
		"nn: Embedding: the input is float32[2], want the numbers of classes, int64: convert with As (Embedding(3, 2))": func() {
			nn.Embedding(3, 2).Forward(tensor.Ones(2))
		},
		"nn: Dense: the input is a number, want a vector for each sample (1.2, Dense(4))": func() {
			nn.Sequential(nn.ReLU(), nn.Sequential(nn.ReLU(), nn.ReLU(), nn.Dense(4))).Forward(tensor.Scalar(2))
		},
		"tensor: MaxPool2D: wrong rank (it takes planes: their rows and columns are the last two axes): float32[3] (layer 0, MaxPool2D(2x2))": func() {
			nn.Sequential(nn.MaxPool2D(tensor.Pool{Window: tensor.Both(2)})).Forward(tensor.Ones(3))
		},
	})
}

// A layer that is given integers says so. It does not report a mistake in a call that only its own code makes.
func TestInputsThatAreIntegers(t *testing.T) {
	images := tensor.Full(1, 1, 4, 4).As(tensor.Uint8)
	for _, layer := range []nn.Module{
		nn.Dense(2), nn.Conv1D(2, 2, tensor.Conv{}), nn.Conv2D(2, tensor.Both(2), tensor.Conv{}), nn.LSTM(2, 1),
		nn.LayerNorm(), nn.BatchNorm(), nn.RMSNorm(), nn.GroupNorm(1), nn.PReLU(1), nn.LeakyReLU(0.1), nn.Dropout(0.5),
	} {
		mistaken(t, map[string]func(){
			fmt.Sprintf("nn: Forward: the input is uint8, want floating-point numbers: convert with As (%v)", layer): func() {
				layer.Forward(images)
			},
		})
	}
}

// A mistake in a layer of a module of one's own says which layer it is, by its name once that is known.
func TestMistakesSayWhere(t *testing.T) {
	type model struct {
		Blocks []nn.Module
		attend *nn.Attention
	}
	block := newResidual(4)
	m := &model{[]nn.Module{nn.ReLU(), nn.Sequential(nn.Identity(), block)}, nn.MultiHeadAttention(4, 2)}
	wide, three := tensor.Ones(2, 5), tensor.Ones(2, 3, 4)
	block.Forward(tensor.Ones(2, 4))
	m.attend.Forward(three)
	forward := func() { block.Forward(wide) }
	narrow := func() { m.attend.Attend(three, tensor.Ones(2, 3, 5), nil) }
	says := func(want string, f func()) {
		t.Helper()
		defer func() {
			if e, ok := recover().(*tensor.Mistake); !ok || !strings.HasSuffix(e.Error(), " ("+want+")") {
				t.Errorf("got  %v\nwant %s", e, want)
			}
		}()
		f()
	}
	says("LayerNorm()", forward)
	says("k_proj, Dense(4)", narrow)
	says("layer 0, ReLU()", func() { nn.Sequential(m.Blocks[0]).Forward(tensor.From([]bool{true})) })
	says("0, Dense(1)", func() { nn.Sequential(nn.Dense(1)).Forward(tensor.Scalar(1)) })
	says("1.norm, LayerNorm()", func() { m.Blocks[1].Forward(wide) })
	nn.Params(m)
	says("blocks.1.1.norm, LayerNorm()", forward)
	says("blocks.1.1.norm, LayerNorm()", func() { m.Blocks[1].Forward(wide) })
	says("blocks.1.1.norm, LayerNorm()", func() { nn.Frozen(m).Blocks[1].Forward(wide) })
	says("attend.k_proj, Dense(4)", narrow)
	says("attend, MultiHeadAttention(4, 2)", func() { m.attend.Forward(wide) })
	says("layer 1, nn_test.asking", func() { nn.Sequential(nn.ReLU(), asking{}).Forward(wide) })
}

// asking is a module that makes a mistake.
type asking struct{ nn.Module }

func (asking) Forward(x *tensor.Tensor) *tensor.Tensor { return x.Reshape(7) }
func (asking) Params() []*nn.Param                     { return nil }

// What a part of a Sequential panics with that is no mistake is handed on.
func TestSequentialPanics(t *testing.T) {
	defer func() {
		if p := recover(); p != "broken" {
			t.Errorf("got %v", p)
		}
	}()
	nn.Sequential(nn.ReLU(), broken{}).Forward(tensor.Ones(1))
}

type broken struct{ nn.Module }

func (broken) Forward(*tensor.Tensor) *tensor.Tensor { panic("broken") }

// Modules say what they are.
func TestStrings(t *testing.T) {
	net := nn.Sequential(nn.Dense(5), nn.ReLU(), nn.Embedding(3, 2), nn.Conv2D(1, tensor.Both(3), tensor.Conv{Groups: 2}), nn.Flatten(),
		nn.AvgPool2D(tensor.Pool{Window: tensor.Both(2), Stride: tensor.Pair{1, 2}}), nn.LayerNorm(), nn.RMSNorm(), nn.Sequential(), broken{nn.ReLU()})
	want := `Sequential
├─ 0 Dense(5)
├─ 1 ReLU()
├─ 2 Embedding(3, 2)
├─ 3 Conv2D(1, 3x3, Groups 2)
├─ 4 Flatten()
├─ 5 AvgPool2D(2x2, Stride 1x2)
├─ 6 LayerNorm()
├─ 7 RMSNorm()
├─ 8 Sequential
└─ 9 nn_test.broken
0 weights, and those that the first Forward makes`
	if got := fmt.Sprint(net); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	net = nn.Sequential(nn.Dense(512), nn.Sequential(nn.ReLU(), drawn{nn.ReLU()}, nn.Dense(2)), nn.LayerNorm())
	net.Forward(tensor.Ones(8, 20))
	want = `Sequential
├─ 0 Dense(512)  [20 512] [512]
├─ 1 Sequential
│  ├─ 0 ReLU()
│  ├─ 1 a drawing
│  │  of two lines
│  └─ 2 Dense(2)  [512 2] [2]
└─ 2 LayerNorm()  [2] [2]
11,782 weights`
	if got := fmt.Sprint(net); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	replicas := nn.DataParallel(nn.Sequential(nn.Dense(2)), nn.Parallel{Devices: []device.Device{device.CPU(), device.CPU()}})
	replicas.Forward(tensor.Ones(8, 3))
	want = `DataParallel on cpu, cpu
└─ 0 Dense(2)  [3 2] [2]
8 weights`
	if got := fmt.Sprint(replicas); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// A drawn is a module that draws itself.
type drawn struct{ nn.Module }

func (drawn) String() string { return "a drawing\nof two lines" }

// A Sequential keeps its own list of modules.
func TestSequentialCopies(t *testing.T) {
	ms := []nn.Module{nn.ReLU()}
	net := nn.Sequential(ms...)
	ms[0] = nil
	if got := net.Forward(tensor.From([]float32{-1, 2})).Float32s(); !slices.Equal(got, []float32{0, 2}) {
		t.Errorf("got %v", got)
	}
	if p := nn.NewParam(tensor.Ones(1)); p.Value().Item() != 1 {
		t.Error("NewParam lost its value")
	}
}

// A frozen model has the bits of the model, whose layers are several operations each. A frozen one may have fewer.
func TestFrozenReLU(t *testing.T) {
	tensor.Seed(1)
	x := tensor.Randn(7, 20)
	net := nn.Sequential(nn.Dense(33), nn.ReLU(), nn.ReLU(), nn.Sequential(nn.Dense(5), nn.ReLU()), nn.Dense(4))
	want := net.Forward(x)
	p := net.Params()
	layer := func(x *tensor.Tensor, i int) *tensor.Tensor { return x.MatMul(p[i].Value()).Add(p[i+1].Value()) }
	single := layer(layer(layer(x, 0).ReLU(), 2).ReLU(), 4)
	frozen := nn.Frozen(net)
	for name, y := range map[string]*tensor.Tensor{"operations": single, "frozen": frozen.Forward(x), "frozen twice": nn.Frozen(frozen).Forward(x)} {
		if !slices.Equal(y.Float32s(), want.Float32s()) {
			t.Errorf("%s: %v, the model gives %v", name, y, want)
		}
	}
	if got := len(frozen.Params()); got != len(p) {
		t.Errorf("the frozen model has %d parameters, the model %d", got, len(p))
	}
	if alone := nn.Frozen(nn.ReLU()).Forward(tensor.From([]float32{-1, 2}, 2)).Float32s(); !slices.Equal(alone, []float32{0, 2}) {
		t.Errorf("a frozen ReLU by itself gives %v", alone)
	}
}
