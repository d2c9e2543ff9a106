// Command chargpt trains a small transformer to continue a text, character by
// character, and has it write: each character is printed as soon as it is chosen,
// until a sentence ends, there are enough of them, or somebody presses Ctrl-C.
//
// The text is Newton's Opticks, which comes with Go, or what -text names, or else a
// short one of its own. Times go to standard error.
//
// With -ranks it trains over the ranks of a job, each with its part of every batch. The loss and
// the weights have the same bits on any number of ranks, so all jobs print the same. It need not be
// what is printed without -ranks: a batch is cut into eight shards, and the last batch of an epoch,
// which ranks can't share, is left out. The number of ranks divides eight. Rank 0 writes and prints.
//
//	go run ./testdata/programs/chargpt [-small] [-text file] [-steps n] [-capture | -ranks] [-prompt text] [-end text] [-length n]
//	mpiexec -n 4 chargpt -ranks
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/asyncgen/asyncgen/device/wire"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/data"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func main() {
	small := flag.Bool("small", false, "a small model, a short text, 40 steps, 60 characters")
	file := flag.String("text", "", "the `file` to learn from; without it, Newton's Opticks")
	steps := flag.Int("steps", 120, "how many batches to learn from")
	capture := flag.Bool("capture", false, "capture the step of training, and read losses only to print them")
	ranks := flag.Bool("ranks", false, "train over the ranks of a job, which mpiexec starts")
	prompt := flag.String("prompt", "The Rays of Light", "what to continue")
	end := flag.String("end", ".", "the text to stop behind")
	length := flag.Int("length", 200, "how many characters to write at most")
	flag.Parse()
	if *capture && *ranks {
		log.Fatal("chargpt: messages between ranks can't be captured: -capture or -ranks, not both")
	}
	text, size := ownText, config{width: 32, heads: 2, blocks: 1, places: 32}
	if *small {
		*steps, *length = 40, 60
	} else {
		text, size = readText(*file), config{width: 64, heads: 4, blocks: 2, places: 64}
	}

	if *ranks {
		overRanks(func(job *wire.Job) error { // does not return; Ctrl-C is for mpiexec, which ends all ranks
			return run(context.Background(), job, text, size, *steps, false, *prompt, *end, *length)
		})
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	switch err := run(ctx, nil, text, size, *steps, *capture, *prompt, *end, *length); {
	case errors.Is(err, context.Canceled):
		fmt.Println("\ninterrupted")
	case err != nil:
		log.Fatal("chargpt: ", err)
	}
}

// run trains a model with text, over the ranks of a job unless that is nil, and has it continue the prompt.
func run(ctx context.Context, job *wire.Job, text string, size config, steps int, capture bool, prompt, end string, length int) error {
	letters := data.NewAlphabet(text)
	ids, err := letters.Encode(text)
	if err != nil {
		return err
	}
	fmt.Fprintf(job.Output(os.Stdout), "%d characters, %d different ones\n", len(ids), letters.Len())

	if steps < 1 || prompt == "" {
		return errors.New("want a step or more, and a prompt of a character or more")
	}
	if _, err := letters.Encode(prompt); err != nil { // before the training, which takes a while
		return fmt.Errorf("the prompt: %w", err)
	}

	tensor.Seed(1)
	model := newGPT(size, letters.Len())
	order := data.Options{Shuffle: true, Seed: 1}
	if job != nil {
		job.Agree(text) // each rank has read a file of its own
		order.DropLast, order.Rank, order.Ranks = true, job.Rank(), job.Size()
	}
	batches := data.NewLoader(data.Windows(ids, size.places, size.places/2), 16, order)
	if batches.Len() == 0 {
		return fmt.Errorf("the text has %d characters, too few for a batch: the model learns from %d at a time", len(ids), size.places+1)
	}
	start := time.Now()
	switch {
	case job != nil:
		err = trainOver(ctx, job, model, batches, steps)
	case capture:
		err = trainCaptured(ctx, model, batches, steps)
	default:
		err = train(ctx, model, batches, steps)
	}
	if err != nil || job != nil && job.Rank() != 0 {
		return err
	}
	fmt.Fprintf(os.Stderr, "trained in %v\n", time.Since(start).Round(time.Millisecond))

	start = time.Now()
	fmt.Printf("%s|", prompt)
	n, err := write(ctx, os.Stdout, nn.Frozen(model), letters, prompt, end, length)
	if err != nil {
		return err
	}
	fmt.Printf("| %d characters\n", n)
	fmt.Fprintf(os.Stderr, "written in %v\n", time.Since(start).Round(time.Millisecond))
	return nil
}

// train takes the given number of steps, and prints the mean loss now and then.
func train(ctx context.Context, model *gpt, batches *data.Loader, steps int) error {
	opt := newOptimizer(model, steps)
	step, total := 0, 0.0
	for step < steps {
		for b, err := range batches.AllContext(ctx) {
			if err != nil {
				return err
			}
			loss := nn.CrossEntropy(model.Forward(b.X), b.Y)
			opt.ZeroGrad()
			loss.Backward()
			optim.ClipNorm(model.Params(), 1)
			opt.Step()

			total += loss.Item()
			if step++; step%20 == 0 {
				fmt.Printf("step %d: loss %.3f\n", step, total/20)
				total = 0
			}
			if step == steps {
				break
			}
		}
	}
	return nil
}

// trainCaptured is train with a step that is recorded once and then repeated as a whole. The losses have the same bits,
// and are read when they are printed.
func trainCaptured(ctx context.Context, model *gpt, batches *data.Loader, steps int) error {
	opt := newOptimizer(model, steps)
	learn := asyncrt.Capture(func(in ...*tensor.Tensor) []*tensor.Tensor {
		loss := nn.CrossEntropy(model.Forward(in[0]), in[1])
		opt.ZeroGrad()
		loss.Backward()
		optim.ClipNorm(model.Params(), 1)
		opt.Step()
		return []*tensor.Tensor{loss}
	})
	return repeat(ctx, batches, steps, os.Stdout, func(b data.Batch) *tensor.Tensor { return learn.Run(b.X, b.Y)[0] })
}

// repeat takes the given number of steps, and prints the mean of the losses that learn returns now and then. It reads
// them only then.
func repeat(ctx context.Context, batches *data.Loader, steps int, out io.Writer, learn func(data.Batch) *tensor.Tensor) error {
	step := 0
	var losses []*tensor.Tensor
	for step < steps {
		for b, err := range batches.AllContext(ctx) {
			if err != nil {
				return err
			}
			losses = append(losses, learn(b))
			if step++; step%20 == 0 {
				total := 0.0
				for _, loss := range tensor.Stack(0, losses...).Float32s() {
					total += float64(loss)
				}
				fmt.Fprintf(out, "step %d: loss %.3f\n", step, total/20)
				losses = nil
			}
			if step == steps {
				break
			}
		}
	}
	return nil
}

func newOptimizer(model *gpt, steps int) *optim.Optimizer {
	opt := optim.AdamW(model.Params(), 0.003, optim.AdamOptions{Decay: 0.01})
	opt.Schedule = optim.Warmup(max(steps/10, 1), optim.Cosine(steps-steps/10, 0.1))
	return opt
}

// write continues the prompt on out, limit characters at most, or until the text ends with end. It returns how many
// characters there are, and an error if ctx ends before.
func write(ctx context.Context, out io.Writer, model *gpt, letters *data.Alphabet, prompt, end string, limit int) (int, error) {
	ids, err := letters.Encode(prompt)
	if err != nil {
		return 0, err
	}
	text := model.newText()
	next := tensor.From(ids, 1, len(ids))
	written := ""
	n := 0
	for ; n < limit && !strings.HasSuffix(written, end); n++ {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		scores := text.extend(next)
		next = scores.DivScalar(0.7).Softmax(1).Multinomial(1, true)
		letter := letters.Decode([]int64{next.ItemInt()})
		fmt.Fprint(out, letter)
		written += letter
	}
	return n, nil
}

// readText returns the text in a file, or if it has no name, the one that comes with Go.
func readText(file string) string {
	if file == "" {
		root, err := exec.Command("go", "env", "GOROOT").Output()
		if err != nil {
			return ownText
		}
		file = filepath.Join(strings.TrimSpace(string(root)), "src", "testdata", "Isaac.Newton-Opticks.txt")
		if _, err := os.Stat(file); err != nil {
			return ownText
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		log.Fatal("chargpt: ", err)
	}
	return string(text)
}

// ownText is for where Go came without Newton.
const ownText = `The Rays of Light that fall upon a Glass are bent when they enter it, and bent again when they leave it. Those that
look blue are bent more than those that look red. So a Glass with three sides makes of one white Ray a row of all the Colours,
the red ones at the one end of it and the blue ones at the other. If a second Glass is put behind the first, the other way
round, it bends the Colours back upon each other, and where they meet the Light is white again. From this we may learn that
the Glass does not make the Colours. They were in the Light before, and the Glass only parts them.
`
