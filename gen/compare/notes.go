package compare

import (
	"fmt"
	"slices"
	"time"
)

// notes says in words what the figures of d mean, where they do not speak for
// themselves: above all, why nothing was gained.
func notes(d *Device, p *programs) []string {
	if len(d.Differences) > 0 {
		return nil
	}
	o, w := &d.Original, &d.Rewritten
	switch {
	case len(p.applied) == 0:
		return []string{"nothing was rewritten: the two programs are the same, and what differs in time is chance"}
	case o.Sync.Waits == 0:
		return []string{"the program as written never waits for a result that is not there: there is nothing to gain"}
	case slices.Max(w.Times) < slices.Min(o.Times):
		return nil // faster, beyond what runs differ by
	}
	result := "no gain beyond what runs differ by: "
	if slices.Min(w.Times) > slices.Max(o.Times) {
		result = "slower: "
	}
	switch {
	case w.Sync.Waits >= o.Sync.Waits:
		result += "the rewritten program waits as often as the program as written"
	case o.blocked() < o.Time()/4:
		result += fmt.Sprintf("waiting is not where the time goes: as written, it is %s of %s", duration(o.blocked()), duration(o.Time()))
	case w.blocked() >= o.blocked()/2:
		result += fmt.Sprintf("it waits %s times instead of %s, but the device is busy all the time (compute-bound)",
			grouped(w.Sync.Waits), grouped(o.Sync.Waits))
	default:
		result += fmt.Sprintf("it is blocked for %s instead of %s, but the host has as much to do as before", duration(w.blocked()), duration(o.blocked()))
	}
	return []string{result}
}

// blocked is how long the program stood still: for values and at bounds, idle
// or executing operations itself.
func (s *Side) blocked() time.Duration { return time.Duration(s.Sync.BlockedNS()) }
