package fuzz

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A third of the programs is tried, instead of with some rewrites, with large matrices where there is little memory: as much as the
// program needs as written, give or take a fifth, and a MiB. It has to do there what it does otherwise, and so has the program as rewritten. Nobody else
// judges that: the interpreter does not know in which order the library adds so many numbers.

const (
	largeCols  = 1 << 15 // of a matrix of two rows in float32: 256 KiB
	largeMats  = 12      // and iterations over some other range
	largeSlack = 1 << 20 // what a few results more take that lie between others
	largeTime  = 20 * time.Second
)

// isTight reports whether p is tried like that.
func (p *program) isTight() bool { return p.kept == nil && p.seed%3 == 0 }

// large returns p for large matrices.
func (p *program) large() *program {
	q := *p
	q.cols = largeCols
	q.inputs = nil
	for _, in := range p.inputs[:1] {
		many := *in
		many.Mats, many.N = largeMats, largeMats
		q.inputs = append(q.inputs, &many)
	}
	return &q
}

// largeSettings are where these programs run: each on one of them.
var largeSettings = []setting{{"large, on the CPU", "async", "cpu", ""}, {"large, on sim:0", "async", "sim:0", ""}}

// tight compares the large form of p with itself as rewritten, within the memory that it needs. It reports whether it could: a program may take too
// long.
func (b *batch) tight(ctx context.Context, p *program) (d *Difference, tried bool, err error) {
	p = p.large()
	s := largeSettings[p.seed/3%2]
	run := func(variant string, limit int64) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, largeTime)
		defer cancel()
		answers, err := b.exec(ctx, s, []job{p.job(variant)}, fmt.Sprint("ASYNCGEN_MEMORY=", limit))
		if err != nil || len(answers) == 0 {
			return fmt.Sprint(err), ctx.Err()
		}
		return answers[0].Text, nil
	}
	const ample = 1 << 28
	want, err := run("large, as written", ample)
	if err != nil {
		return nil, false, notEnded(err)
	}
	// Where the program does not live is slow to find out: all its results fail. So this looks from above, in steps of a fifth.
	limit := int64(ample)
	for next := int64(48 << 20); ; next = next / 5 * 4 {
		got, err := run("large, as written", next)
		if err != nil {
			return nil, false, notEnded(err)
		}
		if got != want {
			break
		}
		limit = next
	}
	if limit == ample {
		return nil, false, nil
	}
	limit += largeSlack
	got, err := run("large, window 64", limit)
	if got == want {
		return nil, true, nil
	}
	if err != nil {
		got = err.Error()
	}
	return &Difference{Seed: p.seed, Variant: fmt.Sprintf("%s, with %d bytes", s.name, limit), Source: p.listing(), Text: differences(want, got), program: p}, true, nil
}

// notEnded returns err unless that is that a program took too long.
func notEnded(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}
