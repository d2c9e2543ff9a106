package asyncrt

import (
	"testing"
	"time"
)

// A model is a device as a pace may find it. An iteration takes the host and the device so long, and its value
// needs the latency to reach the host.
type model struct{ host, device, latency time.Duration }

// run returns how long a loop of n iterations takes. The loop runs ahead as p says or, if p is nil, as far as most.
// run also returns how far it ran ahead in the end, and at most.
func (m model) run(n int, p *pace, most int) (took time.Duration, ahead, furthest int) {
	var now, busy time.Duration
	var pending []time.Duration // when the values of tests arrive
	passed := 0
	bound := func() int {
		if p == nil {
			return min(most, passed/2)
		}
		return min(p.most(), passed/2)
	}
	for range n {
		if p != nil {
			p.begin(now, len(pending))
		}
		now += m.host
		busy = max(busy, now) + m.device
		pending = append(pending, busy+m.latency)
		for len(pending) > 0 && pending[0] <= now {
			pending = pending[1:]
			passed++
		}
		for len(pending) > bound() {
			alone := len(pending) == 1
			now = max(now, pending[0])
			if p != nil && alone {
				p.waited(now)
			}
			pending = pending[1:]
			passed++
		}
		furthest = max(furthest, len(pending))
	}
	return max(now, busy+m.latency), len(pending), furthest
}

// With every model, a loop under a pace takes little longer than with the best bound, including the time in which
// the pace learns. It does not run much further ahead than the smallest bound that is as fast. On a CPU it does not
// run ahead if that saves little time.
func TestPace(t *testing.T) {
	const us = time.Microsecond
	for _, host := range []time.Duration{us, 10 * us, 100 * us} {
		for _, dev := range []time.Duration{5 * us, 50 * us, 500 * us} {
			for _, latency := range []time.Duration{0, 20 * us, 200 * us, 2000 * us} {
				m := model{host, dev, latency}
				const n = 400
				best, least := time.Duration(0), 0
				for most := n; most > 0; most-- {
					took, _, _ := m.run(n, nil, most)
					if best == 0 {
						best = took
					}
					if took <= best+best/50 {
						least = most
					}
				}
				took, ahead, _ := m.run(n, &pace{isAway: true}, 0)
				if took > best+best/4 || ahead > 2*least+2 {
					t.Errorf("%+v: %v, %d ahead in the end; %v is possible, with %d", m, took, ahead, best, least)
				}
				if latency > 0 { // not of a CPU
					continue
				}
				took, ahead, furthest := m.run(n, &pace{}, 0)
				atOnce, _, _ := m.run(n, nil, 0)
				if took > best+best/4 || furthest > 2*least+2 || atOnce < best+best/5 && (ahead > 0 || furthest > 1) {
					t.Errorf("%+v, on a CPU: %v, %d ahead in the end and %d at most; %v is possible, with %d, and %v with none", m, took, ahead, furthest, best, least, atOnce)
				}
			}
		}
	}
}
