package device

import (
	"sync"
	"testing"
	"time"
)

func TestVirtualClock(t *testing.T) {
	var c VirtualClock
	if c.Now() != 0 || c.Spend(5) != 5 || c.Reach(3) != 0 || c.Reach(9) != 4 || c.Now() != 9 {
		t.Errorf("the clock is at %v", c.Now())
	}
	var wg sync.WaitGroup
	waited := make([]time.Duration, 4)
	for i := range waited {
		wg.Go(func() {
			for at := range time.Duration(1000) {
				waited[i] += c.Reach(9 + at)
			}
		})
	}
	wg.Wait()
	var sum time.Duration
	for _, w := range waited {
		sum += w
	}
	if c.Now() != 9+999 || sum != 999 {
		t.Errorf("the clock is at %v, after waits of %v", c.Now(), sum)
	}
}

func TestVirtualOf(t *testing.T) {
	if clock, _ := VirtualOf(nil); clock != nil {
		t.Error("there is a clock without a backend")
	}
}
