package loopprint

import (
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"batch"
)

type logger struct {
	out  io.Writer
	name string
	bad  []string
}

func (l *logger) Logf(format string, args ...any) {
	fmt.Fprintf(l.out, format, args...)
}

func (l *logger) Log(args ...any) { l.Logf("%s: %s", l.name, fmt.Sprint(args...)) }

func (l *logger) Named(format string, args ...any) {
	l.Logf(l.name+": "+format, args...)
}

func (l *logger) Debugf(format string, args ...any) { log.Printf(format, args...) }

func (l *logger) every(n int, format string, args ...any) {
	if n%10 == 0 {
		log.Printf(format, args...)
	}
}

func (l *logger) fatalf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format, args...)
	os.Exit(1)
}

func (l *logger) wrong(format string, args ...any) {
	l.bad = append(l.bad, fmt.Errorf(format, args...).Error())
}

func (l *logger) types(args ...any) {
	args = append(args, "!")
	fmt.Println(args...)
}

type sink interface{ Logf(string, ...any) }

type quiet struct{}

func (quiet) Logf(string, ...any) {}

type printing interface{ Named(string, ...any) }

func wrapped(data []Batch, l *logger, p printing, s sink) {
	say := func(args ...any) { fmt.Fprintln(os.Stderr, args...) }
	for i, b := range data {
		l.Logf("%d %v\n", i, step(b))    // want `l.Logf waits for step\(b\) in each iteration`
		l.Log(i, step(b))                // want `l.Log waits for step\(b\)`
		l.Named("%v", step(b))           // want `l.Named waits for step\(b\)`
		p.Named("%v", step(b))           // want `p.Named waits for step\(b\)`
		say(i, step(b))                  // want `say waits for step\(b\)`
		batch.Logf("%v", step(b))        // want `batch.Logf waits for step\(b\)`
		l.Logf("%.3f\n", step(b).Item()) // want `step\(b\).Item\(\) waits for the device`
		l.Logf("%T %d\n", step(b), b.X.Dim(0))
		l.Logf(strings.Repeat("%v", 1), 1) // nothing to wait for
		l.Debugf("%v", step(b))
		l.every(i, "%v", step(b))
		l.wrong("%v", step(b))
		l.types(step(b))
		s.Logf("%v", step(b)) // one of them doesn't
		if b.X.Dim(0) == 0 {
			l.fatalf("%v", step(b))
		}
	}
}
