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
	Copy      time.Duration // of an Upload or Download, beside its bytes
	Bandwidth float64       // of copies, in bytes a second; 0: unlimited
	Queue     int           // how many commands may be unfinished; 0: 1,024
	Clock     Clock         // what the times are measured by; nil: the system's
}

// Defaults are the costs of a device where ASYNCGEN_SIM says nothing else.
func Defaults() Options {
	return Options{Launch: 5 * time.Microsecond, Latency: 50 * time.Microsecond, Copy: 20 * time.Microsecond, Bandwidth: 16e9}
}

func (o *Options) transfer(bytes int64) time.Duration {
	if o.Bandwidth == 0 {
		return 0
	}
	return time.Duration(float64(bytes) / o.Bandwidth * float64(time.Second))
}

// Parse reads settings as in ASYNCGEN_SIM, "n=2,latency=1ms"; what is not
// mentioned has its default. n is how many devices there are.
func Parse(settings string) (n int, o Options, err error) {
	n, o = 1, Defaults()
	if settings == "" {
		return n, o, nil
	}
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
		default:
			err = errors.New("there are n, launch, latency, copy and bandwidth")
		}
		if err != nil {
			return 0, Options{}, fmt.Errorf("ASYNCGEN_SIM: %q: %w", setting, err)
		}
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

var bandwidthUnits = []struct {
	name string
	size float64
}{{"GB/s", 1e9}, {"MB/s", 1e6}, {"kB/s", 1e3}, {"B/s", 1}}

func parseBandwidth(s string) (float64, error) {
	for _, unit := range bandwidthUnits {
		if number, ok := strings.CutSuffix(s, unit.name); ok {
			if v, err := strconv.ParseFloat(number, 64); err == nil && v > 0 && v <= 1e15 {
				return v * unit.size, nil
			}
			break
		}
	}
	return 0, errors.New("not a bandwidth such as 16GB/s")
}

func formatBandwidth(v float64) string {
	if v == 0 {
		return "unlimited bandwidth"
	}
	for _, unit := range bandwidthUnits {
		if v >= unit.size || unit.size == 1 {
			return strconv.FormatFloat(v/unit.size, 'g', 4, 64) + " " + unit.name
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
