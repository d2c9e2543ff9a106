package nn

import (
	"fmt"

	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A Norm has the settings of a layer that normalises. Layers take it as an optional last argument.
type Norm struct {
	Eps      float64 // what is added to variances; 0: 1e-5
	Momentum float64 // of BatchNorm: the part of running statistics that a batch replaces; 0: 0.1
	NoAffine bool    // the layer has neither gain nor bias
	NoBias   bool    // the layer has no bias
}

// norm returns the settings of the layer with the given name, with their defaults.
func norm(name string, how []Norm) Norm {
	n := optional(name, how)
	if n.Eps < 0 || n.Momentum < 0 || n.Momentum > 1 {
		wrong(name, "an Eps of %v and a Momentum of %v, want 0 or more, and from 0 to 1", n.Eps, n.Momentum)
	}
	if n.Eps == 0 {
		n.Eps = 1e-5
	}
	if n.Momentum == 0 {
		n.Momentum = 0.1
	}
	return n
}

// An affine is what normalising layers do to their results: multiply by a gain and add a bias, if they
// have them.
type affine struct {
	gain *Param `nn:"weight"`
	bias *Param
}

func (n Norm) affine() (a affine) {
	if !n.NoAffine {
		a.gain = tensor.LazyParam(-1)
		if !n.NoBias {
			a.bias = tensor.LazyParam(-1)
		}
	}
	return a
}

// begin gives the parameters n elements each, for inputs like x.
func (a affine) begin(x *tensor.Tensor, n int) {
	if !areSet(a.gain, a.bias) {
		set(a.gain, nil, Ones(), likeInput(x), n, n, n)
		set(a.bias, nil, Zeros(), likeInput(x), n, n, n)
	}
}

// values returns the values of the parameters that there are.
func (a affine) values() (list []*tensor.Tensor) {
	for _, p := range []*Param{a.gain, a.bias} {
		if p != nil {
			list = append(list, p.Value())
		}
	}
	return list
}

// wide returns x in the type that its elements are computed in, float32 for half types, and lets go of x.
func wide(x *tensor.Tensor) *tensor.Tensor {
	if !x.DType().IsStorage() {
		return x
	}
	defer tensor.Dead(x)
	return x.As(x.DType().Wide())
}

// inWide returns f of x, which gets x in the type that its elements are computed in. So the result is rounded once.
func inWide(x *tensor.Tensor, f func(x *tensor.Tensor) *tensor.Tensor) *tensor.Tensor {
	dt := x.DType()
	if !dt.IsStorage() {
		return f(x)
	}
	in := x.As(dt.Wide())
	y := f(in)
	defer tensor.Dead(in, y)
	return y.As(dt)
}

// LayerNorm returns a layer that normalises its input along the last axis, of each sample alone: see
// [tensor.Tensor.LayerNorm]. The gain, 1 at first, and the bias, 0 at first, are parameters: vectors as
// long as that axis of the first input that Forward gets, on its device and in its element type. They
// are called weight and bias.
//
//asyncgen:api pure
func LayerNorm(how ...Norm) Module {
	n := norm("LayerNorm", how)
	return &layerNorm{how: n, affine: n.affine()}
}

type layerNorm struct {
	place
	how Norm
	affine
}

// Forward implements Module.
//
//go:noinline
func (l *layerNorm) Forward(x *tensor.Tensor) *tensor.Tensor {
	defer inLayer(l)
	mustBeVectors("LayerNorm", x)
	l.begin(x, x.Dim(-1))
	vectors := l.values()
	defer tensor.Dead(vectors...)
	return x.LayerNorm(-1, l.how.Eps, vectors...)
}

// String is the call that makes such a layer.
func (*layerNorm) String() string { return "LayerNorm()" }

func (l *layerNorm) isDiscreet() bool { return true }

// Params implements Module.
func (l *layerNorm) Params() []*Param { return Params(l) }

// RMSNorm returns a layer that divides its input by the root of the mean of the squares along the last
// axis, of each sample alone: see [tensor.Tensor.RMSNorm]. The gain, 1 at first, is a parameter like
// that of [LayerNorm]. There is no bias.
//
//asyncgen:api pure
func RMSNorm(how ...Norm) Module {
	n := norm("RMSNorm", how)
	n.NoBias = true
	return &rmsNorm{how: n, affine: n.affine()}
}

type rmsNorm struct {
	place
	how Norm
	affine
}

// Forward implements Module.
//
//go:noinline
func (l *rmsNorm) Forward(x *tensor.Tensor) *tensor.Tensor {
	defer inLayer(l)
	mustBeVectors("RMSNorm", x)
	l.begin(x, x.Dim(-1))
	vectors := l.values()
	defer tensor.Dead(vectors...)
	return x.RMSNorm(-1, l.how.Eps, vectors...)
}

// String is the call that makes such a layer.
func (*rmsNorm) String() string { return "RMSNorm()" }

func (l *rmsNorm) isDiscreet() bool { return true }

// Params implements Module.
func (l *rmsNorm) Params() []*Param { return Params(l) }

// mustBeVectors panics unless x has a last axis.
func mustBeVectors(name string, x *tensor.Tensor) {
	if x.Rank() == 0 {
		wrong(name, "the input is a number, want a vector for each sample")
	}
}

// GroupNorm returns a layer that normalises the channels of each sample in groups (Wu and He 2018):
// input [N C ...] has C channels, a multiple of groups. Mean and variance are those of a group, over
// all axes behind. The gain and the bias, called weight and bias, have an element for each channel.
// With one group for each channel it is [InstanceNorm].
//
//asyncgen:api pure
func GroupNorm(groups int, how ...Norm) Module {
	if groups < 1 {
		wrong("GroupNorm", "%d groups", groups)
	}
	n := norm("GroupNorm", how)
	return &groupNorm{name: "GroupNorm", groups: groups, how: n, affine: n.affine()}
}

// InstanceNorm returns a layer that normalises each channel of each sample alone, over all axes behind
// (Ulyanov, Vedaldi and Lempitsky 2016): input [N C L] or [N C H W]. It has a gain and a bias as
// [GroupNorm], which PyTorch's has not unless it is told so, and no running statistics.
//
//asyncgen:api pure
func InstanceNorm(how ...Norm) Module {
	n := norm("InstanceNorm", how)
	return &groupNorm{name: "InstanceNorm", how: n, affine: n.affine()}
}

type groupNorm struct {
	place
	name   string
	groups int // 0: one for each channel
	how    Norm
	affine
}

// Forward implements Module.
//
//go:noinline
func (l *groupNorm) Forward(x *tensor.Tensor) *tensor.Tensor {
	defer inLayer(l)
	shape, groups := x.Shape(), l.groups
	switch {
	case groups == 0 && len(shape) < 3:
		wrong(l.name, "the input has shape %v, want [N C L] or [N C H W]", shape)
	case groups == 0:
		groups = shape[1]
	case len(shape) < 2 || shape[1]%groups != 0:
		wrong(l.name, "the input has shape %v, want [N C ...] with channels in %d groups", shape, groups)
	}
	l.begin(x, shape[1])
	return inWide(x, func(x *tensor.Tensor) *tensor.Tensor { return l.normed(x, groups) })
}

// normed returns x, of a type that is computed in, normalised in so many groups.
func (l *groupNorm) normed(x *tensor.Tensor, groups int) *tensor.Tensor {
	shape := x.Shape()
	grouped := x.Reshape(shape[0], groups, shape[1:].Size()/max(groups, 1))
	normed := grouped.LayerNorm(-1, l.how.Eps)
	y := normed.Reshape(shape...)
	tensor.Dead(grouped, normed)
	for i, v := range l.values() {
		v = wide(v)
		before, column := y, channels(v, len(shape))
		if i == 0 {
			y = before.Mul(column)
		} else {
			y = before.Add(column)
		}
		tensor.Dead(v, column, before)
	}
	return y
}

// channels is a vector of channels as it is broadcast to [N C ...], which has rank axes.
func channels(v *tensor.Tensor, rank int) *tensor.Tensor {
	shape := make([]int, rank-1)
	for i := range shape {
		shape[i] = 1
	}
	shape[0] = v.Size()
	return v.Reshape(shape...)
}

// String is the call that makes such a layer.
func (l *groupNorm) String() string {
	if l.groups == 0 {
		return l.name + "()"
	}
	return fmt.Sprintf("%s(%d)", l.name, l.groups)
}

func (l *groupNorm) isDiscreet() bool { return true }

// Params implements Module.
func (l *groupNorm) Params() []*Param { return Params(l) }

// BatchNorm returns a layer that normalises each channel over the samples of a batch (Ioffe and Szegedy
// 2015). Its input has the channels along axis 1: [N C], [N C L] or [N C H W]. The gain and the bias,
// called weight and bias, have an element for each channel.
//
// In training it uses the mean and the variance of the batch, and remembers them in the buffers
// running_mean and running_var, which begin with 0 and 1, and are float32 for inputs of half types. A
// buffer becomes 1-Momentum times itself plus Momentum times the number of the batch. For running_var
// that is the unbiased variance, a sum divided by one less than the number of elements, as in PyTorch.
// A [Frozen] layer normalises by the two buffers, each sample alone:
//
//	validation := nn.Frozen(net).Forward(x)
//
// Within [DataParallel] each shard is a batch, and the buffers are those of the first. Forward panics
// if a batch in training has less than two elements for each channel.
//
//asyncgen:api pure
func BatchNorm(how ...Norm) Module {
	n := norm("BatchNorm", how)
	return &batchNorm{how: n, affine: n.affine(), runningMean: NewBuffer(nil), runningVar: NewBuffer(nil)}
}

type batchNorm struct {
	place
	how Norm
	affine
	runningMean, runningVar *Buffer
	mode                    Mode
}

// Forward implements Module.
//
//go:noinline
func (l *batchNorm) Forward(x *tensor.Tensor) *tensor.Tensor {
	defer inLayer(l)
	shape := x.Shape()
	if len(shape) < 2 {
		wrong("BatchNorm", "the input has shape %v, want [N C ...]", shape)
	}
	l.begin(x, shape[1])
	return inWide(x, l.normed)
}

// normed returns x, of a type that is computed in, normalised.
func (l *batchNorm) normed(x *tensor.Tensor) *tensor.Tensor {
	shape := x.Shape()
	mean, variance := l.statistics(x)
	scale := reciprocalRoot(variance, l.how.Eps)
	params := l.values()
	for i, v := range params {
		params[i] = wide(v)
	}
	if len(params) > 0 {
		scaled := scale.Mul(params[0])
		tensor.Dead(scale)
		scale = scaled
	}
	shift := mean.Mul(scale)
	if len(params) > 1 {
		shifted := params[1].Sub(shift)
		tensor.Dead(shift)
		shift = shifted
	} else {
		negative := shift.Neg()
		tensor.Dead(shift)
		shift = negative
	}
	scales, shifts := channels(scale, len(shape)), channels(shift, len(shape))
	y := scaleAndShift.Of(x, scales, shifts)
	tensor.Dead(params...)
	tensor.Dead(mean, variance, scale, shift, scales, shifts)
	return y
}

// statistics returns the mean and the variance by which l normalises x. In training these are those of
// x, which become part of the running ones; otherwise they are the running ones.
func (l *batchNorm) statistics(x *tensor.Tensor) (mean, variance *tensor.Tensor) {
	if !l.mode.IsTraining() {
		return wide(l.runningMean.Value()), wide(l.runningVar.Value())
	}
	shape := x.Shape()
	n := shape[0] * shape[2:].Size()
	if n < 2 {
		wrong("BatchNorm", "the input has shape %v, want more than one element for each channel in training", shape)
	}
	axes := []int{0}
	for axis := 2; axis < len(shape); axis++ {
		axes = append(axes, axis)
	}
	mean = overPlanes(axes, func(axes []int) *tensor.Tensor { return x.Mean(axes...) })
	means := channels(mean, len(shape))
	variance = overPlanes(axes, func(axes []int) *tensor.Tensor { return squaredDifference.Mean(axes, x, means) })
	tensor.Dead(means)
	if !l.runningMean.IsSet() {
		zeros := like(x).Zeros(shape[1])
		l.runningMean.Set(zeros)
		tensor.Dead(zeros)
	}
	if !l.runningVar.IsSet() {
		ones := like(x).Ones(shape[1])
		l.runningVar.Set(ones)
		tensor.Dead(ones)
	}
	remember(l.runningMean, mean, l.how.Momentum, 1)
	remember(l.runningVar, variance, l.how.Momentum, float64(n)/float64(n-1))
	return mean, variance
}

// overPlanes returns a mean over axes, the first of which numbers samples. The mean over the other
// axes, which are the last ones, comes first: it reads memory in order, and stores none of the squares
// that a variance is a mean of.
func overPlanes(axes []int, mean func(axes []int) *tensor.Tensor) *tensor.Tensor {
	if len(axes) == 1 {
		return mean(axes)
	}
	planes := mean(axes[1:])
	defer tensor.Dead(planes)
	return planes.Mean(0)
}

// remember replaces the part momentum of b by x times factor.
func remember(b *Buffer, x *tensor.Tensor, momentum, factor float64) {
	old, now := wide(b.Value()), x.Detach()
	kept := old.MulScalar(1 - momentum)
	mixed := kept.AddScaled(now, momentum*factor)
	b.Set(mixed)
	tensor.Dead(old, now, kept, mixed)
}

// reciprocalRoot returns 1 / sqrt(variance + eps).
func reciprocalRoot(variance *tensor.Tensor, eps float64) *tensor.Tensor {
	positive := variance.AddScalar(eps)
	root := positive.Sqrt()
	y := root.Reciprocal()
	tensor.Dead(positive, root)
	return y
}

var scaleAndShift = tensor.Fuse("BatchNorm", 3, func(x ...*kernel.Expr) *kernel.Expr {
	return kernel.Add(kernel.Mul(x[0], x[1]), x[2])
})

// String is the call that makes such a layer.
func (*batchNorm) String() string { return "BatchNorm()" }

func (l *batchNorm) isDiscreet() bool { return true }

// Params implements Module.
func (l *batchNorm) Params() []*Param { return Params(l) }
