package nn

import (
	"math"
	"slices"

	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A Loss has the settings of losses. Its methods are the losses with these settings; the functions
// [MSELoss], [CrossEntropy] and so on are those of the zero Loss.
//
//	loss := nn.Loss{Smoothing: 0.1, Ignore: []int64{padding}}.CrossEntropy(scores, labels)
type Loss struct {
	// Reduction says what becomes of the losses of elements or samples; 0: their mean.
	Reduction Reduction
	// Delta is where [Loss.Huber] goes over from squares to absolute values; 0: 1.
	Delta float64
	// Positive multiplies the losses of positive targets in [Loss.BCEWithLogits]. It is broadcast; nil: 1.
	Positive *tensor.Tensor
	// Margin is the similarity up to which [Loss.CosineEmbedding] takes vectors for different ones.
	Margin float64
	// Smoothing is the part of the probability that [Loss.CrossEntropy] and [Loss.NLL] spread over all
	// classes (Szegedy et al. 2016).
	Smoothing float64
	// Weights has a weight for each class, by which CrossEntropy and NLL multiply the losses of
	// samples. Their mean is then that of samples with weights: it is divided by the sum of the weights
	// of their labels. nil: all are 1.
	Weights *tensor.Tensor
	// Ignore lists labels whose samples do not count in CrossEntropy and NLL, such as padding. They
	// need not be numbers of classes: PyTorch has -100. The mean is NaN if there are no others.
	Ignore []int64
}

// A Reduction says what becomes of the losses of elements or samples.
type Reduction int

// The reductions.
const (
	Mean Reduction = iota // their mean, as a tensor without axes
	Sum                   // their sum, as a tensor without axes
	None                  // they are the result
)

// MSELoss returns the mean of the squared differences, as a tensor without axes. It panics if pred and
// target differ in shape: broadcasting one of them here would be a mistake that trains quietly.
//
//asyncgen:api op batch
//go:noinline
func MSELoss(pred, target *tensor.Tensor) *tensor.Tensor { return Loss{}.MSE(pred, target) }

// MSE returns the squared differences of pred and target, reduced. It panics if these differ in shape.
//
//asyncgen:api op batch none
//go:noinline
func (l Loss) MSE(pred, target *tensor.Tensor) *tensor.Tensor {
	mustEqual("MSELoss", pred, target)
	return l.fused(squaredDifference, pred, target)
}

var squaredDifference = tensor.Fuse("MSELoss", 2, func(x ...*kernel.Expr) *kernel.Expr {
	difference := kernel.Sub(x[0], x[1])
	return kernel.Mul(difference, difference)
})

// L1Loss returns the mean of the absolute values of the differences, as a tensor without axes. It
// panics if pred and target differ in shape.
//
//asyncgen:api op batch
//go:noinline
func L1Loss(pred, target *tensor.Tensor) *tensor.Tensor { return Loss{}.L1(pred, target) }

// L1 returns the absolute values of the differences of pred and target, reduced. Where there is no
// difference the gradient is 0. It panics if pred and target differ in shape.
//
//asyncgen:api op batch none
//go:noinline
func (l Loss) L1(pred, target *tensor.Tensor) *tensor.Tensor {
	mustEqual("L1Loss", pred, target)
	return l.fused(absoluteDifference, pred, target)
}

var absoluteDifference = tensor.Fuse("L1Loss", 2, func(x ...*kernel.Expr) *kernel.Expr {
	return kernel.Abs(kernel.Sub(x[0], x[1]))
})

// HuberLoss returns the mean of [Loss.Huber] with a Delta of 1, as a tensor without axes, which PyTorch
// also calls smooth L1. It panics if pred and target differ in shape.
//
//asyncgen:api op batch
//go:noinline
func HuberLoss(pred, target *tensor.Tensor) *tensor.Tensor { return Loss{}.Huber(pred, target) }

// Huber returns d²/2 of differences d up to Delta in size, and Delta·(|d| - Delta/2) of greater ones
// (Huber 1964), reduced. PyTorch's smooth L1 with a beta is this with Delta beta, divided by beta. It
// panics if pred and target differ in shape.
//
//asyncgen:api op batch none
//go:noinline
func (l Loss) Huber(pred, target *tensor.Tensor) *tensor.Tensor {
	mustEqual("HuberLoss", pred, target)
	if l.Delta < 0 {
		wrong("HuberLoss", "a Delta of %v", l.Delta)
	}
	if l.Delta == 0 {
		l.Delta = 1
	}
	delta := like(pred).Scalar(l.Delta)
	defer tensor.Dead(delta)
	return l.fused(huber, pred, target, delta)
}

var huber = tensor.Fuse("HuberLoss", 3, func(x ...*kernel.Expr) *kernel.Expr {
	d, half := kernel.Sub(x[0], x[1]), number(0.5, x[0])
	size := kernel.Abs(d)
	return kernel.Where(kernel.Le(size, x[2]), kernel.Mul(half, kernel.Mul(d, d)), kernel.Mul(x[2], kernel.Sub(size, kernel.Mul(half, x[2]))))
})

// BCEWithLogits returns the mean of [Loss.BCEWithLogits] of the zero Loss, as a tensor without axes. It
// panics if scores and targets differ in shape.
//
//asyncgen:api op batch
//go:noinline
func BCEWithLogits(scores, targets *tensor.Tensor) *tensor.Tensor {
	return Loss{}.BCEWithLogits(scores, targets)
}

// BCEWithLogits returns the binary cross-entropy of targets, probabilities from 0 to 1, and the
// sigmoids of scores, reduced: -Positive·t·log(sigmoid(s)) - (1-t)·log(1-sigmoid(s)) of each element.
// It does not overflow. It panics if scores and targets differ in shape.
//
//asyncgen:api op batch none
//go:noinline
func (l Loss) BCEWithLogits(scores, targets *tensor.Tensor) *tensor.Tensor {
	mustEqual("BCEWithLogits", scores, targets)
	if l.Positive == nil {
		return l.fused(binaryEntropy, scores, targets)
	}
	return l.fused(weightedEntropy, scores, targets, l.Positive)
}

var binaryEntropy = tensor.Fuse("BCEWithLogits", 2, func(x ...*kernel.Expr) *kernel.Expr {
	rest := kernel.Mul(kernel.Sub(number(1, x[0]), x[1]), x[0])
	return kernel.Add(rest, logOnePlusExp(kernel.Neg(x[0])))
})

var weightedEntropy = tensor.Fuse("BCEWithLogits", 3, func(x ...*kernel.Expr) *kernel.Expr {
	one := number(1, x[0])
	rest := kernel.Mul(kernel.Sub(one, x[1]), x[0])
	weight := kernel.Add(one, kernel.Mul(kernel.Sub(x[2], one), x[1]))
	return kernel.Add(rest, kernel.Mul(weight, logOnePlusExp(kernel.Neg(x[0]))))
})

// BCELoss returns the mean of [Loss.BCE], as a tensor without axes. It panics if pred and targets differ
// in shape. [BCEWithLogits] is more exact: it takes scores.
//
//asyncgen:api op batch
//go:noinline
func BCELoss(pred, targets *tensor.Tensor) *tensor.Tensor { return Loss{}.BCE(pred, targets) }

// BCE returns the binary cross-entropy of targets and pred, both probabilities from 0 to 1, reduced:
// -t·log(p) - (1-t)·log(1-p) of each element. A logarithm that is less than -100 counts as -100, as in
// PyTorch; its gradient is 0. It panics if pred and targets differ in shape.
//
//asyncgen:api op batch none
//go:noinline
func (l Loss) BCE(pred, targets *tensor.Tensor) *tensor.Tensor {
	mustEqual("BCELoss", pred, targets)
	return l.fused(entropy, pred, targets)
}

var entropy = tensor.Fuse("BCELoss", 2, func(x ...*kernel.Expr) *kernel.Expr {
	one, least := number(1, x[0]), number(math.Exp(-100), x[0])
	bounded := func(p, log *kernel.Expr) *kernel.Expr {
		return kernel.Where(kernel.Le(p, least), number(-100, p), log)
	}
	yes := bounded(x[0], kernel.Log(x[0]))
	no := bounded(kernel.Sub(one, x[0]), kernel.Log1p(kernel.Neg(x[0])))
	return kernel.Neg(kernel.Add(kernel.Mul(x[1], yes), kernel.Mul(kernel.Sub(one, x[1]), no)))
})

// CosineSimilarity returns the cosines of the angles between vectors of a and b along the last axis: the
// shape is that of a and b, broadcast, without it. A norm of less than 1e-8 counts as 1e-8. It panics if
// a and b do not fit, or if one has no axes.
//
//asyncgen:api op batch
//go:noinline
func CosineSimilarity(a, b *tensor.Tensor) *tensor.Tensor {
	if a.Rank() == 0 || b.Rank() == 0 {
		wrong("CosineSimilarity", "the shapes are %v and %v, want vectors along the last axis", a.Shape(), b.Shape())
	}
	dot := product.Sum([]int{-1}, a, b)
	as, bs := product.Sum([]int{-1}, a, a), product.Sum([]int{-1}, b, b)
	defer tensor.Dead(dot, as, bs)
	return cosine.Of(dot, as, bs)
}

var (
	product = tensor.Fuse("CosineSimilarity", 2, func(x ...*kernel.Expr) *kernel.Expr { return kernel.Mul(x[0], x[1]) })
	cosine  = tensor.Fuse("CosineSimilarity", 3, func(x ...*kernel.Expr) *kernel.Expr {
		root := func(square *kernel.Expr) *kernel.Expr { return kernel.Sqrt(kernel.Max(square, number(1e-16, square))) }
		return kernel.Div(x[0], kernel.Mul(root(x[1]), root(x[2])))
	})
)

// CosineEmbedding returns the mean of [Loss.CosineEmbedding] of the zero Loss, as a tensor without axes.
//
//asyncgen:api op batch
//go:noinline
func CosineEmbedding(a, b, targets *tensor.Tensor) *tensor.Tensor {
	return Loss{}.CosineEmbedding(a, b, targets)
}

// CosineEmbedding returns the losses of pairs of vectors of a and b along the last axis, reduced. With
// the cosine c of [CosineSimilarity], the loss of a pair is 1-c if its target is greater than 0, such
// as 1, and max(c-Margin, 0) otherwise, such as for -1. It panics if a and b differ in shape, or if
// targets does not have a number for each pair.
//
//asyncgen:api op batch none
//go:noinline
func (l Loss) CosineEmbedding(a, b, targets *tensor.Tensor) *tensor.Tensor {
	mustEqual("CosineEmbedding", a, b)
	if s := a.Shape(); len(s) == 0 || !targets.Shape().Equal(s[:len(s)-1]) {
		wrong("CosineEmbedding", "the vectors have shape %v and the targets %v, want a number for each vector along the last axis", s, targets.Shape())
	}
	c, margin := CosineSimilarity(a, b), like(a).Scalar(l.Margin)
	defer tensor.Dead(c, margin)
	return l.fused(apart, c, targets, margin)
}

var apart = tensor.Fuse("CosineEmbedding", 3, func(x ...*kernel.Expr) *kernel.Expr {
	zero := number(0, x[0])
	return kernel.Where(kernel.Gt(x[1], zero), kernel.Sub(number(1, x[0]), x[0]), kernel.Max(kernel.Sub(x[0], x[2]), zero))
})

// KLDiv returns the mean of [Loss.KLDiv] over samples, as a tensor without axes, which PyTorch calls
// batchmean. It panics if logs and target differ in shape or have no axes.
//
//asyncgen:api op batch
//go:noinline
func KLDiv(logs, target *tensor.Tensor) *tensor.Tensor { return Loss{}.KLDiv(logs, target) }

// KLDiv returns the Kullback-Leibler divergence of the distributions target from those whose logarithms
// are logs, such as results of [LogSoftmax]: the sum of t·(log(t) - l) along the last axis, reduced
// over the others. Terms with a t of 0 are 0. It panics if logs and target differ in shape or have no
// axes.
//
//asyncgen:api op batch none
//go:noinline
func (l Loss) KLDiv(logs, target *tensor.Tensor) *tensor.Tensor {
	mustEqual("KLDiv", logs, target)
	if logs.Rank() == 0 {
		wrong("KLDiv", "the input is a number, want a distribution along the last axis")
	}
	return l.reduce(divergence.Sum([]int{-1}, logs, target))
}

var divergence = tensor.Fuse("KLDiv", 2, func(x ...*kernel.Expr) *kernel.Expr {
	zero := number(0, x[0])
	return kernel.Where(kernel.Eq(x[1], zero), zero, kernel.Mul(x[1], kernel.Sub(kernel.Log(x[1]), x[0])))
})

// fused returns f of x, reduced.
func (l Loss) fused(f *tensor.Fused, x ...*tensor.Tensor) *tensor.Tensor {
	switch l.Reduction {
	case Sum:
		return f.Sum(nil, x...)
	case None:
		return f.Of(x...)
	}
	return f.Mean(nil, x...)
}

// reduce returns x reduced, and lets go of x.
func (l Loss) reduce(x *tensor.Tensor) *tensor.Tensor {
	if l.Reduction == None {
		return x
	}
	defer tensor.Dead(x)
	if l.Reduction == Sum {
		return x.Sum()
	}
	return x.Mean()
}

func mustEqual(name string, pred, target *tensor.Tensor) {
	if p, t := pred.Shape(), target.Shape(); !p.Equal(t) {
		wrong(name, "predictions have shape %v, targets %v", p, t)
	}
}

// CrossEntropy returns the mean cross-entropy of samples, as a tensor without axes: the mean of
// -log(p), where p is the probability that scores give the right class. The scores of a sample are a
// vector along the last axis, and its probabilities their Softmax. labels are int64, one for each
// sample. A label that is negative, or not below the number of scores, is an error that travels with
// the result. CrossEntropy panics with a [tensor.Mistake] if labels are not int64, or if their axes
// aren't those of scores without the last.
//
//asyncgen:api op batch fails
//go:noinline
func CrossEntropy(scores, labels *tensor.Tensor) *tensor.Tensor {
	return Loss{}.CrossEntropy(scores, labels)
}

// CrossEntropy is the function [CrossEntropy] with Weights, Smoothing, labels to Ignore and a Reduction
// over samples.
//
//asyncgen:api op batch fails none
//go:noinline
func (l Loss) CrossEntropy(scores, labels *tensor.Tensor) *tensor.Tensor {
	l.mustLabel("CrossEntropy", scores, labels)
	logs := scores.LogSoftmax(-1)
	defer tensor.Dead(logs)
	return l.ofLogs(logs, labels)
}

// NLLLoss returns the mean of the negative logarithms that logs, such as results of [LogSoftmax], have
// for the right classes: [CrossEntropy] without its Softmax.
//
//asyncgen:api op batch fails
//go:noinline
func NLLLoss(logs, labels *tensor.Tensor) *tensor.Tensor { return Loss{}.NLL(logs, labels) }

// NLL is [NLLLoss] with Weights, Smoothing, labels to Ignore and a Reduction over samples.
//
//asyncgen:api op batch fails none
//go:noinline
func (l Loss) NLL(logs, labels *tensor.Tensor) *tensor.Tensor {
	l.mustLabel("NLLLoss", logs, labels)
	return l.ofLogs(logs, labels)
}

// ofLogs returns the losses of samples whose classes have the given logarithms of probabilities, reduced.
func (l Loss) ofLogs(logs, labels *tensor.Tensor) *tensor.Tensor {
	if l.Smoothing == 0 && l.Weights == nil && len(l.Ignore) == 0 {
		right := logs.PickClasses(labels)
		reduced := l.reduce(right)
		defer tensor.Dead(reduced)
		return reduced.Neg()
	}
	counts, labels := l.counted(labels)
	defer tensor.Dead(labels)
	if counts != nil {
		defer tensor.Dead(counts)
	}
	each := l.weigh(logs, labels)
	if l.Reduction == Mean && (counts != nil || l.Weights != nil) {
		weights := l.weightsOf(logs, labels)
		defer tensor.Dead(weights)
		sum, all := sumWhere(counts, each), sumWhere(counts, weights)
		defer tensor.Dead(each, sum, all)
		return sum.Div(all)
	}
	if counts != nil {
		defer tensor.Dead(each)
		each = zeroUnless(counts, each)
	}
	return l.reduce(each)
}

// counted returns which samples count, or nil if all do, and labels with 0 for the others.
func (l Loss) counted(labels *tensor.Tensor) (counts, safe *tensor.Tensor) {
	if len(l.Ignore) == 0 {
		return nil, labels.As(tensor.Int64)
	}
	for i, label := range l.Ignore {
		ignored := tensor.On(labels.Device()).FullInt(label)
		differs := labels.Ne(ignored)
		tensor.Dead(ignored)
		if i == 0 {
			counts = differs
			continue
		}
		both := counts.And(differs)
		tensor.Dead(counts, differs)
		counts = both
	}
	zero := tensor.On(labels.Device()).FullInt(0)
	defer tensor.Dead(zero)
	return counts, tensor.Where(counts, labels, zero)
}

// weigh returns the loss of each sample, with weights and smoothing.
func (l Loss) weigh(logs, labels *tensor.Tensor) *tensor.Tensor {
	right := logs.PickClasses(labels)
	if l.Weights != nil {
		before, weights := right, l.weightsOf(logs, labels)
		right = before.Mul(weights)
		tensor.Dead(before, weights)
	}
	one := right.MulScalar(l.Smoothing - 1)
	tensor.Dead(right)
	if l.Smoothing == 0 {
		return one
	}
	all := logs.As(logs.DType())
	if l.Weights != nil {
		before := all
		all = before.Mul(l.Weights)
		tensor.Dead(before)
	}
	sum := all.Sum(-1)
	y := one.AddScaled(sum, -l.Smoothing/float64(max(logs.Dim(-1), 1)))
	tensor.Dead(one, all, sum)
	return y
}

// weightsOf returns the weights of samples.
func (l Loss) weightsOf(logs, labels *tensor.Tensor) *tensor.Tensor {
	if l.Weights == nil {
		return tensor.On(logs.Device()).As(logs.DType()).Ones(labels.Shape()...)
	}
	return l.Weights.TakeClasses(0, labels)
}

// zeroUnless returns x where counts is true, and 0 elsewhere.
func zeroUnless(counts, x *tensor.Tensor) *tensor.Tensor {
	zero := tensor.On(x.Device()).As(x.DType()).Scalar(0)
	defer tensor.Dead(zero)
	return tensor.Where(counts, x, zero)
}

// sumWhere returns the sum of x where counts is true, or of all if it is nil.
func sumWhere(counts, x *tensor.Tensor) *tensor.Tensor {
	if counts == nil {
		return x.Sum()
	}
	kept := zeroUnless(counts, x)
	defer tensor.Dead(kept)
	return kept.Sum()
}

// mustLabel panics unless there is a label for each sample, and a weight for each class if there are weights.
func (l Loss) mustLabel(name string, scores, labels *tensor.Tensor) {
	s, of := scores.Shape(), labels.Shape()
	switch {
	case len(s) > 0 && of.Equal(s[:len(s)-1]) && labels.DType() == tensor.Int64:
	case len(s) > 0 && of.Equal(s):
		wrong(name, "the labels are %v%v, as the scores, want the number of a class for each sample, int64%v: of one-hot rows that is ArgMax(-1)",
			labels.DType(), of, s[:len(s)-1])
	case len(s) > 0 && of.Equal(s[:len(s)-1]):
		wrong(name, "the labels are %v, want int64: convert with As", labels.DType())
	default:
		wrong(name, "the scores have shape %v and the labels %v, want a label for each vector of scores along the last axis", s, of)
	}
	if l.Smoothing < 0 || l.Smoothing > 1 {
		wrong(name, "a Smoothing of %v, want 0 to 1", l.Smoothing)
	}
	if l.Weights != nil && !slices.Equal(l.Weights.Shape(), s[len(s)-1:]) {
		wrong(name, "the Weights have shape %v, want one for each of %d classes", l.Weights.Shape(), s[len(s)-1])
	}
}
