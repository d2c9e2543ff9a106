package tensor_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/op"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A convCase is a convolution.
type convCase struct {
	image, kernel []int
	tensor.Conv
}

// convCases are convolutions of all kinds, some without elements.
var convCases = []convCase{
	{[]int{2, 3, 5, 6}, []int{4, 3, 3, 3}, tensor.Conv{Padding: tensor.Both(1)}},
	{[]int{3, 5, 6}, []int{7, 3, 2, 3}, tensor.Conv{}},
	{[]int{1, 2, 4, 4}, []int{5, 2, 1, 1}, tensor.Conv{}},
	{[]int{2, 2, 9, 7}, []int{3, 2, 3, 2}, tensor.Conv{Stride: tensor.Pair{2, 3}, Padding: tensor.Pair{1, 0}}},
	{[]int{1, 4, 8, 8}, []int{6, 2, 3, 3}, tensor.Conv{Dilation: tensor.Pair{2, 1}, Groups: 2, Padding: tensor.Both(2)}},
	{[]int{2, 5, 6, 6}, []int{5, 1, 3, 3}, tensor.Conv{Groups: 5, Padding: tensor.Both(1)}},
	{[]int{2, 3, 7, 7}, []int{6, 1, 2, 2}, tensor.Conv{Groups: 3, Stride: tensor.Both(2)}},
	// more than the kernel
	{[]int{1, 1, 7, 7}, []int{2, 1, 1, 1}, tensor.Conv{Stride: tensor.Both(4)}},
	// larger than the image
	{[]int{1, 1, 2, 2}, []int{2, 1, 5, 4}, tensor.Conv{Padding: tensor.Both(2)}},
	// some windows see nothing
	{[]int{1, 1, 2, 2}, []int{1, 1, 2, 2}, tensor.Conv{Padding: tensor.Both(4), Stride: tensor.Both(3)}},
	// more than one image in a vector register
	{[]int{9, 2, 3, 3}, []int{6, 2, 3, 3}, tensor.Conv{Padding: tensor.Both(1)}},
	{[]int{0, 2, 4, 4}, []int{3, 2, 2, 2}, tensor.Conv{}},
	{[]int{2, 0, 4, 4}, []int{3, 0, 2, 2}, tensor.Conv{}},
	{[]int{2, 2, 4, 4}, []int{0, 2, 2, 2}, tensor.Conv{}},
	{[]int{1, 2, 0, 4}, []int{3, 2, 2, 2}, tensor.Conv{Padding: tensor.Both(1)}},
}

func (c convCase) String() string {
	return fmt.Sprintf("Conv2D of %v by %v, %+v", c.image, c.kernel, c.Conv)
}

// full returns the Conv with its defaults filled in.
func (c convCase) full() tensor.Conv {
	f := c.Conv
	for i := range 2 {
		f.Stride[i], f.Dilation[i] = max(f.Stride[i], 1), max(f.Dilation[i], 1)
	}
	f.Groups = max(f.Groups, 1)
	return f
}

// unfold returns the matrix that the kernel of a group is multiplied with, for one image. Row k and column p has
// the image element that element k of the kernel meets at position p.
func (c convCase) unfold(image array, n, group int) (columns array, rows, cols int) {
	f := c.full()
	shape := image.shape[len(image.shape)-3:]
	at := func(size, kernel, axis int) int {
		return (size+2*f.Padding[axis]-f.Dilation[axis]*(kernel-1)-1)/f.Stride[axis] + 1
	}
	rows, cols = at(shape[1], c.kernel[2], 0), at(shape[2], c.kernel[3], 1)
	columns = array{dtype: image.dtype, shape: []int{c.kernel[1] * c.kernel[2] * c.kernel[3], rows * cols}}
	for _, index := range indices([]int{c.kernel[1], c.kernel[2], c.kernel[3], rows, cols}) {
		y := index[3]*f.Stride[0] - f.Padding[0] + index[1]*f.Dilation[0]
		x := index[4]*f.Stride[1] - f.Padding[1] + index[2]*f.Dilation[1]
		v := 0.0
		if 0 <= y && y < shape[1] && 0 <= x && x < shape[2] {
			channel := group*c.kernel[1] + index[0]
			v = image.data[((n*shape[0]+channel)*shape[1]+y)*shape[2]+x]
		}
		columns.data = append(columns.data, v)
	}
	return columns, rows, cols
}

// Conv2D is near to its definition in float64, and has the bits of the MatMul that its documentation names.
func TestConv2D(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		for _, dt := range []device.DType{tensor.Float32, tensor.Float64} {
			for _, c := range convCases {
				image := random(r, dt, c.image, op.Interval{Lo: -1, Hi: 1})
				kernel := random(r, dt, c.kernel, op.Interval{Lo: -1, Hi: 1})
				got := asView(r, image, on).Conv2D(asView(r, kernel, on), c.Conv)
				checkConv(t, fmt.Sprintf("%v %v", dt, c), c, image, kernel, got)
			}
		}
	})
}

func checkConv(t *testing.T, what string, c convCase, image, kernel array, got *tensor.Tensor) {
	t.Helper()
	images := 1
	if len(c.image) == 4 {
		images = c.image[0]
	}
	groups := c.full().Groups
	outputs, depth := c.kernel[0]/groups, c.kernel[1]*c.kernel[2]*c.kernel[3]
	eps := math.Ldexp(1, -52)
	if image.dtype == tensor.Float32 {
		eps = math.Ldexp(1, -23)
	}
	elements := values(got)
	shape := got.Shape()
	if want := append(slices.Clone(c.image[:len(c.image)-3]), c.kernel[0]); !slices.Equal(shape[:len(shape)-2], want) {
		t.Fatalf("%s: the shape is %v", what, shape)
	}
	if got.Size() == 0 {
		return
	}
	for n := range images {
		for g := range groups {
			columns, rows, cols := c.unfold(image, n, g)
			if shape[len(shape)-2] != rows || shape[len(shape)-1] != cols {
				t.Fatalf("%s: the shape is %v, want %d rows and %d columns", what, shape, rows, cols)
			}
			part := array{dtype: kernel.dtype, shape: []int{outputs, depth}, data: kernel.data[g*outputs*depth:][:outputs*depth]}
			product := values(part.tensor(got.Device()).MatMul(columns.tensor(got.Device())))
			for i, v := range elements[(n*groups+g)*outputs*rows*cols:][:outputs*rows*cols] {
				o, at := i/(rows*cols), i%(rows*cols)
				want := 0.0
				for k := range depth {
					want += part.data[o*depth+k] * columns.data[k*rows*cols+at]
				}
				if !(math.Abs(v-want) <= float64(depth+1)*eps) {
					t.Fatalf("%s: image %d, group %d, element %d is %v, want %v", what, n, g, i, v, want)
				}
				if math.Float64bits(v) != math.Float64bits(product[i]) {
					t.Fatalf("%s: image %d, group %d, element %d is %v, that of the product of matrices %v: must be the same bits", what, n, g, i, v, product[i])
				}
			}
		}
	}
}

// Infinite weights are multiplied with the zeros around an image, as in a product of matrices.
func TestConv2DOfInfinities(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		x := tensor.FromOn(on, []float32{1, 2, 3}, 1, 1, 3)
		w := tensor.FromOn(on, []float32{1, 1, float32(math.Inf(1))}, 1, 1, 1, 3)
		got := values(x.Conv2D(w, tensor.Conv{Padding: tensor.Pair{0, 1}}))
		if !math.IsInf(got[0], 1) || !math.IsInf(got[1], 1) || !math.IsNaN(got[2]) {
			t.Errorf("got %v, want [+Inf +Inf NaN]", got)
		}
	})
}

// Images have the same bits in a batch as one by one.
func TestConv2DOfPartsOfABatch(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		for _, c := range convCases {
			if c.image[0] < 2 || len(c.image) != 4 {
				continue
			}
			x, w := random(r, tensor.Float32, c.image, op.Interval{Lo: -1, Hi: 1}).tensor(on), random(r, tensor.Float32, c.kernel, op.Interval{Lo: -1, Hi: 1}).tensor(on)
			all := x.Conv2D(w, c.Conv)
			for i := range c.image[0] {
				sameBits(t, c.String(), x.Row(i).Conv2D(w, c.Conv), all.Row(i))
			}
			half := c.image[0] / 2
			sameBits(t, c.String(), x.Slice(0, half, c.image[0]).Conv2D(w, c.Conv), all.Slice(0, half, c.image[0]))
		}
	})
}

// A poolCase is a pooling.
type poolCase struct {
	shape []int
	tensor.Pool
}

var poolCases = []poolCase{
	{[]int{2, 3, 6, 6}, tensor.Pool{Window: tensor.Both(2)}},
	{[]int{5, 7}, tensor.Pool{Window: tensor.Pair{3, 2}, Stride: tensor.Pair{2, 1}, Padding: tensor.Pair{1, 0}}},
	{[]int{3, 7, 8}, tensor.Pool{Window: tensor.Both(3), Stride: tensor.Both(2), Padding: tensor.Both(1)}},
	{[]int{1, 2, 7, 7}, tensor.Pool{Window: tensor.Both(7)}},
	{[]int{2, 40, 2}, tensor.Pool{Window: tensor.Pair{1, 2}, Stride: tensor.Both(3)}},
	{[]int{2, 1, 1}, tensor.Pool{Window: tensor.Both(3), Stride: tensor.Both(1), Padding: tensor.Both(1)}},
	{[]int{0, 4, 4}, tensor.Pool{Window: tensor.Both(2)}},
}

// pooled returns the results of MaxPool2D and AvgPool2D.
func (c poolCase) pooled(x array) (greatest, mean array) {
	stride := c.Stride
	for i := range stride {
		if stride[i] == 0 {
			stride[i] = c.Window[i]
		}
	}
	rank := len(c.shape)
	h, w := c.shape[rank-2], c.shape[rank-1]
	rows, cols := (h+2*c.Padding[0]-c.Window[0])/stride[0]+1, (w+2*c.Padding[1]-c.Window[1])/stride[1]+1
	shape := append(slices.Clone(c.shape[:rank-2]), rows, cols)
	greatest, mean = array{dtype: x.dtype, shape: shape}, array{dtype: x.dtype, shape: shape}
	for plane := range device.Shape(c.shape[:rank-2]).Size() {
		for i := range rows {
			for j := range cols {
				most, sum, count := math.Inf(-1), 0.0, 0
				for y := max(0, i*stride[0]-c.Padding[0]); y < min(h, i*stride[0]-c.Padding[0]+c.Window[0]); y++ {
					for z := max(0, j*stride[1]-c.Padding[1]); z < min(w, j*stride[1]-c.Padding[1]+c.Window[1]); z++ {
						v := x.data[(plane*h+y)*w+z]
						most, sum, count = math.Max(most, v), sum+v, count+1
					}
				}
				greatest.data, mean.data = append(greatest.data, most), append(mean.data, sum/float64(count))
			}
		}
	}
	return greatest, mean
}

// The image with its padding would take more memory than there is, though the result has only 36 elements.
func TestConv2DOfTooMuchPadding(t *testing.T) {
	defer tensor.SetEngine(engine.New(engine.Options{}))()
	const n = 1 << 20
	x := tensor.On(device.CPU()).Ones(1, 1, 4, 4)
	y := x.Conv2D(tensor.On(device.CPU()).Ones(1, 1, 3, 3), tensor.Conv{Padding: tensor.Both(n), Dilation: tensor.Both(n)})
	if err := y.Wait(); err == nil || !strings.Contains(err.Error(), "out of device memory") {
		t.Errorf("the error is %v", err)
	}
	if got := x.Sum().Item(); got != 16 {
		t.Errorf("the sum of 16 ones is %v afterwards", got)
	}
}

func TestPooling(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		for _, dt := range []device.DType{tensor.Float32, tensor.Float64} {
			for _, c := range poolCases {
				x := random(r, dt, c.shape, op.Interval{Lo: -1, Hi: 1})
				greatest, mean := c.pooled(x)
				what := fmt.Sprintf("%v %v %+v", dt, c.shape, c.Pool)
				check(t, "MaxPool2D "+what, asView(r, x, on).MaxPool2D(c.Pool), greatest, 0)
				got := asView(r, x, on).AvgPool2D(c.Pool)
				if !slices.Equal(got.Shape(), mean.shape) {
					t.Fatalf("AvgPool2D %s: shape %v, want %v", what, got.Shape(), mean.shape)
				}
				for i, v := range values(got) {
					if math.Abs(v-mean.data[i]) > 1e-5 {
						t.Fatalf("AvgPool2D %s: element %d is %v, want %v", what, i, v, mean.data[i])
					}
				}
			}
		}
	})
}

// The gradient of a window goes to the first of its greatest elements, or to its first NaN. The padding is never
// chosen.
func TestMaxPool2DChoosesTheFirst(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		nan, inf := math.NaN(), math.Inf(-1)
		x := tensor.FromOn(on, []float64{
			1, 2, 2, nan,
			2, 0, 9, nan,
			inf, inf, 0, math.Copysign(0, -1),
			inf, inf, -1, 0,
		}, 4, 4).Track()
		y := x.MaxPool2D(tensor.Pool{Window: tensor.Both(2)})
		if got := y.Float64s(); got[0] != 2 || !math.IsNaN(got[1]) || got[2] != inf || got[3] != 0 {
			t.Errorf("the greatest are %v", got)
		}
		g := tensor.Grad(y.Mul(tensor.FromOn(on, []float64{1, 2, 3, 4}, 2, 2)).Sum(), x)[0]
		if got, want := g.Float64s(), []float64{0, 1, 0, 2, 0, 0, 0, 0, 3, 0, 4, 0, 0, 0, 0, 0}; !slices.Equal(got, want) {
			t.Errorf("the gradient is %v, want %v", got, want)
		}
		least := tensor.FromOn(on, []float64{inf}, 1, 1).Track()
		g = tensor.Grad(least.MaxPool2D(tensor.Pool{Window: tensor.Both(3), Stride: tensor.Both(1), Padding: tensor.Both(1)}).Sum(), least)[0]
		if got := g.Float64s(); !slices.Equal(got, []float64{1}) {
			t.Errorf("the gradient of the least number between what is outside is %v", got)
		}
	})
}

// The gradients of convolutions and pooling, and second gradients.
func TestConvGradients(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		some := func(r *rand.Rand, shape []int) array {
			return random(r, tensor.Float64, shape, op.Interval{Lo: -2, Hi: 2})
		}
		for _, c := range []convCase{
			{[]int{2, 2, 3, 4}, []int{2, 2, 2, 3}, tensor.Conv{Padding: tensor.Pair{1, 0}}},
			{[]int{2, 4, 3}, []int{4, 1, 3, 2}, tensor.Conv{Stride: tensor.Pair{2, 1}, Padding: tensor.Both(1), Groups: 2}},
			{[]int{1, 1, 5, 4}, []int{1, 1, 2, 2}, tensor.Conv{Stride: tensor.Pair{3, 2}, Dilation: tensor.Pair{2, 1}}},
		} {
			checkGradient(t, r, on, c.String(), func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Conv2D(x[1], c.Conv) }, some(r, c.image), some(r, c.kernel))
		}
		for _, c := range poolCases[:3] {
			shape := append(slices.Repeat([]int{1}, len(c.shape)-2), c.shape[len(c.shape)-2:]...)
			checkGradient(t, r, on, fmt.Sprintf("MaxPool2D %v", c), func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].MaxPool2D(c.Pool) }, some(r, shape))
			checkGradient(t, r, on, fmt.Sprintf("AvgPool2D %v", c), func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].AvgPool2D(c.Pool) }, some(r, shape))
		}
	})
}

// ConvTranspose2D is near to its definition in float64: a sum over the elements of the images.
func TestConvTranspose2D(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		for range 60 {
			groups, inputs, outputs := 1+r.IntN(2), 1+r.IntN(3), 1+r.IntN(3)
			c := tensor.ConvTranspose{Groups: groups}
			x := array{tensor.Float64, []int{r.IntN(3), groups * inputs, 1 + r.IntN(4), 1 + r.IntN(4)}, nil}
			w := array{tensor.Float64, []int{groups * inputs, outputs, 1 + r.IntN(3), 1 + r.IntN(3)}, nil}
			shape := []int{x.shape[0], groups * outputs, 0, 0}
			for i := range 2 {
				c.Stride[i], c.Dilation[i] = 1+r.IntN(3), 1+r.IntN(2)
				c.OutputPadding[i] = r.IntN(c.Stride[i])
				reach := (x.shape[2+i]-1)*c.Stride[i] + c.Dilation[i]*(w.shape[2+i]-1) + 1 + c.OutputPadding[i]
				c.Padding[i] = r.IntN((reach + 1) / 2)
				shape[2+i] = reach - 2*c.Padding[i]
			}
			x = random(r, x.dtype, x.shape, op.Interval{Lo: -1, Hi: 1})
			w = random(r, w.dtype, w.shape, op.Interval{Lo: -1, Hi: 1})
			want := array{x.dtype, shape, make([]float64, device.Shape(shape).Size())}
			for _, at := range indices([]int{x.shape[0], groups, inputs, outputs, x.shape[2], x.shape[3], w.shape[2], w.shape[3]}) {
				n, g, channel, o, i, j, k, l := at[0], at[1], at[1]*inputs+at[2], at[3], at[4], at[5], at[6], at[7]
				row, column := i*c.Stride[0]+k*c.Dilation[0]-c.Padding[0], j*c.Stride[1]+l*c.Dilation[1]-c.Padding[1]
				if 0 <= row && row < shape[2] && 0 <= column && column < shape[3] {
					want.data[want.place([]int{n, g*outputs + o, row, column})] += x.at([]int{n, channel, i, j}) * w.at([]int{channel, o, k, l})
				}
			}
			near(t, fmt.Sprintf("ConvTranspose2D of %v by %v, %+v", x.shape, w.shape, c), asView(r, x, on).ConvTranspose2D(asView(r, w, on), c), want)
		}
	})
}

// The means of AdaptiveAvgPool2D, and the elements of Interpolate, are near to those of loops.
func TestAdaptiveAvgPoolAndInterpolate(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		for range 60 {
			dt := []device.DType{tensor.Float32, tensor.Float64}[r.IntN(2)]
			x := random(r, dt, append(randomShape(r, r.IntN(3), 2), 1+r.IntN(6), 1+r.IntN(6)), op.Interval{Lo: -1, Hi: 1})
			lead := len(x.shape) - 2
			h, w, rows, columns := x.shape[lead], x.shape[lead+1], 1+r.IntN(8), 1+r.IntN(8)
			shape := append(slices.Clone(x.shape[:lead]), rows, columns)
			mean, between := array{dt, shape, nil}, array{dt, shape, nil}
			for _, at := range indices(shape) {
				i, j := at[lead], at[lead+1]
				element := func(y, z int) float64 { return x.at(append(slices.Clone(at[:lead]), y, z)) }
				sum, n := 0.0, 0
				for y := range h {
					for z := range w {
						// Windows hold every element of which they have a part.
						if (y+1)*rows > i*h && y*rows < (i+1)*h && (z+1)*columns > j*w && z*columns < (j+1)*w {
							sum, n = sum+element(y, z), n+1
						}
					}
				}
				mean.data = append(mean.data, sum/float64(n))
				// In between, each element weighs as much as the place is near to it.
				weight := func(k, places, i, length int) float64 {
					at := (float64(i)+0.5)*float64(length)/float64(places) - 0.5
					return max(0, 1-math.Abs(min(max(at, 0), float64(length-1))-float64(k)))
				}
				sum = 0
				for y := range h {
					for z := range w {
						sum += weight(y, rows, i, h) * weight(z, columns, j, w) * element(y, z)
					}
				}
				between.data = append(between.data, sum)
			}
			what := fmt.Sprintf("%v to %d rows and %d columns", x.shape, rows, columns)
			near(t, "AdaptiveAvgPool2D "+what, asView(r, x, on).AdaptiveAvgPool2D(rows, columns), mean)
			near(t, "Interpolate "+what, asView(r, x, on).Interpolate(tensor.Bilinear, rows, columns), between)
			check(t, "nearest "+what, asView(r, x, on).Interpolate(tensor.Nearest, rows, columns), x.made(shape, 0, func(at []int) []int {
				return append(at[:lead:lead], at[lead]*h/rows, at[lead+1]*w/columns)
			}), 0)
		}
	})
}

func TestFurtherConvGradients(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		some := func(shape ...int) array { return random(r, tensor.Float64, shape, op.Interval{Lo: -2, Hi: 2}) }
		for _, c := range []struct {
			what string
			f    function
			in   []array
		}{
			{"Conv1D", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Conv1D(x[1], conv1D) }, []array{some(2, 2, 5), some(2, 1, 2)}},
			{"ConvTranspose1D", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].ConvTranspose1D(x[1], convTranspose1D) }, []array{some(2, 3), some(2, 1, 2)}},
			{"ConvTranspose2D", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].ConvTranspose2D(x[1], convTranspose2D) }, []array{some(1, 2, 2, 2), some(2, 2, 2, 1)}},
			{"MaxPool1D", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].MaxPool1D(pool1D) }, []array{some(2, 6)}},
			{"AvgPool1D", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].AvgPool1D(pool1D).Square() }, []array{some(2, 6)}},
			{"AdaptiveAvgPool2D", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].AdaptiveAvgPool2D(2, 3).Square() }, []array{some(3, 4)}},
			{"AdaptiveAvgPool2D evenly", func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].AdaptiveAvgPool2D(1, 2).Square() }, []array{some(3, 4)}},
			{"Interpolate", func(x ...*tensor.Tensor) *tensor.Tensor {
				return x[0].Interpolate(tensor.Bilinear, 4, 2).Interpolate(tensor.Nearest, 3, 3).Square()
			}, []array{some(2, 3)}},
		} {
			checkGradient(t, r, on, c.what, c.f, c.in...)
		}
	})
}
