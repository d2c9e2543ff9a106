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
	began  time.Duration // when the last iteration did; 0: not known
	tests  int           // that it ran ahead of
	alone  time.Duration // how long an iteration takes that the program waits for, at best; 0: not known
	round  time.Duration // when the round of iterations began that is measured; 0: there is none
	count  int           // iterations in it
	each   time.Duration // how long iterations take in a round, at best and on average; 0: not known
}

// begin notes that an iteration begins now, and runs ahead of the given number of tests.
func (p *pace) begin(now time.Duration, tests int) {
	isFurther := tests > p.tests // it did not wait as long as it will have to
	p.began, p.tests = now, tests
	if tests == 0 || p.round == 0 || isFurther && !p.isAway {
		p.round, p.count = now, 0
		return
	}
	p.count++
	if p.count >= 2*(tests+1) { // else it may not be known yet what the first one has to wait for
		each := (now - p.round) / time.Duration(p.count)
		if p.each == 0 || each < p.each {
			p.each = each
		}
		p.round, p.count = now, 0
	}
}

// waited notes that a wait has ended now, for the test of the last iteration and no others.
func (p *pace) waited(now time.Duration) {
	if alone := now - p.began; p.began > 0 && (p.alone == 0 || alone < p.alone) {
		p.alone = alone
	}
}

// atOnce notes that the test of the last iteration is about to run, and that there are no others:
// the loop did not run ahead.
func (p *pace) atOnce(now time.Duration) {
	p.waited(now)
	p.begin(now, 0)
}

// most returns how many tests are worth running ahead of, as far as is known. It is half as many again as the last
// rounds needed: if they were too few, the next round shows it.
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
