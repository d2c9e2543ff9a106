// Command peers measures this library, gonum, GoMLX, NumPy and PyTorch side by side, and
// prints one table in Markdown and one chart in SVG.
//
//	go run -C testdata/peers . [-budget 300ms] [-threads 1,2] [-python PATH] [-md FILE] [-svg FILE]
//	go run -C testdata/peers . -steps [-budget 300ms] [-threads 1,2] [-python PATH] [-only REGEXP] [-md FILE]
//	go run -C testdata/peers . -from RESULTS.md [-only REGEXP] -svg FILE
//	go run -C testdata/peers . -device opencl:0 [-steps] [-md RESULTS-GPU.md]
//
// With -from nothing is measured: the chart is of rows of a table that an earlier run has written.
//
// With -steps it measures training steps of whole models, ours as they are and captured beside PyTorch's, and their
// memory. Each model of each peer is a process of its own. Windows of a few steps are asked for in turn, for 20 budgets.
// All begin with the same weights, and the command fails if their losses differ. The table is a part of FILE, under a
// heading of its own; what else is in FILE stays.
//
// With -peers only some are measured, such as "^PyTorch$". With -device they compute on a GPU: this library on that
// device, PyTorch by CUDA, in float32 proper rather than TF32. The executions of a window are enqueued, and waited for
// together. Other peers and the limits of the machine are left out, and memory is what was allocated on the device.
//
// Each peer is a process of its own, one for each number of threads, that answers questions: how long does this take? They are asked in turn,
// question by question, so that what disturbs the machine for a while disturbs all. An answer is the median of many short windows.
// The FMA peak and the bandwidth of a triad, the limits of the machine, are asked for among the rest.
//
// A peer that can't be had is left out, and the reason printed. NumPy and PyTorch are
// those of the interpreter that -python names, or else the newest that pip installs into a virtual environment in the
// user's cache folder; on Linux that is some gigabytes, once.
//
// Every peer is at its best: results go into memory that exists where a peer can do so ("out="), OpenBLAS chooses its kernels
// by the processor whatever the environment says, PyTorch may use as many threads as the others.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("peers: ")
	var o options
	serve := flag.String("serve", "", "answer questions as this `peer`, as the command does when it starts itself")
	threads := flag.String("threads", "", "numbers of threads; by default 1 and as many as there are processors, with -device the latter alone")
	peers := flag.String("peers", "", "measure peers that match this `regexp` only, and this library")
	flag.StringVar(&o.device, "device", "cpu", "the `device` that this library computes on: cpu or opencl:0")
	flag.DurationVar(&o.budget, "budget", 300*time.Millisecond, "time for each answer")
	flag.StringVar(&o.python, "python", "", "a Python `interpreter` with NumPy and PyTorch; a virtual environment is made otherwise")
	only := flag.String("only", "", "measure workloads that match this `regexp` only")
	markdown := flag.String("md", "", "write the table to this `file` rather than to standard output")
	from := flag.String("from", "", "draw the chart of a table in this `file`, and measure nothing")
	svg := flag.String("svg", "", "write the chart to this `file`")
	whole := flag.Bool("steps", false, "measure training steps of whole models")
	flag.Parse()
	if *serve != "" {
		if err := answerAs(*serve); err != nil {
			log.Fatal(err)
		}
		return
	}
	err := func() (err error) {
		if err := os.Setenv("ASYNCGEN_DEVICE", o.device); err != nil {
			return err
		}
		if *threads == "" && o.isGPU() {
			*threads = strconv.Itoa(runtime.NumCPU())
		}
		if o.threads, err = parseThreads(cmp.Or(*threads, fmt.Sprintf("1,%d", runtime.NumCPU()))); err != nil {
			return err
		}
		if o.only, err = regexp.Compile(*only); err != nil {
			return err
		}
		if o.peers, err = regexp.Compile(*peers); err != nil {
			return err
		}
		if *from != "" {
			text, err := os.ReadFile(*from)
			if err != nil {
				return err
			}
			results, err := readMarkdown(string(text), o.only)
			if err != nil {
				return fmt.Errorf("%s: %w", *from, err)
			}
			return write(cmp.Or(*svg, "/dev/stdout"), results.chart)
		}
		if *whole {
			results, err := measureSteps(o)
			if err != nil {
				return err
			}
			return writePart(*markdown, true, results.markdownSteps())
		}
		results, err := measureAll(o)
		if err != nil {
			return err
		}
		if err := write(*svg, results.chart); err != nil {
			return err
		}
		return writePart(*markdown, false, results.markdown())
	}()
	if err != nil {
		log.Fatal(err)
	}
}

type options struct {
	threads []int
	budget  time.Duration
	python  string
	only    *regexp.Regexp
	device  string
	peers   *regexp.Regexp
}

func (o *options) isGPU() bool { return o.device != "cpu" }

// has reports whether a peer takes part.
func (o *options) has(name string) bool { return name == ours || o.peers.MatchString(name) }

func parseThreads(list string) ([]int, error) {
	var all []int
	for word := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("-threads %s: want positive numbers", list)
		}
		if len(all) == 0 || all[len(all)-1] != n {
			all = append(all, n)
		}
	}
	return all, nil
}

// write writes what make returns to a file, if it has a name.
func write(name string, text func() string) error {
	if name == "" {
		return nil
	}
	return os.WriteFile(name, []byte(text()), 0o666)
}

// writePart writes one of the two tables to a file and keeps the other one there. If the file has no name, it writes
// to standard output.
func writePart(name string, isSteps bool, table string) error {
	if name == "" {
		_, err := os.Stdout.WriteString(table)
		return err
	}
	old, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.WriteFile(name, []byte(replacePart(string(old), isSteps, table)), 0o666)
}

// replacePart returns text with table instead of what is before the heading of steps, or from there on.
func replacePart(text string, isSteps bool, table string) string {
	kernels, steps, has := strings.Cut(text, stepsHeading)
	if isSteps {
		return strings.TrimSpace(kernels) + "\n\n" + table
	}
	if has {
		table += "\n" + stepsHeading + steps
	}
	return table
}

// measureAll asks every peer every question.
func measureAll(o options) (*results, error) {
	r := &results{options: o, machine: machine()}
	peers, end := startAll(o, r)
	defer end()
	if len(peers) == 0 {
		return nil, errors.New("there are no peers")
	}
	for _, n := range o.threads {
		for _, w := range workloads {
			if !o.only.MatchString(w.Name) {
				continue
			}
			row := row{workload: w, threads: n, answers: map[string]answer{}}
			for _, p := range peers {
				if p.threads != n {
					continue
				}
				a, err := p.ask(question{w, o.budget.Seconds()})
				if err != nil {
					return nil, fmt.Errorf("%s, %s: %w", p.name, w.Name, err)
				}
				row.answers[p.name] = a
				if p.name == ours && !o.isGPU() {
					if row.limit, err = p.ask(question{workload{Work: w.limit(), Bytes: w.Bytes}, o.budget.Seconds() / 4}); err != nil {
						return nil, err
					}
				}
			}
			r.rows = append(r.rows, row)
			fmt.Fprintf(os.Stderr, "%s, threads: %d: %s\n", w.Name, n, row.summary(r.peers))
		}
	}
	return r, nil
}
