package main

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device/wire"
	"github.com/asyncgen/asyncgen/device/wire/wiretest"
	"github.com/asyncgen/asyncgen/runtime/data"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// What a text knows from caches is what all its characters give at once, also when the first half was forgotten.
func TestExtend(t *testing.T) {
	tensor.Seed(1)
	model := newGPT(config{width: 16, heads: 2, blocks: 2, places: 8}, 5)
	model.Forward(tensor.RandInt(0, 5, 1, 8))
	use := nn.Frozen(model)
	text := use.newText()
	for i := range 30 {
		n := 1
		if i == 0 {
			n = 3 // the prompt
		}
		got := text.extend(tensor.RandInt(0, 5, 1, n))
		all := use.Forward(text.recent)
		want := all.Slice(1, all.Dim(1)-1, all.Dim(1)).Squeeze(1)
		if d := got.Sub(want).Abs().Max().Item(); !(d < 1e-5) {
			t.Fatalf("after %d steps, with %d characters, scores differ by %v", i, text.recent.Dim(1), d)
		}
	}
}

// A text ends behind the given one, after as many characters as were asked for, or when the context does; what was
// written before is there.
func TestWrite(t *testing.T) {
	tensor.Seed(1)
	letters := data.NewAlphabet("ab.")
	model := newGPT(config{width: 8, heads: 1, blocks: 1, places: 8}, letters.Len())
	model.Forward(tensor.RandInt(0, 3, 1, 8))
	use := nn.Frozen(model)

	var out strings.Builder
	n, err := write(t.Context(), &out, use, letters, "ab", ".", 1000)
	if text := out.String(); err != nil || n != len(text) || strings.Index(text, ".") != n-1 {
		t.Errorf("%d characters, %q, %v", n, text, err)
	}
	out.Reset()
	if n, err := write(t.Context(), &out, use, letters, "ab", "no such end", 25); n != 25 || err != nil || out.Len() != 25 {
		t.Errorf("%d characters, %q, %v", n, &out, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c := &canceller{cancel: cancel, after: 7}
	if n, err := write(ctx, c, use, letters, "ab", "no such end", 1000); n != 7 || c.Len() != 7 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d characters, %q, %v", n, c.String(), err)
	}
	if _, err := write(t.Context(), &out, use, letters, "xyz", ".", 1); err == nil {
		t.Error("it continued what has other characters")
	}
}

// What can't be learned from or continued is refused before the training.
func TestRefused(t *testing.T) {
	small := config{width: 8, heads: 1, blocks: 1, places: 4}
	for what, err := range map[string]error{
		"no steps":                run(t.Context(), nil, "ababa", small, 0, false, "a", ".", 1),
		"an empty text":           run(t.Context(), nil, "", small, 1, false, "a", ".", 1),
		"a text that is short":    run(t.Context(), nil, "abab", small, 1, false, "a", ".", 1),
		"an empty prompt":         run(t.Context(), nil, "ababa", small, 1, false, "", ".", 1),
		"a prompt of other signs": run(t.Context(), nil, "ababa", small, 1, false, "c", ".", 1),
	} {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	for _, steps := range []int{1, 9} {
		if err := run(t.Context(), nil, "ababa", small, steps, false, "a", ".", 1); err != nil {
			t.Errorf("%d steps: %v", steps, err)
		}
	}
}

// A canceller cancels after so many writes: each character is written as soon as it is known.
type canceller struct {
	strings.Builder
	cancel context.CancelFunc
	after  int
}

func (c *canceller) Write(p []byte) (int, error) {
	if c.after--; c.after == 0 {
		c.cancel()
	}
	return c.Builder.Write(p)
}

// A loss goes down, and a cancelled training ends.
func TestTrain(t *testing.T) {
	tensor.Seed(1)
	letters := data.NewAlphabet("ab")
	ids, err := letters.Encode(strings.Repeat("ab", 200))
	if err != nil {
		t.Fatal(err)
	}
	model := newGPT(config{width: 16, heads: 2, blocks: 1, places: 8}, letters.Len())
	set := data.Windows(ids, 8, 1)
	if err := train(t.Context(), model, data.NewLoader(set, 16), 60); err != nil {
		t.Fatal(err)
	}
	x, y := make([]int64, 8), make([]int64, 8)
	set.At(0, x, y)
	scores := nn.Frozen(model).Forward(tensor.From(x, 1, 8))
	if loss := nn.CrossEntropy(scores, tensor.From(y, 1, 8)).Item(); !(loss < math.Ln2/4) {
		t.Errorf("loss %v of a text that only alternates", loss)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := train(ctx, model, data.NewLoader(set, 16), 60); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := trainCaptured(ctx, model, data.NewLoader(set, 16), 60); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled, captured: %v", err)
	}
}

// Over ranks it learns what it learns alone, within rounding, and the job ends.
func TestTrainOver(t *testing.T) {
	letters := data.NewAlphabet("ab.")
	ids, err := letters.Encode(strings.Repeat("ab.ba", 100))
	if err != nil {
		t.Fatal(err)
	}
	set := data.Windows(ids, 8, 4)
	after := func(train func(model *gpt, batches *data.Loader) error) float64 {
		tensor.Seed(1)
		model := newGPT(config{width: 16, heads: 2, blocks: 1, places: 8}, letters.Len())
		if err := train(model, data.NewLoader(set, 16, data.Options{Shuffle: true, DropLast: true})); err != nil {
			t.Fatal(err)
		}
		x, y := make([]int64, 8), make([]int64, 8)
		set.At(0, x, y)
		return nn.CrossEntropy(nn.Frozen(model).Forward(tensor.From(x, 1, 8)), tensor.From(y, 1, 8)).Item()
	}
	want := after(func(model *gpt, batches *data.Loader) error { return train(t.Context(), model, batches, 10) })
	got := after(func(model *gpt, batches *data.Loader) error {
		job, err := wire.NewJob(wiretest.New(1).Rank(0), wire.Options{})
		if err != nil {
			return err
		}
		return trainOver(t.Context(), job, model, batches, 10)
	})
	if !(math.Abs(got-want) < 1e-4) || wire.InUse() {
		t.Errorf("over ranks, the loss is %v, and alone %v; a job is left: %t", got, want, wire.InUse())
	}
}

// A text that is too short to learn from is an error, and not a loop without an end.
func TestShortText(t *testing.T) {
	if err := run(t.Context(), nil, "a short text", config{width: 8, heads: 1, blocks: 1, places: 32}, 1, false, "a", ".", 1); err == nil {
		t.Error("it learns from 12 characters")
	}
}
