package tensor_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Tensors print as NumPy 2 prints arrays, except for NaN, infinities, and booleans.
func TestFormat(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		nan, inf := math.NaN(), math.Inf(1)
		f := func(v ...float64) *tensor.Tensor { return tensor.FromOn(on, v) }
		m := tensor.On(on)
		i := m.As(tensor.Int64)
		for _, c := range []struct {
			x            *tensor.Tensor
			format, want string
		}{
			{f(1, 0.5), "%v", "[1.  0.5]"},
			{f(1, 2, 3, 4).Reshape(2, 2), "%v", "[[1. 2.]\n [3. 4.]]"},
			{f(0.1, 1.0/3), "%v", "[0.1        0.33333333]"},
			{f(-1, 10.25), "%v", "[-1.   10.25]"},
			{f(1e10, 1), "%v", "[1.e+10 1.e+00]"},
			{f(1e-5, 2.5e-5), "%v", "[1.0e-05 2.5e-05]"},
			{f(0, 0), "%v", "[0. 0.]"},
			{f(nan, 1, inf, -inf), "%v", "[ NaN   1. +Inf -Inf]"},
			{f(1e9, nan), "%v", "[1.e+09    NaN]"},
			{m.Full(0.1, 2), "%v", "[0.1 0.1]"},
			{m.Scalar(0.1), "%v", "0.1"},
			{i.Scalar(3), "%v", "3"},
			{f(), "%v", "[]"},
			{m.Zeros(2, 0), "%v", "[]"},
			{i.Arange(-1, 2, 1), "%v", "[-1  0  1]"},
			{i.Arange(0, 2, 1).As(tensor.Bool), "%v", "[false  true]"},
			{i.Arange(0, 8, 1).Reshape(2, 2, 2), "%s", "[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]"},
			{i.Arange(0, 26, 1), "%v", "[ 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23\n 24 25]"},
			{m.Arange(0, 1001, 1), "%v", "[   0.    1.    2. ...  998.  999. 1000.]"},
			{i.Arange(0, 2002, 1).Reshape(2, 1001), "%v", "[[   0    1    2 ...  998  999 1000]\n [1001 1002 1003 ... 1999 2000 2001]]"},
			{i.Arange(0, 2002, 1).Reshape(1001, 2).Slice(0, 0, 1001), "%v",
				"[[   0    1]\n [   2    3]\n [   4    5]\n ...\n [1996 1997]\n [1998 1999]\n [2000 2001]]"},
			{i.Arange(0, 1000, 1).BroadcastTo(2, 1000).Slice(1, 0, 2).T(), "%v", "[[0 0]\n [1 1]]"},
			{f(1, 22.75), "%.1f", "[ 1.0 22.8]"},
			{f(1, 22.75), "%6.2f", "[  1.00  22.75]"},
			{f(1, 1000), "%g", "[   1 1000]"},
			{i.Arange(9, 11, 1), "%d", "[ 9 10]"},
			{i.Arange(9, 11, 1), "%03x", "[009 00a]"},
			{m.Scalar(2), "%.3f", "2.000"},
			{f(1, 2), "%i", "float64[2] on " + on.Name()},
			{f(1, 2), "%+v", "[1. 2.]"},
		} {
			if got := fmt.Sprintf(c.format, c.x); got != c.want {
				t.Errorf("%s of %i:\n%s\nwant\n%s", c.format, c.x, got, c.want)
			}
		}
		if got := f(1, 2).String(); got != "[1. 2.]" {
			t.Errorf("String: %s", got)
		}
	})
	for format, want := range map[string]string{"%4s": "[   1    2]", "%-4s|": "[1    2   ]|", "%.1s": "[1 2]", "%s": "[1. 2.]"} {
		if got := fmt.Sprintf(format, tensor.From([]float64{1, 2})); got != want {
			t.Errorf("%s: %s, want %s", format, got, want)
		}
	}
	if got := fmt.Sprint((*tensor.Tensor)(nil)); got != "<nil>" {
		t.Errorf("nil prints as %s", got)
	}
}

func TestLogValue(t *testing.T) {
	var b strings.Builder
	log := slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == "time" {
			return slog.Attr{}
		}
		return a
	}}))
	log.Info("step", "loss", tensor.Scalar(0.5), "n", tensor.From([]int64{3}).Row(0), "x", tensor.From([]float32{1, 2}))
	log.Info("step", "none", (*tensor.Tensor)(nil))
	if got, want := b.String(), "level=INFO msg=step loss=0.5 n=3 x=\"[1. 2.]\"\nlevel=INFO msg=step none=<nil>\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestMarshalJSON(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		x := tensor.FromOn(on, []float32{0.1, 2, 3, 4}, 2, 2)
		for what, c := range map[string]struct {
			x    *tensor.Tensor
			want string
		}{
			"matrix": {x, "[[0.1,2],[3,4]]"}, "view": {x.T(), "[[0.1,3],[2,4]]"}, "element": {x.Row(1).Row(0), "3"},
			"bools": {x.Gt(x), "[[false,false],[false,false]]"}, "int64": {tensor.FromOn(on, []int64{1 << 62}), "[4611686018427387904]"},
			"nothing": {tensor.On(on).Zeros(2, 0), "[[],[]]"},
		} {
			got, err := json.Marshal(c.x)
			if err != nil || string(got) != c.want {
				t.Errorf("%s: %s, %v, want %s", what, got, err, c.want)
			}
		}
		_, err := json.Marshal(tensor.FromOn(on, []float64{1, math.Inf(-1)}))
		if err == nil || !strings.Contains(err.Error(), "element 1 is -Inf, which JSON can't express") {
			t.Errorf("an infinity: %v", err)
		}
	})
}

// All reads, of tensors and of views.
func TestReads(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		f := tensor.FromOn(on, []float32{1, 2.5, 3, 4}, 2, 2)
		d := tensor.FromOn(on, []float64{1, 2.5})
		i := tensor.FromOn(on, []int64{1 << 60, -2})
		b := tensor.FromOn(on, []bool{true, false})
		last := i.Row(-1)
		v32, err32 := f.T().Float32sContext(t.Context())
		item, err := f.Row(0).Row(1).ItemContext(t.Context())
		for what, c := range map[string][2]any{
			"Item":            {f.Row(0).Row(1).Item(), 2.5},
			"ItemContext":     {fmt.Sprint(item, err), "2.5 <nil>"},
			"Item bool":       {b.Row(0).Item(), 1.0},
			"ItemInt":         {i.Row(0).ItemInt(), int64(1 << 60)},
			"ItemInt bool":    {b.Row(0).ItemInt(), int64(1)},
			"ItemOf":          {tensor.ItemOf[int64](last), int64(-2)},
			"ItemOf bool":     {tensor.ItemOf[bool](b.Slice(0, 1, 2)), false},
			"At":              {f.T().At(-1, 0), 2.5},
			"Float32s":        {fmt.Sprint(f.T().Float32s()), "[1 3 2.5 4]"},
			"Float32sContext": {fmt.Sprint(v32, err32), "[1 3 2.5 4] <nil>"},
			"Float64s":        {fmt.Sprint(d.Float64s()), "[1 2.5]"},
			"Int64s":          {fmt.Sprint(i.Int64s()), "[1152921504606846976 -2]"},
			"Bools":           {fmt.Sprint(b.Bools()), "[true false]"},
			"SliceOf":         {fmt.Sprint(tensor.SliceOf[bool](b)), "[true false]"},
			"Wait":            {fmt.Sprint(f.Wait(), f.WaitContext(t.Context()), f.Ready()), "<nil> <nil> true"},
			"Wait for all":    {tensor.Wait(f, f.Sum(), d), nil},
			"metadata":        {fmt.Sprint(f.Rank(), f.Size(), f.Dim(-1), f.Shape(), f.DType(), f.Device() == on), "2 4 2 [2 2] float32 true"},
		} {
			if c[0] != c[1] {
				t.Errorf("%s: got %v, want %v", what, c[0], c[1])
			}
		}
	})
}
