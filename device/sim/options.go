package sim

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Options are the costs of a device. A cost of 0 is no cost.
type Options struct {
	Launch    time.Duration // of a compute command, at least
	Latency   time.Duration // from the end of a command until it is seen to be finished
	Copy      time.Duration // of a copy, in addition to the time of its bytes
	Bandwidth float64       // of Upload and of Download, in bytes a second; 0: unlimited
	Link      float64       // of copies to other devices, in bytes a second; 0: unlimited
	Queue     int           // how many commands may be in flight; 0: 1,024
	Clock     Clock         // tells the time; nil: the system's clock

	Virtual bool          // the program's virtual time replaces Clock; only then the fields below matter
	Flops   float64       // operations a second; 0: unlimited
	Memory  float64       // bytes a second that commands read and write; 0: unlimited
	Host    time.Duration // the cost of enqueueing an operation
}

// Defaults returns the costs of a device where ASYNCGEN_SIM does not set them.
func Defaults() Options {
	return Options{Launch: 5 * time.Microsecond, Latency: 50 * time.Microsecond, Copy: 20 * time.Microsecond, Bandwidth: 16e9, Link: 50e9}
}

// VirtualDefaults returns the costs with clock=virtual where ASYNCGEN_SIM does not set them.
func VirtualDefaults() Options {
	o := Defaults()
	o.Virtual, o.Flops, o.Memory, o.Host = true, 10e12, 1e12, time.Microsecond
	return o
}

// String describes the costs for people.
func (o *Options) String() string {
	s := fmt.Sprintf("%v a launch, %v latency, %v a copy, %s, %s between devices", o.Launch, o.Latency, o.Copy, formatRate(o.Bandwidth, "B/s"), formatRate(o.Link, "B/s"))
	if !o.Virtual {
		return "simulated accelerator: " + s
	}
	return fmt.Sprintf("simulated accelerator in virtual time: %s, %s, %s to and from memory, %v to enqueue", formatRate(o.Flops, "FLOP/s"), s, formatRate(o.Memory, "B/s"), o.Host)
}

// Parse parses settings as in ASYNCGEN_SIM: "n=2,latency=1ms". Settings that are missing have their
// defaults. n is the number of devices.
func Parse(settings string) (n int, o Options, err error) {
	n, o = 1, Defaults()
	if settings == "" {
		return n, o, nil
	}
	virtual := VirtualDefaults() // its Flops, Memory and Host are used if the clock is virtual
	var needs string             // a setting that only means something in virtual time
	for _, setting := range strings.Split(settings, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(setting), "=")
		switch name {
		case "n":
			if n, err = strconv.Atoi(value); err != nil || n < 1 {
				err = errors.New("not a number from 1")
			}
		case "launch":
			o.Launch, err = parseDuration(value)
		case "latency":
			o.Latency, err = parseDuration(value)
		case "copy":
			o.Copy, err = parseDuration(value)
		case "bandwidth":
			o.Bandwidth, err = parseBandwidth(value)
		case "link":
			o.Link, err = parseBandwidth(value)
		case "clock":
			if o.Virtual = value == "virtual"; !o.Virtual && value != "real" {
				err = errors.New("not real or virtual")
			}
		case "flops":
			virtual.Flops, err = parseRate(value)
			needs = setting
		case "memory":
			virtual.Memory, err = parseBandwidth(value)
			needs = setting
		case "host":
			virtual.Host, err = parseDuration(value)
			needs = setting
		default:
			err = errors.New("there are n, launch, latency, copy, bandwidth, link and clock, and with clock=virtual flops, memory and host")
		}
		if err != nil {
			return 0, Options{}, fmt.Errorf("ASYNCGEN_SIM: %q: %w", setting, err)
		}
	}
	switch {
	case o.Virtual:
		o.Flops, o.Memory, o.Host = virtual.Flops, virtual.Memory, virtual.Host
	case needs != "":
		return 0, Options{}, fmt.Errorf("ASYNCGEN_SIM: %q: this has a meaning with clock=virtual alone", needs)
	}
	return n, o, nil
}

func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, errors.New("not a duration such as 50us")
	}
	return d, nil
}

// units are the multiples in which rates are written.
var units = []struct {
	name string
	size float64
}{{"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"k", 1e3}, {"", 1}}

func parseBandwidth(s string) (float64, error) {
	if number, ok := strings.CutSuffix(s, "B/s"); ok {
		if v, err := parseRate(number); err == nil {
			return v, nil
		}
	}
	return 0, errors.New("not a bandwidth such as 16GB/s")
}

// parseRate parses a positive number with a unit.
func parseRate(s string) (float64, error) {
	for _, unit := range units {
		if number, ok := strings.CutSuffix(s, unit.name); ok {
			if v, err := strconv.ParseFloat(number, 64); err == nil && v > 0 && v <= 1e15 {
				return v * unit.size, nil
			}
			break
		}
	}
	return 0, errors.New("not a rate such as 10T")
}

func formatRate(v float64, of string) string {
	if v == 0 {
		return "unlimited " + of
	}
	for _, unit := range units {
		if v >= unit.size || unit.size == 1 {
			return strconv.FormatFloat(v/unit.size, 'g', 4, 64) + " " + unit.name + of
		}
	}
	return ""
}

// A Clock tells the time and waits for it. Tests use clocks of their own, so they can check the
// model without waiting.
type Clock interface {
	// Now returns the time since some fixed moment. It never goes back.
	Now() time.Duration
	// Wait returns nil when Now() has reached t, or the context's error when that ends first.
	Wait(ctx context.Context, t time.Duration) error
}

// systemClock sleeps while a timer is precise enough, then yields until the time has come. In a
// bubble of testing/synctest time stands still until all goroutines sleep, so there it sleeps to
// the end.
type systemClock struct{ start time.Time }

func (c systemClock) Now() time.Duration { return time.Since(c.start) }

func (c systemClock) Wait(ctx context.Context, t time.Duration) error {
	// Timers fire up to about 150 µs late: the slack of the system, and waking up a thread.
	const lateness = 150 * time.Microsecond
	if left := t - c.Now(); left > 2*lateness {
		if err := sleep(ctx, left-lateness); err != nil {
			return err
		}
	}
	var s stillness
	for now := c.Now(); now < t; now = c.Now() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if s.stands(now) {
			return sleep(ctx, t-now)
		}
		runtime.Gosched()
	}
	return nil
}

// A stillness notices that time stands still.
type stillness struct {
	last time.Duration
	n    int // readings of the clock that were equal to last
}

// stands is called with each reading of a clock. It reports whether so many readings in a row were
// equal that only sleep helps.
func (s *stillness) stands(now time.Duration) bool {
	if now != s.last {
		*s = stillness{last: now}
	}
	s.n++
	return s.n > 100
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
