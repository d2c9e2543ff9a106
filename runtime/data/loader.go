package data

import (
	"cmp"
	"context"
	"encoding"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"runtime"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Options say how a [Loader] makes batches. Each field may be zero.
type Options struct {
	// Shuffle gives each epoch an order of its own, which depends on Seed and on the number of the epoch only.
	Shuffle bool
	Seed    uint64
	// DropLast leaves out the last batch of an epoch if it has fewer samples than the others.
	DropLast bool
	// Workers is the number of goroutines that read samples; 0 stands for GOMAXPROCS. It changes no batch.
	Workers int
	// Prefetch is the number of batches that are made before the loop asks for them, beside the one it has; 0 stands
	// for 2. So many are in memory, or on their way to the device, at any time.
	Prefetch int
	// Device is where the tensors are. The zero Device is the default one.
	Device device.Device
	// Ranks says that so many processes share each batch, and that this one is Rank of them, from 0. Batches are made
	// of the same samples in the same order, whatever Ranks is. Of each, this process gets the Rank-th of Ranks equal
	// parts, and reads no other sample. The samples in all batches must be multiples of Ranks. 0 stands for 1.
	Rank, Ranks int
}

// A Loader makes batches of the samples of a [Dataset], epoch by epoch. In an epoch each sample is in one batch.
//
// A Loader has a position, which [Loader.All] starts from and moves on. Whoever restores it goes on with exactly the
// batches that would have followed. It is written by MarshalBinary and AppendBinary, and read by UnmarshalBinary.
//
// A Loader is for one goroutine at a time. It has goroutines only while a loop over [Loader.All] runs.
type Loader struct {
	options  Options
	batch    int // samples in a batch
	samples  int // in the data set
	room     func(n int) room
	position Position
	isInLoop bool
}

var (
	_ encoding.BinaryAppender    = (*Loader)(nil)
	_ encoding.BinaryMarshaler   = (*Loader)(nil)
	_ encoding.BinaryUnmarshaler = (*Loader)(nil)
)

// A Position says which batch of a [Loader] is the next.
type Position struct {
	Epoch int    // from 0
	Batch int    // in the epoch, from 0; [Loader.Len] is the end of the epoch
	Seed  uint64 // of the orders
}

// NewLoader returns a Loader of batches of the given number of samples, at position 0 of epoch 0. The last batch of an
// epoch has the samples that are left, unless options say otherwise. It panics with a [tensor.Mistake] if batch is less
// than 1, the length of set or an option is negative, there is no tensor of the shape of a batch, or ranks can't share
// the batches equally.
//
//asyncgen:api control
func NewLoader[X, Y device.Element](set Dataset[X, Y], batch int, options ...Options) *Loader {
	o := only("NewLoader", options)
	if batch < 1 {
		wrong("NewLoader", "batches of %d samples, want 1 or more", batch)
	}
	if o.Workers < 0 || o.Prefetch < 0 {
		wrong("NewLoader", "%d workers, %d batches in advance, want 0 or more", o.Workers, o.Prefetch)
	}
	n := set.Len()
	if n < 0 {
		wrong("NewLoader", "a set of %d samples", n)
	}
	o.Ranks = cmp.Or(o.Ranks, 1)
	if o.Ranks < 1 || o.Rank < 0 || o.Rank >= o.Ranks {
		wrong("NewLoader", "there is no rank %d of %d", o.Rank, o.Ranks)
	}
	for _, samples := range []int{batch, n % batch} {
		if samples%o.Ranks != 0 && !(o.DropLast && samples < batch) {
			wrong("NewLoader", "%d ranks can't share a batch of %d samples equally: take another number, or DropLast", o.Ranks, samples)
		}
	}
	o.Workers = min(cmp.Or(o.Workers, runtime.GOMAXPROCS(0)), max(n, 1))
	o.Prefetch = cmp.Or(o.Prefetch, 2)
	l := &Loader{options: o, batch: batch, samples: n, position: Position{Seed: o.Seed}}
	l.room = rooms(set, min(batch, n))
	return l
}

// only returns the options that a function was given, or none. It panics if there are more than one.
func only[T any](name string, options []T) (o T) {
	switch len(options) {
	case 0:
	case 1:
		o = options[0]
	default:
		wrong(name, "%d structs of options, want one", len(options))
	}
	return o
}

// Len returns the number of batches in an epoch.
//
//asyncgen:api pure
func (l *Loader) Len() int {
	if l.options.DropLast {
		return l.samples / l.batch
	}
	return l.samples/l.batch + min(l.samples%l.batch, 1)
}

// Position returns the position. In the body of a loop over [Loader.All] it is that of the batch after the one that the
// body has.
//
//asyncgen:api value
func (l *Loader) Position() Position { return l.position }

// Seek moves to a position. A loop over [Loader.All] that is under way goes on from there. Seek panics with a
// [tensor.Mistake] if there is no such position.
//
//asyncgen:api mutate
func (l *Loader) Seek(to Position) {
	if err := l.seek(to); err != nil {
		wrong("Seek", "%v", err)
	}
}

func (l *Loader) seek(to Position) error {
	if to.Epoch < 0 || to.Batch < 0 || to.Batch > l.Len() {
		return fmt.Errorf("there is no batch %d in epoch %d: epochs have %d batches", to.Batch, to.Epoch, l.Len())
	}
	tensor.Changing(cell{l})
	l.position = to
	return nil
}

// Cells lists the one cell of a Loader, which holds its position. So nn.Snapshot takes a Loader beside an optimiser.
//
//asyncgen:api meta
func (l *Loader) Cells() []tensor.Cell { return []tensor.Cell{cell{l}} }

// cell is the Cell of a loader's position.
type cell struct{ l *Loader }

// Value implements tensor.Cell. The tensor is never pending.
//
//go:noinline
func (c cell) Value() *tensor.Tensor {
	p := c.l.position
	return tensor.FromOn(device.CPU(), []int64{int64(p.Epoch), int64(p.Batch), int64(p.Seed)})
}

// Set implements tensor.Cell. It reads t, which doesn't wait if Value has made t.
//
//go:noinline
func (c cell) Set(t *tensor.Tensor) {
	v := t.Int64s()
	if len(v) != 3 {
		wrong("Set", "a position of %d numbers, want 3", len(v))
	}
	c.l.Seek(Position{int(v[0]), int(v[1]), uint64(v[2])})
}

// All is the sequence of the batches from the position to the end of the epoch. After it the position is at the
// beginning of the next epoch, so a program ranges over All once for each epoch. A loop that ends early leaves the
// position where it is: the next loop goes on with the batch after the last one.
//
// If a sample can't be read, the loop gets an error in place of its batch. It may go on; if it ends, the position stays
// at that batch. The error names the first such sample of the batch. If the dataset panics, the loop does, when it
// comes to that batch.
//
// The loop waits for batches that are not made yet, but not for the device. When it ends, in whatever way, it waits for
// the samples that are being read, and then the Loader has no goroutines. Only one loop at a time can be under way:
// another one panics with a [tensor.Mistake].
//
//asyncgen:api draw
func (l *Loader) All() iter.Seq2[Batch, error] { return l.AllContext(context.Background()) }

// AllContext is like All, but when ctx ends, the loop gets its error instead of the next batch, and is over.
//
//asyncgen:api draw
func (l *Loader) AllContext(ctx context.Context) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		if l.isInLoop {
			wrong("All", "a loop over the batches is under way")
		}
		l.isInLoop = true
		defer func() { l.isInLoop = false }()
		l.each(ctx, yield)
	}
}

// each calls yield with the batches from the position to the end of the epoch.
func (l *Loader) each(ctx context.Context, yield func(Batch, error) bool) {
	m := l.start()
	defer func() { m.stop() }()
	for l.position.Batch < l.Len() {
		if err := m.wait(ctx); err != nil {
			yield(Batch{}, err)
			return
		}
		here := l.position
		next := Position{here.Epoch, here.Batch + 1, here.Seed}
		b, err := m.next()
		if err == nil {
			l.move(next)
		}
		at := l.position
		if !yield(b, err) {
			return
		}
		switch {
		case l.position != at: // the body has moved it
			m.stop()
			m = l.start()
		case err != nil:
			l.move(next)
		}
	}
	l.move(Position{Epoch: l.position.Epoch + 1, Seed: l.position.Seed})
}

func (l *Loader) move(to Position) {
	tensor.Changing(cell{l})
	l.position = to
}

// order returns the numbers of the samples in the order of the epoch, or nil if that is their own.
func (l *Loader) order() []int {
	if !l.options.Shuffle {
		return nil // a set may have more samples than memory has numbers
	}
	return random(l.position.Seed, l.position.Epoch).Perm(l.samples)
}

// format is the first byte of what MarshalBinary writes.
const format = 1

// AppendBinary appends the position to b, and what it is a position of: the numbers of samples in the data set and in a
// batch, and whether they are shuffled, and the last batch dropped.
//
//asyncgen:api value
func (l *Loader) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, format)
	for _, v := range l.kind() {
		b = binary.AppendUvarint(b, v)
	}
	b = binary.AppendUvarint(b, uint64(l.position.Epoch))
	b = binary.AppendUvarint(b, uint64(l.position.Batch))
	return binary.AppendUvarint(b, l.position.Seed), nil
}

// kind is what positions depend on.
func (l *Loader) kind() [3]uint64 {
	flags := uint64(0)
	if l.options.Shuffle {
		flags |= 1
	}
	if l.options.DropLast {
		flags |= 2
	}
	return [3]uint64{uint64(l.samples), uint64(l.batch), flags}
}

// MarshalBinary returns what [Loader.AppendBinary] appends.
//
//asyncgen:api value
func (l *Loader) MarshalBinary() ([]byte, error) { return l.AppendBinary(nil) }

// UnmarshalBinary moves to a position that MarshalBinary has written, as [Loader.Seek] does. It returns an error, and
// stays where it is, if that is of a Loader whose batches are others, in number or size.
//
//asyncgen:api mutate
func (l *Loader) UnmarshalBinary(b []byte) error {
	if len(b) == 0 || b[0] != format {
		return errors.New("data: position of a loader: unknown format")
	}
	b = b[1:]
	var v [6]uint64
	for i := range v {
		n := 0
		if v[i], n = binary.Uvarint(b); n <= 0 {
			return errors.New("data: position of a loader: it is cut off")
		}
		b = b[n:]
	}
	if len(b) > 0 {
		return fmt.Errorf("data: position of a loader: %d bytes too many", len(b))
	}
	if got := [3]uint64(v[:3]); got != l.kind() {
		return fmt.Errorf("data: position of a loader: it is of %s, want one of %s", kindText(got), kindText(l.kind()))
	}
	if err := l.seek(Position{Epoch: int(v[3]), Batch: int(v[4]), Seed: v[5]}); err != nil {
		return fmt.Errorf("data: position of a loader: %w", err)
	}
	return nil
}

func kindText(k [3]uint64) string {
	text := fmt.Sprintf("%d samples in batches of %d", k[0], k[1])
	if k[2]&1 != 0 {
		text += ", shuffled"
	}
	if k[2]&2 != 0 {
		text += ", without the last batch"
	}
	return text
}
