// Command doctor lists the devices that can compute tensors on this machine, and says why others
// can't. The command asyncgen runs it as a program of its own, because it imports all backends, and
// some of these make a program depend on system libraries.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/asyncgen/asyncgen/device"
	_ "github.com/asyncgen/asyncgen/device/cpu"
	_ "github.com/asyncgen/asyncgen/device/opencl"
	_ "github.com/asyncgen/asyncgen/device/sim"
)

func main() {
	out := bufio.NewWriter(os.Stdout)
	report(out, device.Diagnose())
	reportDefault(out)
	if err := out.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, "doctor:", err)
		os.Exit(2)
	}
}

// report prints what was found, a paragraph for each backend.
func report(w io.Writer, found []device.Diagnosis) {
	fmt.Fprintf(w, "%s/%s, %s\n", runtime.GOOS, runtime.GOARCH, runtime.Version())
	for _, d := range found {
		fmt.Fprintf(w, "\n%s: %s\n", d.Driver, verdict(&d))
		for _, line := range d.Devices {
			fmt.Fprintln(w, "  "+line)
		}
		if d.Err != nil {
			item(w, "why", d.Err.Error())
		}
		for _, note := range d.Notes {
			item(w, "note", note)
		}
	}
	fmt.Fprint(w, "\ncuda: there is no such backend yet\n")
	fmt.Fprint(w, "\nPrograms use a GPU if they import its backend, as in\n\timport _ \"github.com/asyncgen/asyncgen/device/opencl\"\nand if ASYNCGEN_DEVICE or the program itself names it.\n")
}

// reportDefault prints the default device of a program that imports all backends.
func reportDefault(w io.Writer) {
	if d, err := device.Open(""); err != nil {
		fmt.Fprintf(w, "\nby default: programs end with an error\n")
		item(w, "why", err.Error())
	} else {
		fmt.Fprintf(w, "\nby default: %s\n", d.Name())
	}
}

// verdict sums up d in a few words.
func verdict(d *device.Diagnosis) string {
	switch {
	case len(d.Devices) == 0:
		return "not used"
	case d.Kind == device.KindSimulated:
		return "used when named; it is a model, and says nothing about hardware"
	case d.Kind == device.KindGPU:
		return "used by programs that import device/" + d.Driver
	}
	return "used"
}

// item prints text behind a heading; further lines are aligned with the first.
func item(w io.Writer, heading, text string) {
	heading = "  " + heading + ": "
	for line := range strings.Lines(text) {
		fmt.Fprintln(w, heading+strings.TrimRight(line, "\n"))
		heading = strings.Repeat(" ", len(heading))
	}
}
