package compare

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// notes says in words what the figures of d mean, where they do not speak for
// themselves: above all, why nothing was gained.
func notes(d *Device, p *programs) []string {
	if len(d.Differences) > 0 {
		return nil
	}
	return append(slices.Clone(p.notes), gain(d, p)...)
}

// gain says what d gains, or why nothing, where its figures do not say so.
func gain(d *Device, p *programs) []string {
	if d.Virtual {
		return []string{"waits are by the clock of the model, and the time is what the machine takes to compute them: it says nothing about the device"}
	}
	o, w := &d.Original, &d.Rewritten
	oFast, oSlow := quartiles(o.Times)
	wFast, wSlow := quartiles(w.Times)
	switch {
	case len(p.applied) == 0:
		return []string{"nothing was rewritten: the two programs are the same, and what differs in time is chance"}
	case o.Sync.Waits == 0:
		return []string{"the program as written never waits for a result that is not there: there is nothing to gain"}
	case wSlow < oFast:
		return nil // faster, beyond what runs differ by
	}
	result := fmt.Sprintf("%s, which is within what runs differ by: %s to %s as written, %s to %s rewritten; ",
		speed(o.Time(), w.Time()), duration(oFast), duration(oSlow), duration(wFast), duration(wSlow))
	if wFast > oSlow {
		result = "slower: "
	}
	switch {
	case w.Sync.Waits >= o.Sync.Waits:
		result += "the rewritten program waits as often as the program as written"
	case o.blocked() < o.Time()/4:
		result += fmt.Sprintf("waiting is not where the time goes: as written, it is %s of %s", duration(o.blocked()), duration(o.Time()))
	case w.blocked() >= o.blocked()/2 && time.Duration(w.Sync.IdleNS) >= w.blocked()/2:
		result += fmt.Sprintf("it waits %s times instead of %s, and is blocked for %s instead of %s, for most of which the device has nothing to do: "+
			"most waits are in what was not rewritten, or can't come later", grouped(w.Sync.Waits), grouped(o.Sync.Waits), duration(w.blocked()), duration(o.blocked()))
	case w.blocked() >= o.blocked()/2:
		result += fmt.Sprintf("it waits %s times instead of %s, but the device is busy most of that time (compute-bound)",
			grouped(w.Sync.Waits), grouped(o.Sync.Waits))
	default:
		result += fmt.Sprintf("it is blocked for %s instead of %s, but the host has as much to do as before", duration(w.blocked()), duration(o.blocked()))
	}
	return []string{result}
}

// besides says how what the program prints on a device, got, differs from what it prints on the
// first, if it does. It may: devices need not round in the same way.
func besides(want, got []byte, first string) []string {
	lines, total := diffLines(want, got, 1)
	if total == 0 {
		return nil
	}
	side := func(s *string) string {
		if s == nil {
			return "nothing"
		}
		return strconv.Quote(*s)
	}
	return []string{fmt.Sprintf("as written, stdout differs from that on %s in %s: line %d is %s there, %s here", first, plural(total, "line"),
		lines[0].Line, side(lines[0].Want), side(lines[0].Got))}
}

// quartiles returns the lower and the upper quartile of times, so that a single run that was held
// up does not count. Of fewer than four runs they are the fastest and the slowest.
func quartiles(times []time.Duration) (low, high time.Duration) {
	sorted := slices.Sorted(slices.Values(times))
	i := len(sorted) / 4
	return sorted[i], sorted[len(sorted)-1-i]
}

// blocked is how long the program stood still: for values and at bounds, idle
// or executing operations itself.
func (s *Side) blocked() time.Duration { return time.Duration(s.Sync.BlockedNS()) }
