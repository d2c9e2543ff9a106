package wire_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/wire"
	"github.com/asyncgen/asyncgen/device/wire/wiretest"
)

var (
	send    = device.NewKernel("send", device.Send, nil, device.Int64, device.Int64)
	receive = device.NewKernel("receive", device.Receive, nil, device.Int64)
)

// jobs returns a job of n ranks, with options for all.
func jobs(t *testing.T, w *wiretest.Network, n int, o wire.Options) []*wire.Job {
	t.Helper()
	list, errs := make([]*wire.Job, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { list[i], errs[i] = wire.NewJob(w.Rank(i), o) })
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			t.Fatalf("rank %d: %v", i, err)
		}
	}
	return list
}

func numbers(values ...int64) *device.Buffer {
	b := device.HostBuffer(int64(8 * len(values)))
	copy(device.Slice[int64](b, 0, len(values)), values)
	return b
}

// sending is a command that sends n numbers of b, from one on.
func sending(b *device.Buffer, off, n int, what uint64) device.Command {
	return device.Command{Kernel: send, N: n, Buf: [4]*device.Buffer{device.HostBuffer(0), b}, Off: [4]int{0, off}, Imm: [2]uint64{what}}
}

func receiving(b *device.Buffer, off, n int, what uint64) device.Command {
	return device.Command{Kernel: receive, N: n, Buf: [4]*device.Buffer{b}, Off: [4]int{off}, Imm: [2]uint64{what}}
}

func submit(t *testing.T, b device.Backend, cmds ...device.Command) device.Ticket {
	t.Helper()
	last, err := b.Submit(cmds)
	if err != nil {
		t.Fatal(err)
	}
	return last
}

// Messages arrive in order, both ways at once, wherever they begin in their buffers, and with any number of elements.
// Sources may change as soon as they are sent. Tickets are consecutive.
func TestMessages(t *testing.T) {
	for seed := range uint64(4) {
		w := wiretest.New(3)
		if seed > 0 {
			w.Shuffle(seed)
		}
		list := jobs(t, w, 3, wire.Options{Program: "p"})
		var wg sync.WaitGroup
		for me, j := range list {
			wg.Go(func() {
				for peer := range list {
					if peer == me {
						continue
					}
					in := make([]*device.Buffer, 50)
					from, to := j.From(peer).Backend(), j.To(peer).Backend()
					for i := range in {
						in[i] = numbers(-1, -1, -1, -1, -1)
						if got := submit(t, from, receiving(in[i], 1, i%4, uint64(i))); got != device.Ticket(i+1) {
							t.Errorf("ticket %d, want %d", got, i+1)
						}
						src := numbers(7, int64(me), int64(i), 3, 4)
						sent := submit(t, to, sending(src, 1, i%4, uint64(i)))
						if i%10 == 0 {
							if err := to.Wait(t.Context(), sent); err != nil {
								t.Error(err)
							}
							clear(device.Slice[int64](src, 0, 5))
						}
					}
					if err := from.Wait(t.Context(), 50); err != nil || !from.Done(50) {
						t.Error(err)
					}
					for i, b := range in {
						want := append(append([]int64{-1}, []int64{int64(peer), int64(i), 3}[:i%4]...), -1, -1, -1, -1)[:5]
						if got := device.Slice[int64](b, 0, 5); !slices.Equal(got, want) || from.Failure(device.Ticket(i+1)) != nil {
							t.Errorf("seed %d: message %d from %d to %d: %v, want %v", seed, i, peer, me, got, want)
						}
					}
				}
				if err := j.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for me, j := range list {
			if n := j.Live(); n != 0 {
				t.Errorf("seed %d: rank %d keeps %d bytes", seed, me, n)
			}
		}
		if _, err := list[0].To(1).Backend().Submit([]device.Command{sending(numbers(1), 0, 1, 0)}); !errors.Is(err, device.ErrClosed) {
			t.Errorf("Submit after Close: %v", err)
		}
		if err := list[0].Err(); !errors.Is(err, device.ErrLost) || !strings.Contains(err.Error(), "rank 0 has a message to rank 1 after Job.Close") {
			t.Errorf("seed %d: rank 1 waits, and the job of rank 0 has error %v", seed, err)
		}
	}
}

// More messages than the transport gets at once arrive, too. A receive holds up no send.
func TestManyMessages(t *testing.T) {
	w := wiretest.New(2)
	list := jobs(t, w, 2, wire.Options{Program: "p"})
	const n, size = 300, 1 << 17 // of 1 MiB
	w.Hold()
	in, out := []*device.Buffer{device.HostBuffer(8 * size), device.HostBuffer(8 * size)}, device.HostBuffer(8*size)
	for i := range n {
		for _, j := range list {
			submit(t, j.From(1-j.Rank()).Backend(), receiving(in[j.Rank()], 0, size, uint64(i)))
		}
	}
	for i := range n {
		for _, j := range list {
			submit(t, j.To(1-j.Rank()).Backend(), sending(out, 0, size, uint64(i)))
		}
	}
	if list[0].From(1).Backend().Done(1) || list[0].To(1).Backend().Done(n) {
		t.Error("done, though nothing has arrived")
	}
	w.Release()
	for _, j := range list {
		if err := j.From(1-j.Rank()).Backend().Wait(t.Context(), n); err != nil {
			t.Error(err)
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
		if got, most := j.Peak(), int64(2*wire.WindowBytes); got > most {
			t.Errorf("rank %d had %d bytes with the transport, want at most %d", j.Rank(), got, most)
		}
	}
}

// A message is copied while the one before it is on its way, however large both are, and no more than that.
func TestTwoLargeMessages(t *testing.T) {
	w := wiretest.New(2)
	list := jobs(t, w, 2, wire.Options{Program: "p"})
	const size = wire.WindowBytes / 8 * 3 / 4 // three quarters of the window
	w.Hold()
	to, from := list[0].To(1).Backend(), list[1].From(0).Backend()
	out := device.HostBuffer(8 * size)
	for i := range 3 {
		submit(t, to, sending(out, 0, size, uint64(i)))
		submit(t, from, receiving(device.HostBuffer(8*size), 0, size, uint64(i)))
	}
	if err := to.Wait(t.Context(), 2); err != nil {
		t.Error(err)
	}
	if to.Done(3) {
		t.Error("three messages larger than the window are with the transport")
	}
	w.Release()
	if err := from.Wait(t.Context(), 3); err != nil {
		t.Error(err)
	}
	for _, j := range list {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A message that can't be sent fails where it is received, one that can't be received is taken, and the others arrive.
func TestFailedMessage(t *testing.T) {
	list := jobs(t, wiretest.New(2), 2, wire.Options{Program: "p"})
	to, from := list[0].To(1).Backend(), list[1].From(0).Backend()
	a, b, c := numbers(0), numbers(0), numbers(0)
	nothing := receiving(nil, 0, 1, 3)
	submit(t, from, receiving(a, 0, 1, 1), receiving(b, 0, 1, 2), nothing, receiving(c, 0, 1, 4))
	submit(t, to, sending(numbers(5), 0, 1, 1), sending(nil, 0, 1, 2), sending(numbers(6), 0, 1, 3), sending(numbers(7), 0, 1, 4))
	if err := from.Wait(t.Context(), 4); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"", "rank 0 could not send it: an operation has failed there, or before", "", ""} {
		if got := fmt.Sprint(from.Failure(device.Ticket(i + 1))); got != want && (want != "" || got != "<nil>") {
			t.Errorf("message %d: %s, want %s", i, got, want)
		}
	}
	if got := []int64{device.Slice[int64](a, 0, 1)[0], device.Slice[int64](b, 0, 1)[0], device.Slice[int64](c, 0, 1)[0]}; !slices.Equal(got, []int64{5, 0, 7}) {
		t.Errorf("received %v", got)
	}
}

// What a rank sends is what the other one asks for, or the job is lost.
func TestDisagreement(t *testing.T) {
	for _, test := range []struct {
		send, receive device.Command
		want          string
	}{
		{sending(numbers(1), 0, 1, 4), receiving(numbers(0), 0, 1, 5), "rank 0 sends something else than rank 1 asks for"},
		{sending(numbers(1, 2), 0, 2, 4), receiving(numbers(0), 0, 1, 4), "messages with rank 0: device lost: wiretest: a message of 32 bytes"},
	} {
		list := jobs(t, wiretest.New(2), 2, wire.Options{Program: "p"})
		submit(t, list[0].To(1).Backend(), test.send)
		from := list[1].From(0).Backend()
		last := submit(t, from, test.receive)
		err := from.Wait(t.Context(), last)
		for !from.Done(last) || err == nil && list[1].Err() == nil {
		}
		for _, err := range []error{from.Failure(last), list[1].Err()} {
			if !errors.Is(err, device.ErrLost) || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("%v, want %s", err, test.want)
			}
		}
		if _, err := list[1].To(0).Backend().Submit([]device.Command{test.send}); err != list[1].Err() {
			t.Errorf("afterwards: %v", err)
		}
	}
}

// Time counts from the message before. Then the whole job is lost, with an error that names the rank; and so is it on
// the ranks that wait for this one.
func TestTimeout(t *testing.T) {
	for _, test := range []struct {
		name string
		cmd  device.Command
		want string
	}{
		{"receive", receiving(numbers(0), 0, 1, 0), "rank 1 has sent nothing to rank 0 for 30s: device lost"},
		{"send", sending(numbers(0), 0, 1, 0), "rank 1 has taken no message of rank 0 for 30s: device lost"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := wiretest.New(3)
				list := jobs(t, w, 3, wire.Options{Program: "p", Timeout: 30 * time.Second})
				j := list[0]
				mine := j.From(1).Backend()
				theirs := list[1].To(0).Backend()
				cmd := test.cmd
				if test.cmd.Kernel == send {
					mine, theirs = j.To(1).Backend(), list[1].From(0).Backend()
				}
				answer := sending(numbers(1), 0, 1, 0)
				if test.cmd.Kernel == send {
					answer = receiving(numbers(1), 0, 1, 0)
				}
				submit(t, mine, cmd, cmd, cmd)
				other := list[2].From(0).Backend()
				submit(t, other, receiving(numbers(0), 0, 1, 0))
				time.Sleep(29 * time.Second)
				submit(t, theirs, answer)
				time.Sleep(29 * time.Second) // since that message
				submit(t, theirs, answer)
				time.Sleep(29 * time.Second)
				if err := j.Err(); err != nil {
					t.Fatalf("too early: %v", err)
				}
				begin := time.Now()
				last := submit(t, mine, cmd) // behind the one that waits
				if test.cmd.Kernel == receive {
					if err := mine.Wait(t.Context(), last); err != j.Err() || time.Since(begin) != time.Second {
						t.Errorf("after %v: %v", time.Since(begin), err)
					}
				}
				time.Sleep(2 * time.Second)
				if err := j.Err(); !errors.Is(err, device.ErrLost) || err.Error() != test.want {
					t.Errorf("the job: %v, want %s", err, test.want)
				}
				if test.cmd.Kernel == receive && (mine.Failure(1) != nil || mine.Failure(3) != j.Err() || !mine.Done(last)) {
					t.Errorf("failures: %v, %v", mine.Failure(1), mine.Failure(3))
				}
				if err := other.Wait(t.Context(), 1); !errors.Is(err, device.ErrLost) || !strings.Contains(err.Error(), "rank 0") {
					t.Errorf("rank 2: %v", err)
				}
				if err := j.Close(); err != j.Err() {
					t.Errorf("Close: %v", err)
				}
				for _, j := range list {
					j.Fail(errors.New("the test is over"))
					if n := j.Live(); n != 0 {
						t.Errorf("rank %d keeps %d bytes", j.Rank(), n)
					}
				}
			})
		})
	}
}

// All ranks learn which one runs another program; a rank that does not come is named.
func TestProgramsDiffer(t *testing.T) {
	w := wiretest.New(3)
	var wg sync.WaitGroup
	for i, name := range []string{"p", "p", "q"} {
		wg.Go(func() {
			_, err := wire.NewJob(w.Rank(i), wire.Options{Program: name})
			if want := "wire: rank 2 runs another program than rank 0: another file"; err == nil || err.Error() != want {
				t.Errorf("rank %d: %v, want %s", i, err, want)
			}
		})
	}
	wg.Wait()
	synctest.Test(t, func(t *testing.T) {
		w := wiretest.New(3)
		done := make(chan error)
		go func() {
			_, err := wire.NewJob(w.Rank(1), wire.Options{Program: "p", Timeout: time.Minute})
			done <- err
		}()
		_, err := wire.NewJob(w.Rank(0), wire.Options{Program: "p", Timeout: time.Second})
		if want := "wire: rank 2 has not come within 1s: device lost"; err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		if err := <-done; err == nil {
			t.Error("rank 1 goes on")
		}
	})
	// The same file, arguments and version of Go.
	for _, j := range jobs(t, wiretest.New(2), 2, wire.Options{}) {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A wait ends with its context; the message does not.
func TestWaitContext(t *testing.T) {
	list := jobs(t, wiretest.New(2), 2, wire.Options{Program: "p"})
	from := list[1].From(0).Backend()
	b := numbers(0)
	last := submit(t, from, receiving(b, 0, 1, 0))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := from.Wait(ctx, last); err != context.Canceled {
		t.Error(err)
	}
	submit(t, list[0].To(1).Backend(), sending(numbers(3), 0, 1, 0))
	if err := from.Wait(t.Context(), last); err != nil || device.Slice[int64](b, 0, 1)[0] != 3 {
		t.Error(err)
	}
	if _, err := from.Submit([]device.Command{sending(b, 0, 1, 0)}); !errors.Is(err, device.ErrUnsupported) {
		t.Errorf("a send by the device that receives: %v", err)
	}
	if err := from.Wait(t.Context(), last+1); err == nil {
		t.Error("no error for a ticket that was never given out")
	}
}

func TestTimeoutSetting(t *testing.T) {
	for value, want := range map[string]string{"5": "want a time", "-1s": "want a time", "no": "want a time"} {
		t.Setenv("ASYNCGEN_RANK_TIMEOUT", value)
		if _, err := wire.NewJob(wiretest.New(1).Rank(0), wire.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// Rank 0 prints, and a program without a job.
func TestOutput(t *testing.T) {
	list := append(jobs(t, wiretest.New(2), 2, wire.Options{}), nil)
	for i, want := range []io.Writer{os.Stdout, io.Discard, os.Stdout} {
		if got := list[i].Output(os.Stdout); got != want {
			t.Errorf("job %d prints to %v, want %v", i, got, want)
		}
	}
	for _, j := range list[:2] {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}
}
