package mpi

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"unsafe"

	"github.com/asyncgen/asyncgen/device/internal/dl"
	"github.com/asyncgen/asyncgen/device/internal/ffi"
)

// Constants of the standard ABI, from mpi.h as chapter 20 of MPI 5.0 has it. Handles are as wide as pointers.
const (
	commWorld    = 0x101
	commSelf     = 0x102
	errorsReturn = 0x143
	requestNull  = 0x180
	typeByte     = 0x247

	errTruncate = 15
	errInStatus = 19

	threadSerialized = 2048

	maxErrorString = 512
)

// statusWords is the size of an MPI_Status in words: source, tag, error and five more ints.
const statusWords = 4

// A fn is a function of MPI, or one of C that the library brings along.
type fn uint8

const (
	abiGetVersion fn = iota
	initThread
	commRank
	commSize
	commSetErrhandler
	isend
	irecv
	testsome
	getCount
	errorString
	errorClass
	abort
	finalize

	cExit
	cMemcmp
	cPpoll
	cPrctl

	numFns
)

var fnNames = [numFns]string{"MPI_Abi_get_version", "MPI_Init_thread", "MPI_Comm_rank", "MPI_Comm_size", "MPI_Comm_set_errhandler",
	"MPI_Isend_c", "MPI_Irecv_c", "MPI_Testsome", "MPI_Get_count_c", "MPI_Error_string", "MPI_Error_class", "MPI_Abort", "MPI_Finalize",
	"exit", "memcmp", "ppoll", "prctl"}

// A library is a library of MPI that is open. One goroutine at a time calls it.
type library struct {
	name    string
	address [numFns]uintptr
}

// libraries lists what openLibrary tries: ASYNCGEN_LIBMPI, or else the library that pip has installed beside the
// program that started this one or beside the mpiexec in PATH, and then the system's.
func libraries() []string {
	if path := os.Getenv("ASYNCGEN_LIBMPI"); path != "" {
		return []string{path}
	}
	names := []string{"libmpi_abi.so.1", "libmpi.so.12", "libmpi.so.40", "libmpi.so"}
	for _, launcher := range []string{launcher(), onPath("mpiexec")} {
		beside := filepath.Join(filepath.Dir(filepath.Dir(launcher)), "lib", names[0])
		if info, err := os.Stat(beside); filepath.IsAbs(launcher) && err == nil && info.Mode().IsRegular() {
			return append([]string{beside}, names...)
		}
	}
	return names
}

// launcher returns the executable of the process that started this one, or nothing if that is secret.
func launcher() string {
	path, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", os.Getppid()))
	return path
}

func onPath(program string) string {
	path, _ := exec.LookPath(program)
	return path
}

// remedy says what to install where no library can be used.
const remedy = "install one with the standard ABI of MPI 5 (MPICH 5 or later, such as that of pip install mpich, or Open MPI 6), " +
	"and start the program with its mpiexec; ASYNCGEN_LIBMPI names its libmpi_abi.so.1 if that is not found"

// openLibrary opens the first library that it can, and refuses it if it has not the standard ABI. The native ABIs
// differ: the handles of MPICH are ints, those of Open MPI addresses. A call with the wrong ones can end the program,
// so nothing else is called before the version is known.
func openLibrary() (*library, error) {
	var opened *dl.Library
	var err error
	dl.KeepSignals(func() { opened, err = dl.Open(libraries()...) })
	if err != nil {
		return nil, fmt.Errorf("no library of MPI can be opened: %w\n%s", err, remedy)
	}
	l := &library{name: opened.Name}
	for f := range numFns {
		if l.address[f], err = opened.Symbol(fnNames[f]); f == abiGetVersion && (err != nil || !l.hasStandardABI()) {
			return nil, fmt.Errorf("%s has an ABI of its own: %s", l.name, remedy)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %s", err, remedy)
		}
	}
	return l, nil
}

// hasStandardABI reports whether the library has version 1 of the ABI. Native ABIs say -1.
func (l *library) hasStandardABI() bool {
	var a ffi.Arena
	version, address := a.Words(1)
	code := int32(ffi.Do(l.address[abiGetVersion], address, address+4))
	return code == 0 && int32(version[0]) == 1
}

// call calls a function that returns an error code.
func (l *library) call(f fn, args ...uintptr) error {
	if code := int32(ffi.Do(l.address[f], args...)); code != 0 {
		return l.error(f, code)
	}
	return nil
}

// error returns the library's text for an error code.
func (l *library) error(f fn, code int32) error {
	var a ffi.Arena
	text, address := a.Bytes(maxErrorString)
	_, length := a.Words(1)
	if ffi.Do(l.address[errorString], uintptr(uint32(code)), address, length) != 0 {
		return fmt.Errorf("%s: error %d", fnNames[f], code)
	}
	text, _, _ = bytes.Cut(text, []byte{0})
	return fmt.Errorf("%s: %s", fnNames[f], bytes.ReplaceAll(bytes.TrimSpace(text), []byte("\n"), []byte("; ")))
}

// class returns the class of an error code.
func (l *library) class(code int32) int32 {
	var a ffi.Arena
	class, address := a.Words(1)
	ffi.Do(l.address[errorClass], uintptr(uint32(code)), address)
	return int32(class[0])
}

// start initialises the library and returns the rank of this process and the size of the job.
//
// One goroutine at a time calls the library, on threads that change, so it needs no locks: MPI_THREAD_SERIALIZED.
func (l *library) start() (rank, size int, err error) {
	var a ffi.Arena
	result, address := a.Words(1)
	dl.KeepSignals(func() { err = l.call(initThread, 0, 0, threadSerialized, address) })
	if err != nil {
		return 0, 0, err
	}
	if level := int32(result[0]); level < threadSerialized {
		return 0, 0, fmt.Errorf("%s gives thread level %d, MPI_THREAD_SERIALIZED (%d) is needed", l.name, level, threadSerialized)
	}
	// Errors that belong to no communicator are raised on MPI_COMM_SELF.
	err = errors.Join(l.call(commSetErrhandler, commWorld, errorsReturn), l.call(commSetErrhandler, commSelf, errorsReturn),
		l.call(commRank, commWorld, address), l.call(commSize, commWorld, address+4))
	return int(int32(result[0])), int(result[0] >> 32), err
}

// addressOf returns the address of memory that is not on a stack, or 0 if there is none.
func addressOf(mem []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(mem))) }
