// Package asynctest is what tests of generated functions call. It compares a
// function as written with its rewritten version, on the same inputs, with
// and without injected failures. It makes no statement about speed.
//
//	func TestTrainAsync(t *testing.T) {
//		asynctest.Same(t, Train, TrainAsync, asyncgenTrainArgs)
//	}
package asynctest

import (
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device/report"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Runs is how many inputs [Same] tries. Each also runs with one tensor after
// the other failing.
const Runs = 5

// maxFaults bounds how many tensors of one input are made to fail in turn.
const maxFaults = 12

// Same checks that original and generated, two functions of one type, do the same. They must leave the
// same output on every writer they are given and on os.Stdout and os.Stderr, and the same results and
// arguments, bit for bit; or the same output and then the same panic. Errors may differ in the
// operation that they name and in the line that enqueued it, but not in type and cause.
//
// args is a function that makes arguments out of random numbers, with one
// result for each parameter: func(r *rand.Rand) (*Model, []Batch, int). A
// method expression has its receiver as the first parameter. If args is nil,
// arguments are made by type: square tensors of one size, short slices, small
// numbers, writers. What can't be made so, Same reports.
//
// Every argument that leads to tensors also comes with one of them failed, so
// that reading what depends on it panics. At least one run has to end with
// results rather than a panic: equal panics alone prove nothing.
func Same(t testing.TB, original, generated, args any) {
	t.Helper()
	if want, got := reflect.TypeOf(original), reflect.TypeOf(generated); want != got {
		t.Fatalf("asynctest: the original is a %v, the generated function a %v", want, got)
	}
	c, err := newCapture()
	if err != nil {
		t.Fatalf("asynctest: %v", err)
	}
	defer c.close()
	finished := 0
	for seed := range uint64(Runs) {
		faults := 1
		for fault := 0; fault < faults; fault++ {
			m := &maker{args: args, seed: seed, fault: fault, capture: c}
			a, err := m.run(original)
			if err != nil {
				t.Fatalf("asynctest: %v", err)
			}
			b, _ := m.run(generated)
			if !same(a.text, b.text) {
				t.Fatalf("asynctest: seed %d, failing tensor %d (0: none): outcomes differ; if the original is newer than the generated function, run go generate\n%s", seed, fault, differences(a.text, b.text))
			}
			if !a.panicked {
				finished++
			}
			faults = min(m.tensors, maxFaults) + 1
		}
	}
	if finished == 0 {
		t.Fatalf("asynctest: no run ended with results: write a function that makes arguments of the right shapes")
	}
}

// differences returns the lines in which two outcomes differ.
func differences(original, generated string) string {
	a, b := strings.Split(where.ReplaceAllString(original, ""), "\n"), strings.Split(where.ReplaceAllString(generated, ""), "\n")
	var text strings.Builder
	for i := range max(len(a), len(b)) {
		x, y := "nothing", "nothing"
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			fmt.Fprintf(&text, "original:  %s\ngenerated: %s\n", x, y)
		}
	}
	return text.String()
}

// where is the part of an error that differs between the two functions.
var where = regexp.MustCompile(report.Where)

// same reports whether two outcomes are the same, apart from where. It compares them as they are first:
// to look for where takes longer than most runs.
func same(original, generated string) bool {
	return original == generated || where.ReplaceAllString(original, "") == where.ReplaceAllString(generated, "")
}

// An outcome is all that a caller can see of one call.
type outcome struct {
	text     string
	panicked bool
}

// run calls f with new arguments.
func (m *maker) run(f any) (o outcome, err error) {
	tensor.Seed(m.seed)
	m.rand, m.tensors, m.log = rand.New(rand.NewPCG(m.seed, 1)), 0, nil
	fn := reflect.ValueOf(f)
	var in, results []reflect.Value
	var failure string
	var argErr error
	printed, err := m.capture.of(func() {
		if in, argErr = m.arguments(fn.Type()); argErr != nil {
			return
		}
		defer func() {
			if p := recover(); p != nil {
				o.panicked, failure = true, panicText(p)
			}
		}()
		if fn.Type().IsVariadic() {
			results = fn.CallSlice(in)
		} else {
			results = fn.Call(in)
		}
	})
	if err = cmp.Or(argErr, err); err != nil {
		return o, err
	}
	d := newDumper()
	d.printf("output: %q\nprinted: %q\n", m.log, printed)
	if o.panicked {
		d.printf("panic: %s\n", failure)
	} else {
		for i, r := range results {
			d.printf("result %d: ", i)
			d.value(r)
			d.printf("\n")
		}
	}
	for i, a := range in {
		d.printf("argument %d afterwards: ", i)
		d.value(a)
		d.printf("\n")
	}
	o.text = d.String()
	return o, nil
}

// A capture is a file that stands for os.Stdout and os.Stderr, one for all runs: to make and remove
// a file takes longer than most of them.
type capture struct{ file *os.File }

func newCapture() (*capture, error) {
	file, err := os.CreateTemp("", "asynctest-")
	if err != nil {
		return nil, err
	}
	return &capture{file}, nil
}

func (c *capture) close() {
	c.file.Close()
	os.Remove(c.file.Name())
}

// of returns what f writes to os.Stdout and os.Stderr.
func (c *capture) of(f func()) (string, error) {
	out, errs := os.Stdout, os.Stderr
	os.Stdout, os.Stderr = c.file, c.file
	defer func() { os.Stdout, os.Stderr = out, errs }()
	f()
	return c.take()
}

// take empties the file.
func (c *capture) take() (string, error) {
	info, err := c.file.Stat()
	if err != nil || info.Size() == 0 {
		return "", err
	}
	text := make([]byte, info.Size())
	if _, err := c.file.ReadAt(text, 0); err != nil {
		return "", err
	}
	if err := c.file.Truncate(0); err != nil {
		return "", err
	}
	_, err = c.file.Seek(0, io.SeekStart)
	return string(text), err
}

// panicText is what has to be equal of a panic: the type, and the first cause.
func panicText(p any) string {
	err, ok := p.(error)
	if !ok {
		return fmt.Sprintf("%T: %v", p, p)
	}
	root := err
	for {
		u, ok := root.(interface{ Unwrap() error })
		if !ok || u.Unwrap() == nil {
			break
		}
		root = u.Unwrap()
	}
	return fmt.Sprintf("%T: %T: %v", err, root, root)
}
