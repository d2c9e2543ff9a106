package mpi

import (
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/device/internal/dl"
	"github.com/asyncgen/asyncgen/device/internal/ffi"
)

var speed = flag.Bool("speed", false, "measure messages beside MPI_Sendrecv and MPI_Allreduce, on two ranks")

// TestSpeed prints how long it takes two ranks to exchange messages of a size: by a Transport, and by the library's own
// functions, which wait without a pause. All are measured in turns.
func TestSpeed(t *testing.T) {
	if !*speed {
		t.Skip("a measurement: -speed")
	}
	for _, network := range []bool{false, true} {
		h := how{ranks: 2, network: network}
		columns := []string{"exchange", "sendrecv", "allreduce"}
		var tables [][]string
		for _, program := range columns {
			o := start(t, h, program)
			o.mustEnd(t, 0)
			tables = append(tables, strings.Split(strings.TrimSpace(o.stdout), "\n"))
		}
		fmt.Printf("network=%t: microseconds, and GB/s in each direction\n%10s", network, "bytes")
		for _, c := range columns {
			fmt.Printf("%22s", c)
		}
		for i, n := range sizes {
			fmt.Printf("\n%10d", n)
			for _, table := range tables {
				fmt.Printf("%22s", table[i])
			}
		}
		fmt.Println()
	}
}

var sizes = []int{1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20}

// measure prints the median time of exchange for each size. Both ranks do the same.
func measure(rank int, exchange func(a, b []byte)) {
	for _, n := range sizes {
		a, freeA := bytesOf(n)
		b, freeB := bytesOf(n)
		fill(a, 1)
		var times []time.Duration
		for i := range min(max(64<<20/n, 9), 400) + 3 {
			begin := time.Now()
			exchange(a, b)
			if i >= 3 {
				times = append(times, time.Since(begin))
			}
		}
		slices.Sort(times)
		if median := times[len(times)/2]; rank == 0 {
			fmt.Printf("%.1f us %6.2f\n", float64(median.Nanoseconds())/1e3, float64(n)/float64(median.Nanoseconds()))
		}
		freeA()
		freeB()
	}
}

func init() {
	runBare = callBare
	programs["exchange"] = func(t *Transport, _ []string) error {
		other := 1 - t.Rank()
		ended := make(chan error, 2)
		note := func(err error) { ended <- err }
		measure(t.Rank(), func(a, b []byte) {
			t.Receive(other, b, note)
			t.Send(other, a, note)
			if one, two := <-ended, <-ended; one != nil || two != nil {
				panic(fmt.Sprint(one, two))
			}
		})
		return nil
	}
	bare["sendrecv"] = func(rank int, symbol func(string) uintptr) {
		other := uintptr(1 - rank)
		sendrecv := symbol("MPI_Sendrecv")
		measure(rank, func(a, b []byte) {
			ffi.Do(sendrecv, addressOf(a), uintptr(len(a)), typeByte, other, 1, addressOf(b), uintptr(len(b)), typeByte, other, 1, commWorld, 0)
		})
	}
	bare["allreduce"] = func(rank int, symbol func(string) uintptr) {
		const inPlace, float32s, sum = 1, 0x210, 0x21
		allreduce := symbol("MPI_Allreduce")
		measure(rank, func(a, b []byte) {
			ffi.Do(allreduce, inPlace, addressOf(b), uintptr(len(b)/4), float32s, sum, commWorld)
		})
	}
}

// callBare runs a program without a Transport, and ends the process.
func callBare(program func(rank int, symbol func(string) uintptr)) {
	runtime.LockOSThread()
	l, err := openLibrary()
	if err != nil {
		panic(err)
	}
	rank, _, err := l.start()
	if err != nil {
		panic(err)
	}
	opened, err := dl.Open(l.name)
	if err != nil {
		panic(err)
	}
	program(rank, func(name string) uintptr {
		address, err := opened.Symbol(name)
		if err != nil {
			panic(err)
		}
		return address
	})
	if err := l.call(finalize); err != nil {
		panic(err)
	}
	ffi.Do(l.address[cExit], 0)
}
