package main

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// ours is this library's name among the peers.
const ours = "asyncgen"

// A question is how long a workload takes, to be answered within some seconds.
type question struct {
	workload
	Budget float64
}

// An answer is a median.
type answer struct {
	Seconds float64 // of one execution; for a limit FLOP or bytes a second
	Missing string  // why there is none

	// Of training steps only: the losses, and the peak of memory since the first of them.
	Losses []float64
	Bytes  int64
}

// A greeting is the first line that a peer writes.
type greeting struct {
	Version string
	Missing string
}

// A peer is a process that answers questions, a line of JSON each.
type peer struct {
	name    string
	threads int
	greeting
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

//go:embed peers.py
var script string

// startAll starts the peers for all numbers of threads. What is missing is in r, with the reason.
func startAll(o options, r *results) (all []*peer, end func()) {
	end = func() {
		for _, p := range all {
			p.close()
		}
	}
	c := newCommands(o)
	names := []string{ours, "PyTorch", "NumPy", "GoMLX", "gonum"}
	if o.isGPU() {
		names = names[:2]
	}
	for _, name := range slices.DeleteFunc(names, func(name string) bool { return !o.has(name) }) {
		for _, n := range o.threads {
			p, err := c.start(name, n)
			if err != nil {
				r.miss(name, err)
				break
			}
			all = append(all, p)
			if n == o.threads[len(o.threads)-1] {
				r.peers = append(r.peers, name)
				r.versions = append(r.versions, p.Version)
			}
		}
	}
	return all, end
}

// commands are the programs that peers run.
type commands struct {
	self, python, device string
	selfErr, pythonErr   error
}

func newCommands(o options) *commands {
	c := &commands{device: "cpu"}
	if o.isGPU() {
		c.device = "cuda"
	}
	c.self, c.selfErr = os.Executable()
	c.python, c.pythonErr = pythonFor(o)
	return c
}

// start starts a peer and reads its greeting.
func (c *commands) start(name string, threads int) (*peer, error) {
	if name == "NumPy" || name == eager || name == compiled {
		if c.pythonErr != nil {
			return nil, c.pythonErr
		}
		return start(name, threads, []string{c.python, "-c", script, name, fmt.Sprint(threads), c.device})
	}
	if c.selfErr != nil {
		return nil, c.selfErr
	}
	return start(name, threads, []string{c.self, "-serve", name})
}

func start(name string, threads int, command []string) (*peer, error) {
	p := &peer{name: name, threads: threads, cmd: exec.Command(command[0], command[1:]...)}
	for _, v := range os.Environ() {
		// These would make OpenBLAS and PyTorch choose slower kernels than the processor has.
		if key, _, _ := strings.Cut(v, "="); !strings.HasPrefix(key, "OPENBLAS_") && key != "ATEN_CPU_CAPABILITY" && key != "ASYNCGEN_ISA" {
			p.cmd.Env = append(p.cmd.Env, v)
		}
	}
	for _, key := range []string{"GOMAXPROCS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"} {
		p.cmd.Env = append(p.cmd.Env, fmt.Sprintf("%s=%d", key, threads))
	}
	p.cmd.Stderr = os.Stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	if err := p.read(&p.greeting); err != nil {
		return nil, errors.Join(fmt.Errorf("it does not start: %w", err), p.close())
	}
	if p.greeting.Missing != "" {
		p.close()
		return nil, errors.New(p.greeting.Missing)
	}
	stop(p.cmd.Process)
	return p, nil
}

// read reads the next line of JSON. Peers may write other lines, too.
func (p *peer) read(into any) error {
	for {
		line, err := p.out.ReadString('\n')
		if err != nil {
			return err
		}
		if strings.HasPrefix(line, "{") {
			return json.Unmarshal([]byte(line), into)
		}
	}
}

// ask wakes the peer for one question. Threads of NumPy and PyTorch wait for more work at full speed, long after an
// answer: a peer that could do so would take a processor from the next one.
func (p *peer) ask(q question) (a answer, err error) {
	wake(p.cmd.Process)
	defer stop(p.cmd.Process)
	text, err := json.Marshal(q)
	if err != nil {
		return a, err
	}
	if _, err := p.in.Write(append(text, '\n')); err != nil {
		return a, err
	}
	err = p.read(&a)
	return a, err
}

func (p *peer) close() error {
	wake(p.cmd.Process)
	p.in.Close()
	return p.cmd.Wait()
}

// pythonFor returns an interpreter that has NumPy and PyTorch.
func pythonFor(o options) (string, error) {
	if o.python != "" {
		return o.python, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "asyncgen-peers")
	python := filepath.Join(dir, "bin", "python")
	commands := [][]string{{python, "-m", "pip", "install", "--quiet", "--upgrade", "numpy", "torch"}}
	if _, err := os.Stat(python); err != nil {
		commands = append([][]string{{"python3", "-m", "venv", dir}}, commands...)
	}
	for _, command := range commands {
		fmt.Fprintln(os.Stderr, strings.Join(command, " "))
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			return "", fmt.Errorf("%s: %w", strings.Join(command, " "), err)
		}
	}
	return python, nil
}
