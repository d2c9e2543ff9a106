package data

import (
	"encoding/binary"
	"iter"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/asyncgen/asyncgen/device"
)

// A Subset is the [Dataset] of some samples of another: its sample i is sample Index[i] of Set.
type Subset[X, Y device.Element] struct {
	Set   Dataset[X, Y]
	Index []int
}

// Len returns the number of samples.
//
//asyncgen:api pure
func (s *Subset[X, Y]) Len() int { return len(s.Index) }

// Shapes returns the shapes of one input and of one target.
//
//asyncgen:api pure
func (s *Subset[X, Y]) Shapes() (x, y []int) { return s.Set.Shapes() }

// At writes sample i to x and y.
//
//asyncgen:api control
func (s *Subset[X, Y]) At(i int, x []X, y []Y) error { return s.Set.At(s.Index[i], x, y) }

// Split divides the samples at random in two: a has a share of them, from 0 to 1, and b has the others. Which ones
// depends on the seed only. Both have them in the order of set. It panics with a [tensor.Mistake] if share is not from
// 0 to 1.
//
//asyncgen:api control
func Split[X, Y device.Element](set Dataset[X, Y], share float64, seed uint64) (a, b *Subset[X, Y]) {
	return split("Split", set, share, seed, func(int) int { return 0 })
}

// SplitBy is like [Split], but divides the samples of each class by themselves, so that each class has the same share
// in both parts, as far as that is possible. The function class returns the class of a sample. It is called for each
// sample once.
//
//asyncgen:api call 3 loop
func SplitBy[X, Y device.Element](set Dataset[X, Y], share float64, seed uint64, class func(i int) int) (a, b *Subset[X, Y]) {
	return split("SplitBy", set, share, seed, class)
}

// split is SplitBy for the function with the given name.
func split[X, Y device.Element](name string, set Dataset[X, Y], share float64, seed uint64, class func(i int) int) (a, b *Subset[X, Y]) {
	if !(share >= 0 && share <= 1) {
		wrong(name, "the share is %v, want a number from 0 to 1", share)
	}
	of := make(map[int][]int)
	var classes []int
	for i := range set.Len() {
		c := class(i)
		if of[c] == nil {
			classes = append(classes, c)
		}
		of[c] = append(of[c], i)
	}
	slices.Sort(classes)
	r := random(seed, -1)
	a, b = &Subset[X, Y]{Set: set}, &Subset[X, Y]{Set: set}
	for _, c := range classes {
		list := of[c]
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		n := int(math.Round(share * float64(len(list))))
		a.Index, b.Index = append(a.Index, list[:n]...), append(b.Index, list[n:]...)
	}
	slices.Sort(a.Index)
	slices.Sort(b.Index)
	return a, b
}

// Folds is the sequence of the k divisions of the samples in those to train with and those to validate with, in which
// each sample is among the latter once (cross-validation). Which ones depends on the seed only. The parts to validate
// with differ in length by one sample at most. Folds panics with a [tensor.Mistake] unless there are at least 2 parts,
// and as many samples.
//
//	for train, valid := range data.Folds(set, 5, 1) {
//
//asyncgen:api control
func Folds[X, Y device.Element](set Dataset[X, Y], k int, seed uint64) iter.Seq2[*Subset[X, Y], *Subset[X, Y]] {
	n := set.Len()
	if k < 2 || k > n {
		wrong("Folds", "%d parts of %d samples, want 2 or more, and a sample for each", k, n)
	}
	return func(yield func(train, valid *Subset[X, Y]) bool) {
		order := random(seed, -1).Perm(n)
		for i := range k {
			lo, hi := i*n/k, (i+1)*n/k
			train := &Subset[X, Y]{set, slices.Sorted(slices.Values(slices.Concat(order[:lo], order[hi:])))}
			if !yield(train, &Subset[X, Y]{set, slices.Sorted(slices.Values(order[lo:hi]))}) {
				return
			}
		}
	}
}

// random returns the random numbers of an epoch, or of a split, -1. Those of other epochs and seeds are independent of
// them.
func random(seed uint64, epoch int) *rand.Rand {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	binary.LittleEndian.PutUint64(key[8:], uint64(epoch))
	return rand.New(rand.NewChaCha8(key))
}
