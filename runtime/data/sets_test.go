package data_test

import (
	"errors"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/runtime/data"
)

// Both parts of a split together are the whole, in order; which is which depends on the seed alone.
func TestSplit(t *testing.T) {
	set := counted{n: 50}
	for _, share := range []float64{0, 0.3, 0.5, 1} {
		a, b := data.Split(set, share, 1)
		all := slices.Concat(a.Index, b.Index)
		if a.Len() != int(50*share+0.5) || !slices.IsSorted(a.Index) || !slices.IsSorted(b.Index) || !isPermutation(all, 50) {
			t.Errorf("%v: %v and %v", share, a.Index, b.Index)
		}
	}
	a, _ := data.Split(set, 0.5, 1)
	again, _ := data.Split(set, 0.5, 1)
	other, _ := data.Split(set, 0.5, 2)
	if !slices.Equal(a.Index, again.Index) || slices.Equal(a.Index, other.Index) {
		t.Errorf("%v, then %v, with another seed %v", a.Index, again.Index, other.Index)
	}
	var got []int64
	for b, err := range data.NewLoader(a, 10).All() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, samples(t, b)...)
	}
	for i, v := range got {
		if int(v) != a.Index[i] {
			t.Errorf("sample %d of the part is %d, want %d", i, v, a.Index[i])
		}
	}

	class := func(i int) int { return max(i-39, 0) / 5 } // 44 of class 0, 5 of class 1, 1 of class 2
	a, b := data.SplitBy(set, 0.6, 1, class)
	count := func(s *data.Subset[float32, int64]) map[int]int {
		n := map[int]int{}
		for _, i := range s.Index {
			n[class(i)]++
		}
		return n
	}
	if in, out := count(a), count(b); !maps.Equal(in, map[int]int{0: 26, 1: 3, 2: 1}) || !maps.Equal(out, map[int]int{0: 18, 1: 2}) {
		t.Errorf("by class: %v and %v", in, out)
	}
}

func isPermutation(all []int, n int) bool {
	all = slices.Sorted(slices.Values(all))
	for i, v := range all {
		if i != v {
			return false
		}
	}
	return len(all) == n
}

// A sequence becomes a data set, or the error that it has.
func TestCollect(t *testing.T) {
	broken := errors.New("broken")
	seq := func(end error, lengths ...int) iter.Seq2[data.Sample[float32, int64], error] {
		return func(yield func(data.Sample[float32, int64], error) bool) {
			buffer := make([]float32, 4)
			for i, n := range lengths {
				buffer[0], buffer[1] = float32(i), -float32(i)
				if !yield(data.Sample[float32, int64]{X: buffer[:n], Y: []int64{int64(i)}}, nil) {
					return
				}
			}
			if end != nil {
				yield(data.Sample[float32, int64]{}, end)
			}
		}
	}
	set, err := data.Collect(seq(nil, 2, 2, 2), []int{2, 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := epoch(t, data.NewLoader(set, 2)); !reflect.DeepEqual(got, [][]int64{{0, 1}, {2}}) {
		t.Errorf("collected %v", got)
	}
	if set, err := data.Collect(seq(nil), []int{2}, nil); err != nil || set.Len() != 0 || data.NewLoader(set, 2).Len() != 0 {
		t.Errorf("nothing: %v", err)
	}
	if _, err := data.Collect(seq(broken, 2, 2), []int{2}, nil); !errors.Is(err, broken) || !strings.Contains(err.Error(), "sample 2") {
		t.Errorf("a sequence that breaks: %v", err)
	}
	if _, err := data.Collect(seq(nil, 2, 3), []int{2}, nil); err == nil || !strings.Contains(err.Error(), "sample 1 has 3 and 1 elements") {
		t.Errorf("a sample of another length: %v", err)
	}
}

// Each sample is validated with once, and trained with otherwise.
func TestFolds(t *testing.T) {
	for n := 2; n < 12; n++ {
		for k := 2; k <= n; k++ {
			var valid []int
			parts := 0
			for train, v := range data.Folds(counted{n: n}, k, 5) {
				if !isPermutation(slices.Concat(train.Index, v.Index), n) || v.Len() < n/k || v.Len() > n/k+1 {
					t.Errorf("%d parts of %d: %v and %v", k, n, train.Index, v.Index)
				}
				valid = append(valid, v.Index...)
				parts++
			}
			if parts != k || !isPermutation(valid, n) {
				t.Errorf("%d parts of %d: %d with %v", k, n, parts, valid)
			}
		}
	}
	for range data.Folds(counted{n: 5}, 3, 1) {
		break
	}
}

func TestText(t *testing.T) {
	a := data.NewAlphabet("hello wörld\xff")
	ids, err := a.Encode("wörld\xfe")
	if err != nil || a.Len() != 10 || a.Decode(ids) != "wörld\uFFFD" {
		t.Errorf("%d characters; %v, %v, %q", a.Len(), ids, err, a.Decode(ids))
	}
	if _, err := a.Encode("hex"); err == nil || err.Error() != `data: encode: 'x' at byte 2 is not in the alphabet` {
		t.Errorf("not in the alphabet: %v", err)
	}

	for _, c := range []struct {
		text      string
		n, stride int
		want      [][2]string
	}{
		{"", 2, 0, nil},
		{"ab", 2, 0, nil},
		{"abc", 2, 0, [][2]string{{"ab", "bc"}}},
		{"abcd", 2, 0, [][2]string{{"ab", "bc"}}},
		{"abcde", 2, 0, [][2]string{{"ab", "bc"}, {"cd", "de"}}},
		{"abcde", 2, 1, [][2]string{{"ab", "bc"}, {"bc", "cd"}, {"cd", "de"}}},
		{"abcdef", 1, 3, [][2]string{{"a", "b"}, {"d", "e"}}},
	} {
		set := data.Windows([]byte(c.text), c.n, c.stride)
		var got [][2]string
		for b, err := range data.NewLoader(set, 1).All() {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, [2]string{bytesOf(b.X.Int64s()), bytesOf(b.Y.Int64s())})
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("windows of %d of %q, %d apart: %q, want %q", c.n, c.text, c.stride, got, c.want)
		}
	}
}

func bytesOf(ids []int64) string {
	var b []byte
	for _, id := range ids {
		b = append(b, byte(id))
	}
	return string(b)
}
