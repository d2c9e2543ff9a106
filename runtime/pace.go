package asyncrt

import (
	"math"
	"time"
)

// A pace finds out how far ahead of its tests a loop has to run for the device to be busy all the time. To run further
// ahead is no use, and discarded work costs time. By Little's law, the distance is the time from the beginning of an
// iteration until its test has run, divided by the time between the beginnings of two iterations. The zero pace knows
// nothing yet.
//
// On a CPU the goroutine that waits does the work, so running ahead gains little. There a loop runs ahead only if
// iterations are found to take a fifth less time; to find out, it is ahead of one test.
type pace struct {
	isAway bool          // tests need values of other devices than CPUs
	began  time.Duration // when the last iteration began; 0 if unknown
	tests  int           // how many the last iteration ran ahead of
	alone  time.Duration // the shortest time from an iteration to its test, if no other was queued; 0 if unknown
	round  time.Duration // when the present round of measured iterations began; 0 if there is none
	count  int           // iterations in the round
	each   time.Duration // the mean time of an iteration in the fastest round; 0 if unknown
}

// begin notes that an iteration begins now, and runs ahead of the given number of tests.
func (p *pace) begin(now time.Duration, tests int) {
	isFurther := tests > p.tests // so it waited less than later iterations will
	p.began, p.tests = now, tests
	if tests == 0 || p.round == 0 || isFurther && !p.isAway {
		p.round, p.count = now, 0
		return
	}
	p.count++
	if p.count >= 2*(tests+1) { // in a shorter round, the loop may not have had to wait yet
		each := (now - p.round) / time.Duration(p.count)
		if p.each == 0 || each < p.each {
			p.each = each
		}
		p.round, p.count = now, 0
	}
}

// waited notes that a wait has ended now, which was for the test of the last iteration alone.
func (p *pace) waited(now time.Duration) {
	if alone := now - p.began; p.began > 0 && (p.alone == 0 || alone < p.alone) {
		p.alone = alone
	}
}

// atOnce notes that the test of the last iteration is about to run, and that no others are queued: the loop did not
// run ahead.
func (p *pace) atOnce(now time.Duration) {
	p.waited(now)
	p.begin(now, 0)
}

// most returns how many tests it is worth running ahead of, as far as is known. It is 1.5 times what the fastest
// round needed: if that was too few, the next round shows it.
func (p *pace) most() int {
	isKnown := p.alone > 0 && p.each > 0
	switch {
	case !isKnown && p.isAway:
		return math.MaxInt
	case !isKnown:
		return 1
	case !p.isAway && p.each > p.alone-p.alone/5:
		return 0
	}
	return int(3*p.alone/(2*p.each)) + 1
}
