package fault

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/asyncgen/asyncgen/device"
)

func init() {
	settings := os.Getenv("ASYNCGEN_FAULT")
	if settings == "" {
		return
	}
	device.OnOpen(func(name string, b device.Backend) (device.Backend, error) {
		s, err := Parse(settings)
		if err != nil || s.Device != "" && s.Device != name {
			return b, err
		}
		wrapped := New(b)
		if s.Log != "" {
			wrapped.struck = func(err *Error) { note(s.Log, name, err) }
		}
		wrapped.Arm(s.Faults)
		return wrapped, nil
	})
}

// Settings are the contents of ASYNCGEN_FAULT.
type Settings struct {
	Faults
	Device string // whose calls fail; "": all devices, and each counts its own calls
	Log    string // a file that gets a line for each injected fault; "": none
}

// Parse parses settings such as
//
//	call=Command,n=17
//	call=Alloc,kind=panic,rate=0.1,seed=3,device=sim:0,log=faults.txt
//	call=Command,kind=lose,kernel=MatMul,n=2
//
// Settings that are missing have the zero value of [Settings]. Calls and kinds have the names that
// their String methods return.
func Parse(settings string) (s Settings, err error) {
	for setting := range strings.SplitSeq(settings, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(setting), "=")
		switch name {
		case "call":
			var i int
			i, err = index(calls[:], value)
			s.Call = Call(i)
		case "kind":
			var i int
			i, err = index(kinds[:], value)
			s.Kind = Kind(i)
		case "kernel":
			s.Kernel = value
		case "n":
			s.N, err = strconv.ParseInt(value, 10, 64)
		case "rate":
			s.Rate, err = strconv.ParseFloat(value, 64)
		case "seed":
			s.Seed, err = strconv.ParseUint(value, 10, 64)
		case "device":
			s.Device = value
		case "log":
			s.Log = value
		default:
			err = errors.New("there are call, kind, kernel, n, rate, seed, device and log")
		}
		if err != nil {
			return Settings{}, fmt.Errorf("ASYNCGEN_FAULT: %q: %w", setting, err)
		}
	}
	if s.Call == 0 {
		return Settings{}, errors.New("ASYNCGEN_FAULT: no call")
	}
	return s, nil
}

// index returns the index of value in names.
func index(names []string, value string) (int, error) {
	i := slices.Index(names, value)
	if i < 0 || value == "" {
		return 0, fmt.Errorf("not one of %s", strings.TrimSpace(strings.Join(names, " ")))
	}
	return i, nil
}

// note adds a line to the log: the device, the call, its number, the kernel and the size. If it
// can't write the log, it ends the program, as a log without lines would look like a run without
// faults.
func note(log, name string, struck *Error) {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = fmt.Fprintf(f, "%s %v %d %q %d\n", name, struck.Call, struck.N, struck.Kernel, struck.Size)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "fault: ASYNCGEN_FAULT: %v\n", err)
		os.Exit(2)
	}
}
