package tensor_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// structuralFixtures does what testdata/structural.py does with NumPy and PyTorch.
var structuralFixtures = map[string]function{
	"x[:, 1:, ::2]": func(x ...*tensor.Tensor) *tensor.Tensor {
		return x[0].Index(tensor.All(), tensor.Range(1, tensor.End), tensor.All().Step(2))
	},
	"x[..., -1]": func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Index(tensor.Ellipsis(), tensor.At(-1)) },
	"x[1, None, :-1]": func(x ...*tensor.Tensor) *tensor.Tensor {
		return x[0].Index(tensor.At(1), tensor.NewAxis(), tensor.Range(tensor.Start, -1))
	},
	"x[::-1, :, 3:0:-2]": func(x ...*tensor.Tensor) *tensor.Tensor {
		return x[0].Index(tensor.All().Step(-1), tensor.All(), tensor.Range(3, 0).Step(-2))
	},
	"x[:, 1:, ::2] = v": func(x ...*tensor.Tensor) *tensor.Tensor {
		return x[0].SetIndex(x[1], tensor.All(), tensor.Range(1, tensor.End), tensor.All().Step(2))
	},
	"x[..., -1] = v": func(x ...*tensor.Tensor) *tensor.Tensor {
		return x[0].SetIndex(x[1], tensor.Ellipsis(), tensor.At(-1))
	},
	"x[::-1, 2] = v": func(x ...*tensor.Tensor) *tensor.Tensor {
		return x[0].SetIndex(x[1], tensor.All().Step(-1), tensor.At(2))
	},
	"array_split":      func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Chunk(1, 3)[1] },
	"pad constant":     func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Pad(1, 1, 2, 7) },
	"pad reflect":      func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].PadWith(tensor.Reflect, 1, 4, 2) },
	"pad edge":         func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].PadWith(tensor.Replicate, 0, 2, 1) },
	"pad circular":     func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].PadWith(tensor.Circular, -1, 3, 5) },
	"tile":             func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Tile(2, 1, 3) },
	"tile of fewer":    func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Tile(2) },
	"repeat":           func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].RepeatInterleave(0, 2) },
	"flip":             func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Flip() },
	"roll":             func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Roll(1, -7) },
	"tril":             func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Tril(-1) },
	"triu":             func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Triu(1) },
	"diagonal":         func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Diagonal(-1) },
	"diag_embed":       func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Diag(2) },
	"take_along_axis":  func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].TakeAlong(1, x[1]) },
	"gather":           func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].TakeAlong(-1, x[1]) },
	"scatter":          func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Scatter(1, x[1], x[2]) },
	"scatter_add":      func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].ScatterAdd(1, x[1], x[2]) },
	"index_copy":       func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].IndexCopy(0, x[1], x[2]) },
	"index_add":        func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].IndexAdd(1, x[1], x[2]) },
	"masked_fill":      func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].MaskedFill(x[1], -1) },
	"masked_select":    func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].MaskedSelect(x[1]) },
	"conv1d":           func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Conv1D(x[1], conv1D) },
	"conv_transpose1d": func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].ConvTranspose1D(x[1], convTranspose1D) },
	"conv_transpose2d": func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].ConvTranspose2D(x[1], convTranspose2D) },
	"max_pool1d":       func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].MaxPool1D(pool1D) },
	"avg_pool1d":       func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].AvgPool1D(pool1D) },
	"adaptive_avg_pool2d": func(x ...*tensor.Tensor) *tensor.Tensor {
		return x[0].AdaptiveAvgPool2D(3, 4)
	},
	"adaptive_avg_pool2d evenly": func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].AdaptiveAvgPool2D(5, 2) },
	"interpolate nearest":        func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Interpolate(tensor.Nearest, 8, 3) },
	"interpolate bilinear":       func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Interpolate(tensor.Bilinear, 9, 4) },
}

// The first number of each pair must not matter in one dimension.
var (
	conv1D          = tensor.Conv{Stride: tensor.Both(2), Padding: tensor.Both(1), Dilation: tensor.Both(2), Groups: 2}
	convTranspose1D = tensor.ConvTranspose{Stride: tensor.Both(3), Padding: tensor.Both(1), OutputPadding: tensor.Both(2)}
	convTranspose2D = tensor.ConvTranspose{Stride: tensor.Pair{2, 3}, Padding: tensor.Pair{1, 0}, OutputPadding: tensor.Pair{0, 1}, Dilation: tensor.Pair{1, 2}, Groups: 2}
	pool1D          = tensor.Pool{Window: tensor.Both(3), Stride: tensor.Both(2), Padding: tensor.Both(1)}
)

// A fixture is an array in a file.
type fixture struct {
	Type  string
	Shape []int
	Data  []float64
}

func (f fixture) array(t *testing.T) array {
	for _, dt := range device.DTypes() {
		if dt.String() == f.Type {
			return array{dt, f.Shape, f.Data}
		}
	}
	t.Fatalf("no element type %s", f.Type)
	return array{}
}

// Structural operations give what NumPy and PyTorch give.
func TestStructuralFixtures(t *testing.T) {
	text, err := os.ReadFile("testdata/structural.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases map[string]struct {
		In   []fixture
		Want fixture
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	for name := range cases {
		if structuralFixtures[name] == nil {
			t.Errorf("%s is not computed", name)
		}
	}
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		for name, f := range structuralFixtures {
			c, ok := cases[name]
			if !ok {
				t.Errorf("%s is not in the file", name)
				continue
			}
			var in []*tensor.Tensor
			for _, x := range c.In {
				in = append(in, asView(r, x.array(t), on))
			}
			got, want := f(in...), c.Want.array(t)
			if got.DType() != want.dtype || !slices.Equal(got.Shape(), want.shape) {
				t.Errorf("%s: got %v%v, want %v%v", name, got.DType(), got.Shape(), want.dtype, want.shape)
				continue
			}
			for i, v := range values(got) {
				if !(math.Abs(v-want.data[i]) <= 1e-6) { // PyTorch's weights of an interpolation are as exact
					t.Errorf("%s: element %d is %v, want %v", name, i, v, want.data[i])
					break
				}
			}
		}
	})
}
