package loopcall

import (
	"cmp"
	"slices"
	"sort"

	"batch"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// By way of a function that compares.

type byLoss []Batch

func (s byLoss) Len() int           { return len(s) }
func (s byLoss) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s byLoss) Less(i, j int) bool { return value(s[i]) < value(s[j]) }

func value(b Batch) float64 { return batch.Loss(w, b).Item() }

func byValue(a, b Batch) int { return cmp.Compare(value(a), value(b)) }

func sorts(data []Batch) {
	slices.SortFunc(data, byValue) // want `byValue waits for the device in each comparison \(.*\); read what is compared before, and sort by that`
	sort.Sort(byLoss(data))        // want `byLoss\(data\).Less waits for the device in each comparison`
	slices.SortFunc(data, func(a, b Batch) int {
		return cmp.Compare(value(a), value(b)) // want `value waits for the device in each comparison`
	})
	sort.Sort(sort.IntSlice{1})
}

// By way of recursion.

func leaves(depth int, b Batch) float64 {
	if depth == 0 {
		return value(b) // want `value waits for the device in each iteration`
	}
	return leaves(depth-1, b) + leaves(depth-1, b)
}

// By way of a method that reads a field.

type trial struct{ loss *tensor.Tensor }

func (t *trial) step(b Batch)   { t.loss = batch.Loss(w, b) }
func (t *trial) score() float64 { return t.loss.Item() }

func byScore(a, b *trial) int { return cmp.Compare(a.score(), b.score()) }

func byLossOf(a, b *tensor.Tensor) int { return cmp.Compare(a.Item(), b.Item()) }

func races(trials []*trial, ts []*tensor.Tensor, data []Batch) {
	for _, b := range data {
		for _, t := range trials {
			t.step(b)
		}
		slices.SortFunc(trials, func(a, b *trial) int {
			return cmp.Compare(a.score(), b.score()) // want `a.score waits for the device in each comparison`
		})
	}
	slices.SortFunc(trials, byScore) // want `byScore waits for the device in each comparison`
	slices.SortFunc(ts, byLossOf)    // want `byLossOf waits for the device in each comparison`
}
