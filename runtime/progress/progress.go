// Package progress shows how far a loop is, how fast it goes, and the latest values that the device has computed. It
// never waits for the device: a value is shown when it is known, some steps after the operation was enqueued.
//
//	bar := progress.New(len(batches), progress.Options{Label: "epoch 1"})
//	defer bar.Close()
//	for _, b := range batches {
//		loss := nn.MSELoss(net.Forward(b.X), b.Y)
//		opt.Minimize(loss)
//		bar.Step("loss", loss)
//	}
//
// On a terminal that is one line, which is drawn anew as the loop goes on:
//
//	epoch 1 120/400 [=====>__________] 30% 41.3 steps/s 7s left, loss 0.2153
//
// Elsewhere, as in the log of a job, it is a line every ten seconds and one at the end:
//
//	epoch 1 120/400 30% 41.3 steps/s 7s left, loss 0.2153
//
// The line has no colours and no letters besides ASCII, the cursor is always visible, and no mode of the terminal is
// changed. So there is nothing to restore if the program is interrupted. Close ends the line; what else the program
// writes to the terminal before that begins in the middle of it.
//
// The package records nothing: see package scalars.
package progress

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/asyncgen/asyncgen/runtime/internal/known"
	"github.com/asyncgen/asyncgen/runtime/tensor"
	"github.com/cheggaaa/pb/v3"
	"github.com/cheggaaa/pb/v3/termutil"
)

// Options say how a [Bar] looks. The zero Options are those of most programs.
type Options struct {
	// Label stands before the bar.
	Label string
	// Out is where the bar is drawn. Nil: os.Stderr. It is a terminal if it is an *os.File that is one, unless the
	// environment has TERM=dumb.
	Out io.Writer
	// Start is how many of the steps were done before, in an earlier run. It must not be negative.
	Start int
}

// How often a bar is drawn: on a terminal, and elsewhere.
const (
	onTerminal = 100 * time.Millisecond
	elsewhere  = 10 * time.Second
)

// smoothing is the weight of the newest measurement in the rate, as tqdm has it.
const smoothing = 0.3

// A Bar is a progress bar. Several goroutines may use it.
type Bar struct {
	mu       sync.Mutex // guards all below
	bar      *pb.ProgressBar
	out      io.Writer
	terminal bool
	total    int // 0: unknown
	start    int
	done     int // Start included
	values   []*value
	begun    time.Time
	drawn    time.Time // when last, or begun
	counted  int       // done as it was then
	rate     float64   // steps a second, smoothed; 0 before it is known
	closed   bool
}

// A value is what Step was given under one name. Of the numbers that nobody knows yet it keeps two: the newest, and
// one that is old enough to be known soon.
type value struct {
	name   string
	known  bool
	number float64
	err    error
	kept   []known.Number // at most 2, oldest first
}

// New returns a bar of total steps, and draws it. If total is 0, the number of steps is not known: the bar counts
// them. New panics with a [tensor.Mistake] if total is negative, or o.Start is.
//
//asyncgen:api control
func New(total int, o Options) *Bar {
	if total < 0 || o.Start < 0 {
		wrong("New", "%d steps, %d of them done before: negative", total, o.Start)
	}
	b := &Bar{out: o.Out, total: total, start: o.Start, done: o.Start, counted: o.Start, begun: time.Now()}
	if b.out == nil {
		b.out = os.Stderr
	}
	b.drawn = b.begun
	b.bar = pb.New(total).Set(pb.Static, true).Set(pb.Color, false).SetWriter(b.out)
	b.terminal = b.bar.GetBool(pb.Terminal) && os.Getenv("TERM") != "dumb"
	if o.Label != "" {
		b.bar.Set("label", printable(o.Label)+" ")
	}
	template := `{{string . "label"}}{{counters . "%s/%s" "%[1]s steps"}}`
	if total > 0 && b.terminal {
		template += ` {{bar . "[" "=" ">" "_" "]"}}`
	}
	if total > 0 {
		template += ` {{percent . "%.0f%%"}}`
	}
	b.bar.SetTemplateString(template + `{{string . "rest"}}`)
	if b.terminal {
		b.draw()
	}
	return b
}

func wrong(fn, format string, args ...any) {
	panic(&tensor.Mistake{Package: "progress", Op: fn, Text: fmt.Sprintf(format, args...)})
}

// printable replaces what would move the cursor.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

// Step counts a step. Values are pairs of a name and a number to show: a tensor with one element, or a float64,
// float32, int, int64 or int32. A name keeps its place and its latest value until Step gets another.
//
// Step never waits, for a device or for anything else but the writer. It shows the newest value that is known. For
// each name it keeps two handles at most of values that are not, and lets go of those that were overtaken; the
// program may declare its own handles [tensor.Dead]. A value whose operation failed is shown as "failed"; the error
// is left to whoever reads the tensor. Step lets the engine compute nothing. On a device whose memory the host can't
// reach it enqueues a copy of a number now and then, when that has been computed.
//
// Step panics with a [tensor.Mistake] if a value has no name or is not such a number, and after Close.
//
//asyncgen:api output
func (b *Bar) Step(values ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		wrong("Step", "the bar is closed")
	}
	if len(values)%2 != 0 {
		wrong("Step", "%d arguments are not pairs of a name and a number", len(values))
	}
	numbers := make([]known.Number, len(values)/2)
	for i := range numbers {
		if name, ok := values[2*i].(string); !ok || name == "" {
			wrong("Step", "argument %d is no name: %v", 2*i, values[2*i])
		}
		numbers[i] = known.Of("progress", "Step", values[2*i+1])
	}
	for i, n := range numbers {
		b.value(values[2*i].(string)).add(n)
	}
	b.done++
	every := elsewhere
	if b.terminal {
		every = onTerminal
	}
	if now := time.Now(); now.Sub(b.drawn) >= every {
		b.measure(now)
		b.draw()
	}
}

// value returns the value with the given name, which is new if there was none.
func (b *Bar) value(name string) *value {
	for _, v := range b.values {
		if v.name == name {
			return v
		}
	}
	v := &value{name: name}
	b.values = append(b.values, v)
	return v
}

// add takes the newest number. An older one waits for its turn, and is overtaken if there is a third.
func (v *value) add(n known.Number) {
	v.poll()
	if len(v.kept) == 2 {
		v.kept[1].Drop()
		v.kept[1] = n
	} else {
		v.kept = append(v.kept, n)
	}
	v.poll()
}

// poll takes over the newest number that is known.
func (v *value) poll() {
	for i := len(v.kept) - 1; i >= 0; i-- {
		if !v.kept[i].Known() {
			continue
		}
		v.known = true
		v.number, v.err = v.kept[i].Value()
		for j := range i {
			v.kept[j].Drop()
		}
		v.kept = slices.Delete(v.kept, 0, i+1)
		return
	}
}

// measure updates the rate.
func (b *Bar) measure(now time.Time) {
	latest := float64(b.done-b.counted) / now.Sub(b.drawn).Seconds()
	if b.rate == 0 {
		b.rate = latest
	}
	b.rate += smoothing * (latest - b.rate)
	b.drawn, b.counted = now, b.done
}

// draw writes the line as it is now.
func (b *Bar) draw() {
	var rest strings.Builder
	if b.rate >= 1 {
		fmt.Fprintf(&rest, " %s steps/s", digits(b.rate))
	} else if b.rate > 0 {
		fmt.Fprintf(&rest, " %s s/step", digits(1/b.rate))
	}
	switch left := b.total - b.done; {
	case b.closed:
		fmt.Fprintf(&rest, " in %v", time.Since(b.begun).Round(time.Second))
	case left > 0 && b.rate > 0 && float64(left)/b.rate < mostSeconds:
		fmt.Fprintf(&rest, " %v left", time.Duration(float64(left)/b.rate*float64(time.Second)).Round(time.Second))
	}
	for _, v := range b.values {
		v.poll()
		switch {
		case v.err != nil:
			fmt.Fprintf(&rest, ", %s failed", printable(v.name))
		case v.known:
			fmt.Fprintf(&rest, ", %s %.4g", printable(v.name), v.number)
		}
	}
	b.bar.SetCurrent(int64(b.done)).Set("rest", rest.String())
	if !b.terminal {
		fmt.Fprintln(b.out, b.bar.String())
		return
	}
	// A line that fills the last column is continued by some terminals.
	if width, err := termutil.TerminalWidth(); err == nil && width > 1 {
		b.bar.SetWidth(width - 1)
	} else {
		b.bar.SetWidth(79)
	}
	b.bar.Write()
}

// mostSeconds is how much time left is worth saying: a year.
const mostSeconds = 365 * 24 * 3600

// digits formats a positive number with three digits or more.
func digits(x float64) string {
	return strconv.FormatFloat(x, 'f', max(0, 2-int(math.Floor(math.Log10(x)))), 64)
}

// Close draws the bar as it is, with the mean rate and the time that it took, and ends its line. It does not wait:
// what is not known yet is not shown. Behind what waits anyway, such as a validation, it shows the last values. A Bar
// may be closed again, which does nothing. Defer Close, so that the line ends when the loop is left by a return or a
// panic, too.
//
//asyncgen:api output
func (b *Bar) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	b.closed = true
	b.rate = 0
	if took := time.Since(b.begun).Seconds(); took > 0 {
		b.rate = float64(b.done-b.start) / took
	}
	b.draw()
	if b.terminal {
		fmt.Fprintln(b.out)
	}
	for _, v := range b.values {
		for i := range v.kept {
			v.kept[i].Drop()
		}
		v.kept = nil
	}
}
