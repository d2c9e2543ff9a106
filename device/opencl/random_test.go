package opencl

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/opencl/clfault"
)

// A model is the reference of a random program: the same numbers as on the device, in Go slices.
type model struct {
	t       *testing.T
	b       *Backend
	rnd     *rand.Rand
	buffers []modelBuffer
	batch   []device.Command
	fails   []bool      // for each command of the batch: it is to fail
	outs    []modelOut  // of the batch
	tickets []modelTick // submitted batches that look has not checked
}

type modelBuffer struct {
	buf    *device.Buffer
	values []int64
}

type modelOut struct {
	host *device.Buffer
	want []int64
}

type modelTick struct {
	last  device.Ticket
	fails []bool
	outs  []modelOut
}

// step adds one command that draws its operands.
func (m *model) step() {
	i, j, k := m.rnd.IntN(len(m.buffers)), m.rnd.IntN(len(m.buffers)), m.rnd.IntN(len(m.buffers))
	x, y, z := &m.buffers[i], &m.buffers[j], &m.buffers[k]
	n := min(len(x.values), len(y.values), len(z.values))
	n -= m.rnd.IntN(min(n, 5))
	switch m.rnd.IntN(8) {
	case 0, 1:
		values := make([]int64, n)
		for i := range values {
			values[i] = m.rnd.Int64()
		}
		m.add(command(upload, n, x.buf, hostOf(values...)), false)
		copy(x.values, values)
	case 2, 3:
		host := device.HostBuffer(int64(8 * n))
		m.add(command(download, n, host, x.buf), false)
		m.outs = append(m.outs, modelOut{host, slices.Clone(x.values[:n])})
	case 4:
		m.add(command(quotient, n, alloc(m.t, m.b, n), x.buf, m.zeros(n)), true)
	default:
		m.add(command(sum, n, x.buf, y.buf, z.buf), false)
		for i := range n {
			x.values[i] = y.values[i] + z.values[i]
		}
	}
}

// zeros is a fresh buffer of zeros.
func (m *model) zeros(n int) *device.Buffer {
	buf := alloc(m.t, m.b, n)
	m.add(command(fill, n, buf), false)
	return buf
}

func (m *model) add(c device.Command, fails bool) {
	m.batch, m.fails = append(m.batch, c), append(m.fails, fails)
}

func (m *model) submit() {
	m.t.Helper()
	last, err := m.b.Submit(m.batch)
	if err != nil {
		m.t.Fatal(err)
	}
	m.tickets = append(m.tickets, modelTick{last, m.fails, m.outs})
	m.batch, m.fails, m.outs = nil, nil, nil
}

// look waits for the oldest batch that is not checked, and checks it.
func (m *model) look() {
	m.t.Helper()
	batch := m.tickets[0]
	m.tickets = m.tickets[1:]
	if err := m.b.Wait(m.t.Context(), batch.last); err != nil {
		m.t.Fatal(err)
	}
	for i, fails := range batch.fails {
		ticket := batch.last - device.Ticket(len(batch.fails)-1-i)
		if err := m.b.Failure(ticket); (err != nil) != fails {
			m.t.Fatalf("command %d: error %v", ticket, err)
		}
	}
	for _, out := range batch.outs {
		if got := device.Slice[int64](out.host, 0, len(out.want)); !slices.Equal(got, out.want) {
			m.t.Fatalf("batch up to command %d: a download of %d differs", batch.last, len(out.want))
		}
	}
}

// Random programs of copies, kernels and failures, in batches of any size, give what the same
// commands give in Go, one after the other.
func TestRandomPrograms(t *testing.T) {
	seed := seedOf(t)
	b := counted(t)
	m := &model{t: t, b: b, rnd: rand.New(rand.NewPCG(seed, 0))}
	for _, n := range []int{1, 7, 300, 5000, 70_000, 150_000} {
		m.buffers = append(m.buffers, modelBuffer{alloc(t, b, n), make([]int64, n)})
		mustDo(t, b, command(fill, n, m.buffers[len(m.buffers)-1].buf))
	}
	for range 150 {
		for range 1 + m.rnd.IntN(1+m.rnd.IntN(40)) {
			m.step()
		}
		m.submit()
		for len(m.tickets) > m.rnd.IntN(8) {
			m.look()
		}
	}
	for len(m.tickets) > 0 {
		m.look()
	}
}

// seedOf returns the seed of a random test and logs it.
func seedOf(t *testing.T) uint64 {
	seed, _ := strconv.ParseUint(os.Getenv("DEVICETEST_SEED"), 10, 64)
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d: DEVICETEST_SEED=%[1]d tests the same again", seed)
	return seed
}

// counted opens the first device, and checks at the end of the test that nothing leaks.
func counted(t *testing.T) *Backend {
	c := clfault.New()
	b, err := open(hooked(t, c))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		nothingIsLeft(t, c)
	})
	return b
}
