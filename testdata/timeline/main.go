// Command timeline draws the picture of README: a few steps of a loop on a time axis, as written and as rewritten.
// It runs a program of testdata/programs both ways on a simulated accelerator. How long an average step takes, for how much of it the program waits
// and for how much the device has nothing to compute, is what the reports of these runs say.
//
//	go run ./testdata/timeline -o docs/timeline.svg
package main

import (
	"context"
	"flag"
	"fmt"
	"html"
	"log"
	"os"
	"strings"
	"time"

	"github.com/asyncgen/asyncgen/gen/compare"
)

const (
	program = "./testdata/programs/metrics"
	steps   = 2048 // of its loop
	device  = "sim:0"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("timeline: ")
	file := flag.String("o", "", "the file to write; standard output by default")
	flag.Parse()
	r, err := compare.Run(context.Background(), compare.Config{Package: program, Devices: []string{device}})
	if err != nil {
		log.Fatal(err)
	}
	if !r.Same() {
		log.Fatal("the rewritten program does something else")
	}
	d := r.Devices[0]
	svg := draw(stepOf(d.Original), stepOf(d.Rewritten), fmt.Sprintf("%s on %s, a simulated accelerator; %s, %s", program, device, r.Machine, time.Now().Format(time.DateOnly)))
	if *file == "" {
		_, err = os.Stdout.WriteString(svg)
	} else {
		err = os.WriteFile(*file, []byte(svg), 0o666)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// A step is an average step of the loop.
type step struct {
	takes, waits, idles time.Duration // of takes, the program waits so long, and the device has nothing to compute so long
	reads               int64         // all waits of the run
}

func stepOf(s compare.Side) step {
	return step{
		takes: s.Time() / steps,
		waits: time.Duration(s.Sync.WaitNS / steps),
		idles: time.Duration(s.Sync.IdleNS / steps),
		reads: s.Sync.Waits,
	}
}

// Colours and measures, in pixels.
const (
	busy, waiting, idle = "#1c7ed6", "#ffc9c9", "#f1f3f5"

	left, right = 90, 880
	lane        = 26
)

// draw draws as many steps of both forms as the axis has room for, which is five of the original.
func draw(original, rewritten step, caption string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 290" font-family="sans-serif" font-size="13">`+"\n")
	fmt.Fprintf(&b, `<rect width="900" height="290" fill="white"/>`+"\n")
	span := 5 * original.takes
	x := func(t time.Duration) float64 { return left + (right-left)*float64(t)/float64(span) }
	box := func(y int, from, to time.Duration, colour string) {
		if to = min(to, span); from < to {
			fmt.Fprintf(&b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s" stroke="white"/>`+"\n", x(from), y, x(to)-x(from), lane, colour)
		}
	}
	text := func(x float64, y int, s string) {
		fmt.Fprintf(&b, `<text x="%.0f" y="%d">%s</text>`+"\n", x, y, html.EscapeString(s))
	}
	rows := func(y int, title string, s step) {
		text(left, y, fmt.Sprintf("%s: %d µs a step, %d waits in %d steps", title, s.takes.Microseconds(), s.reads, steps))
		text(10, y+27, "program")
		text(10, y+59, "device")
		together := max(1, int(steps/s.reads)) // a wait stands for so many steps
		for at := time.Duration(0); at < span; at += time.Duration(together) * s.takes {
			n := time.Duration(together)
			box(y+10, at, at+n*(s.takes-s.waits), busy)
			box(y+10, at+n*(s.takes-s.waits), at+n*s.takes, waiting)
		}
		for at := time.Duration(0); at < span; at += s.takes {
			box(y+42, at, at+s.idles, idle)
			box(y+42, at+s.idles, at+s.takes, busy)
		}
	}
	rows(24, "As written", original)
	rows(134, "Rewritten", rewritten)
	for i, item := range []struct{ colour, name string }{{busy, "works"}, {waiting, "waits for a value"}, {idle, "has nothing to compute"}} {
		at := left + 200*i
		fmt.Fprintf(&b, `<rect x="%d" y="226" width="14" height="14" fill="%s"/>`+"\n", at, item.colour)
		text(float64(at+20), 238, item.name)
	}
	fmt.Fprintf(&b, `<text x="%d" y="272" fill="#868e96" font-size="11">%s</text>`+"\n</svg>\n", left, html.EscapeString("Averages of a run of "+caption))
	return b.String()
}
