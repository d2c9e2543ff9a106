package mpi

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/wire"
)

var _ wire.Transport = (*Transport)(nil)

var seed = flag.Uint64("seed", 0, "of random tests; 0: a new one")

// programs are what the ranks of a job run in tests: this executable, with a name and arguments in the environment.
var programs = map[string]func(t *Transport, args []string) error{}

// bare are programs that call the library themselves, with the addresses of its functions.
var bare = map[string]func(rank int, symbol func(string) uintptr){}

// runBare runs one of them and ends the process.
var runBare func(program func(rank int, symbol func(string) uintptr))

const programVariable = "ASYNCGEN_TEST_RANK"

func TestMain(m *testing.M) {
	if args := strings.Fields(os.Getenv(programVariable)); len(args) > 0 {
		if args[0] == "absent" && os.Getenv("PMI_RANK") == "1" {
			os.Exit(0)
		}
		if program := bare[args[0]]; program != nil {
			runBare(program)
		}
		Run(func(t *Transport) error { return programs[args[0]](t, args[1:]) })
	}
	flag.Parse()
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	os.Exit(m.Run())
}

var memory = device.NewAllocator(device.HostMemory, 4<<30)

// bytesOf returns memory that is not on Go's heap, and a function that gives it back.
func bytesOf(n int) ([]byte, func()) {
	b, err := memory.Alloc(int64(max(n, 1)))
	if err != nil {
		panic(err)
	}
	return unsafe.Slice((*byte)(b.Ptr), n), func() { memory.Free(b) }
}
