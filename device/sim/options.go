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

// Options are the costs of a device; what is 0 costs nothing.
type Options struct {
	Launch    time.Duration // of a compute command, at least
	Latency   time.Duration // from the end of a command until it is seen to be finished
	Copy      time.Duration // of a copy, beside its bytes
	Bandwidth float64       // of Upload and of Download, in bytes a second; 0: unlimited
	Link      float64       // of copies to other devices, likewise
	Queue     int           // how many commands may be unfinished; 0: 1,024
	Clock     Clock         // what the times are measured by; nil: the system's

	Virtual bool          // there is the program's time instead of a Clock, and what follows has a meaning
	Flops   float64       // operations a second; 0: unlimited
	Memory  float64       // bytes a second that commands read and write; 0: unlimited
	Host    time.Duration // of enqueueing an operation
}

// Defaults are the costs of a device where ASYNCGEN_SIM says nothing else.
func Defaults() Options {
	return Options{Launch: 5 * time.Microsecond, Latency: 50 * time.Microsecond, Copy: 20 * time.Microsecond, Bandwidth: 16e9, Link: 50e9}
}

// VirtualDefaults are those where it says clock=virtual.
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

// Parse reads settings as in ASYNCGEN_SIM, "n=2,latency=1ms"; what is not
// mentioned has its default. n is how many devices there are.
func Parse(settings string) (n int, o Options, err error) {
	n, o = 1, Defaults()
	if settings == "" {
		return n, o, nil
	}
	virtual := VirtualDefaults() // with what the settings say
	var needs string             // a setting that has a meaning in virtual time alone
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

// units are what rates are multiples of.
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

// parseRate reads a positive number with a unit.
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

// A Clock tells the time and waits for it. Tests bring one of their own, so
// that they can check the model without waiting.
type Clock interface {
	// Now is the time since some moment. It never goes back.
	Now() time.Duration
	// Wait returns nil when Now() has reached t, or the context's error when that ends first.
	Wait(ctx context.Context, t time.Duration) error
}

// systemClock sleeps while that is precise enough, and yields for the rest; but if time stands still meanwhile, as in
// a bubble of testing/synctest until everybody is asleep, it sleeps.
type systemClock struct{ start time.Time }

func (c systemClock) Now() time.Duration { return time.Since(c.start) }

func (c systemClock) Wait(ctx context.Context, t time.Duration) error {
	// Timers fire up to some 150 us late: the system's slack and a thread to wake up.
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

// stands is called with each reading of a clock. It reports whether so many were the same that only sleep helps.
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
