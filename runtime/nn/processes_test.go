package nn_test

import (
	"errors"
	"fmt"
	"io"
	network "net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/wire"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// sockets is a transport between processes of this machine: a connection for each pair, made by the rank that is
// greater. Each direction of each has a goroutine that handles one message after the other.
type sockets struct {
	rank, size int
	conns      []network.Conn // by rank; nil: this one
	sends      []chan func()
	receives   []chan func()
	closing    sync.WaitGroup
}

// connect returns the transport of a rank. Sockets are in a folder.
func connect(folder string, rank, size int) (*sockets, error) {
	s := &sockets{rank: rank, size: size, conns: make([]network.Conn, size)}
	path := func(rank int) string { return filepath.Join(folder, strconv.Itoa(rank)) }
	l, err := network.Listen("unix", path(rank)+".new")
	if err != nil {
		return nil, err
	}
	if err := os.Rename(path(rank)+".new", path(rank)); err != nil { // now it listens
		return nil, err
	}
	for peer := range rank {
		for s.conns[peer] == nil {
			if c, err := network.Dial("unix", path(peer)); err == nil {
				s.conns[peer] = c
				c.Write([]byte{byte(rank)})
			}
		}
	}
	for range size - 1 - rank {
		c, err := l.Accept()
		if err != nil {
			return nil, err
		}
		var who [1]byte
		if _, err := io.ReadFull(c, who[:]); err != nil {
			return nil, err
		}
		s.conns[who[0]] = c
	}
	for range size {
		for _, list := range []*[]chan func(){&s.sends, &s.receives} {
			c := make(chan func(), 1000)
			*list = append(*list, c)
			s.closing.Go(func() {
				for f := range c {
					f()
				}
			})
		}
	}
	return s, nil
}

func (s *sockets) Rank() int { return s.rank }
func (s *sockets) Size() int { return s.size }

func (s *sockets) Send(to int, msg []byte, done func(error)) {
	s.sends[to] <- func() { _, err := s.conns[to].Write(msg); done(err) }
}

func (s *sockets) Receive(from int, buf []byte, done func(error)) {
	s.receives[from] <- func() { _, err := io.ReadFull(s.conns[from], buf); done(err) }
}

func (s *sockets) Fail(error) {
	for _, c := range s.conns {
		if c != nil {
			c.Close()
		}
	}
}

func (s *sockets) Close() error {
	for i := range s.sends {
		close(s.sends[i])
		close(s.receives[i])
	}
	s.closing.Wait()
	return nil
}

// TestProcesses trains a model that draws its weights when it is first used, and draws in each step, in one process, in
// two and in four. They end with the same losses, weights and position of the generator. One layer draws its weights in
// a later step. Without Dropout, all is the same as without a job.
func TestProcesses(t *testing.T) {
	if where := os.Getenv("NN_TEST_RANK"); where != "" {
		fmt.Println("result:", beRank(where))
		return
	}
	if testing.Short() || runtime.GOOS == "windows" {
		t.Skip("starts processes, with sockets that are renamed")
	}
	var want string
	for _, n := range []int{1, 2, 4} {
		folder, err := os.MkdirTemp("", "nn") // a short path, as sockets need it
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(folder)
		outs := make([]string, n)
		var wg sync.WaitGroup
		for rank := range n {
			wg.Go(func() {
				cmd := exec.Command(os.Args[0], "-test.run=^TestProcesses$")
				cmd.Env = append(os.Environ(), fmt.Sprintf("NN_TEST_RANK=%s %d %d", folder, rank, n))
				out, err := cmd.CombinedOutput()
				_, outs[rank], _ = strings.Cut(string(out), "result: ")
				outs[rank], _, _ = strings.Cut(outs[rank], "\n")
				if err != nil || !strings.HasPrefix(outs[rank], "[") {
					t.Errorf("rank %d of %d: %v\n%s", rank, n, err, out)
				}
			})
		}
		wg.Wait()
		for rank, got := range outs {
			if want == "" {
				want = got
			}
			if got != want {
				t.Errorf("rank %d of %d:\n%s, want\n%s", rank, n, got, want)
			}
		}
	}
}

// beRank is what a process of TestProcesses does.
func beRank(where string) string {
	f := strings.Fields(where)
	rank, _ := strconv.Atoi(f[1])
	size, _ := strconv.Atoi(f[2])
	s, err := connect(f[0], rank, size)
	if err != nil {
		return err.Error()
	}
	job, err := wire.NewJob(s, wire.Options{})
	if err != nil {
		return err.Error()
	}
	learn := func(job *wire.Job, dropout float64) string {
		rank, size := 0, 1
		if job != nil {
			rank, size = job.Rank(), job.Size()
		}
		tensor.Seed(4)
		extra := &late{Layer: nn.Dense(300)}
		model := nn.Sequential(nn.Dense(300), nn.BatchNorm(), nn.ReLU(), nn.Dropout(dropout), extra, nn.Dense(4))
		par := nn.DataParallel(model, nn.Parallel{Devices: []device.Device{device.CPU()}, Job: job})
		opt := optim.Adam(par.Params(), 0.01)
		var losses []float64
		for step := range 6 {
			extra.isUsed = step >= 3
			x, labels := tensor.Randn(32, 50), tensor.RandInt(0, 4, 32) // all ranks draw the same
			from, to := rank*32/size, (rank+1)*32/size
			loss := par.Loss(nn.CrossEntropy, x.Slice(0, from, to), labels.Slice(0, from, to))
			opt.Minimize(loss)
			losses = append(losses, loss.Item())
		}
		var sums []float64
		for _, c := range nn.Cells(model) {
			sums = append(sums, c.Value().As(tensor.Float64).Square().Sum().Item())
		}
		return fmt.Sprint(losses, sums, tensor.Rand(1).Item())
	}
	drops, over := learn(job, 0.3), learn(job, 0)
	if err := errors.Join(asyncrt.WaitAll(), job.Close()); err != nil {
		return err.Error()
	}
	if alone := learn(nil, 0); over != alone {
		return fmt.Sprintf("over ranks %s, without a job %s", over, alone)
	}
	return drops + over
}

// late is a layer that is used from some step on, and draws its weights then.
type late struct {
	Layer  nn.Module
	isUsed bool
}

func (l *late) Params() []*nn.Param { return nn.Params(l.Layer) }

func (l *late) Forward(x *tensor.Tensor) *tensor.Tensor {
	if !l.isUsed {
		return x
	}
	return l.Layer.Forward(x)
}
