package bubble

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// What is called in a bubble runs outside, however many call it at once; a panic comes back; and no time passes meanwhile.
func TestOutside(t *testing.T) {
	if In() {
		t.Error("the test is in a bubble")
	}
	var mu sync.Mutex
	var shared sync.WaitGroup // of inside and outside
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			if !In() {
				t.Error("the bubble is none")
			}
			began := time.Now()
			for range 20 {
				go Outside(func() {
					if In() {
						t.Error("outside is in a bubble")
					}
					mu.Lock()
					defer mu.Unlock()
					shared.Go(func() {})
					shared.Wait()
					time.Sleep(time.Microsecond)
				})
			}
			synctest.Wait()
			func() {
				defer func() {
					if v := recover(); v != "ouch" {
						t.Errorf("the panic is %v", v)
					}
				}()
				Outside(func() { panic("ouch") })
				t.Error("no panic")
			}()
			if took := time.Since(began); took != 0 {
				t.Errorf("%v have passed", took)
			}
		})
	}
	shared.Go(func() {})
	shared.Wait()
	Outside(func() { shared.Go(func() {}) })
}
