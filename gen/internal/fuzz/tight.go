package fuzz

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// A third of the programs is tried, instead of with some rewrites, with large matrices where there
// is little memory: hardly more than the program needs as written. It has to do there what it does
// otherwise, and so has the program as rewritten. Nobody else judges that: the interpreter does not
// know in which order the library adds so many numbers.

const (
	largeCols = 1 << 15 // of a matrix of two rows in float32: 256 KiB
	largeMats = 12      // and iterations over some other range
	largeTime = 20 * time.Second
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

// tight compares the large form of p with itself as rewritten, within the memory that it needs and
// an eighth and two matrices: of 400 programs that were measured one needed two matrices more when
// rewritten, three needed one, and the others none. What they need is known to an eighth of what
// they get. Functions of rows may need one matrix more each: they compute all rows at once, and if one finds no memory,
// all have failed. It reports whether it could: a program may take too long, or live with no memory.
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
	const original, ample = "large, as written", 1 << 28
	want, err := run(original, ample)
	if err != nil || strings.Contains(want, "out of device memory") {
		return nil, false, notEnded(err)
	}
	given := p.bytes() * (largeMats + 3) // with those that the runner keeps
	dies, lives := given, given
	for dies == lives {
		if lives *= 2; lives > ample {
			return nil, false, nil
		}
		got, err := run(original, lives)
		if err != nil {
			return nil, false, notEnded(err)
		}
		if got != want {
			dies = lives
		}
	}
	for lives-dies > given/8 {
		next := (dies + lives) / 2
		got, err := run(original, next)
		if err != nil {
			return nil, false, notEnded(err)
		}
		if got == want {
			lives = next
		} else {
			dies = next
		}
	}
	rows, err := b.rowFunctions(p)
	if err != nil {
		return nil, false, err
	}
	limit := lives + lives/8 + (2+rows)*p.bytes()
	got, err := run("large, window 64", limit)
	if got == want {
		return nil, true, nil
	}
	if err != nil {
		got = err.Error()
	} else if again, err := run(original, limit); again != want {
		return nil, false, notEnded(err) // more memory is not always better: what is free lies elsewhere
	}
	return &Difference{Seed: p.seed, Variant: fmt.Sprintf("%s, with %d bytes", s.name, limit), Source: p.listing(), Text: differences(want, got), program: p}, true, nil
}

// rowFunctions returns how many functions of rows there are in what was made of p.
func (b *batch) rowFunctions(p *program) (n int64, err error) {
	text, err := os.ReadFile(filepath.Join(b.dir, "some", "in_async.go"))
	if err != nil {
		return 0, err
	}
	body := regexp.MustCompile(`(?ms)^func (\([^)]*\) )?` + p.name + `Async\b.*?^}`).Find(text)
	return int64(bytes.Count(body, []byte(" asyncrt.RowOf)"))), nil
}

// bytes is how many each matrix takes that p gets.
func (p *program) bytes() int64 {
	n := int64(p.rows) * int64(p.cols)
	if p.dtype == f32 {
		return 4 * n
	}
	return 8 * n
}

// notEnded returns err unless that is that a program took too long.
func notEnded(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}
