package optim

import (
	"math"
	"slices"
)

// A Schedule is a function of the number of steps that were taken before, from 0. It returns the number by which the
// learning rate of the next one is multiplied, from 0 on. The host computes it, so it costs the device nothing. A
// Schedule that depends on losses is a [Plateau]. Write one of your own as a function:
//
//	opt.Schedule = func(step int) float64 { return 1 / math.Sqrt(float64(1+step)) }
//
// The functions below panic with a [tensor.Mistake] if a number of steps is less than 1, or a factor is negative,
// infinite or NaN.
type Schedule func(step int) float64

// Every returns a Schedule in which each step of s lasts n steps: s counts epochs of n steps.
//
//asyncgen:api pure
func (s Schedule) Every(n int) Schedule {
	mustSteps("Every", n)
	return func(step int) float64 { return s(step / n) }
}

// StepDecay multiplies the rate by factor after each number of steps: factor to the power of step/every, rounded down.
//
//asyncgen:api pure
func StepDecay(every int, factor float64) Schedule { return Exponential(factor).Every(every) }

// Milestones multiplies the rate by factor at each of the given steps.
//
//asyncgen:api pure
func Milestones(factor float64, steps ...int) Schedule {
	mustFactors("Milestones", factor)
	at := slices.Sorted(slices.Values(steps))
	return func(step int) float64 {
		passed, _ := slices.BinarySearch(at, step+1)
		return math.Pow(factor, float64(passed))
	}
}

// Exponential multiplies the rate by factor after each step.
//
//asyncgen:api pure
func Exponential(factor float64) Schedule {
	mustFactors("Exponential", factor)
	return func(step int) float64 { return math.Pow(factor, float64(step)) }
}

// Linear goes from one factor to another in the given number of steps along a straight line, and stays there.
//
//asyncgen:api pure
func Linear(from, to float64, steps int) Schedule {
	mustFactors("Linear", from, to)
	mustSteps("Linear", steps)
	return func(step int) float64 { return from + (to-from)*min(float64(step)/float64(steps), 1) }
}

// Warmup raises the rate along a straight line: the factors of the first steps are 1/steps, 2/steps and so on to
// 1. Then it does what then does from its step 0 on; nil leaves the rate as it is.
//
//asyncgen:api pure
func Warmup(steps int, then Schedule) Schedule {
	mustSteps("Warmup", steps)
	return func(step int) float64 {
		switch {
		case step < steps:
			return float64(step+1) / float64(steps)
		case then == nil:
			return 1
		}
		return then(step - steps)
	}
}

// Cosine lowers the factor from 1 to end in the given number of steps, along half a period of a cosine, and stays there
// (Loshchilov and Hutter 2017).
//
//asyncgen:api pure
func Cosine(steps int, end float64) Schedule {
	mustFactors("Cosine", end)
	mustSteps("Cosine", steps)
	return func(step int) float64 { return cosine(1, end, min(float64(step)/float64(steps), 1)) }
}

// CosineRestarts is [Cosine] that begins again at 1 instead of reaching its end. The first period has
// the given number of steps, and each period has longer times as many as the one before (Loshchilov and
// Hutter 2017). It panics with a [tensor.Mistake] if longer is less than 1.
//
//asyncgen:api pure
func CosineRestarts(steps, longer int, end float64) Schedule {
	mustFactors("CosineRestarts", end)
	mustSteps("CosineRestarts", steps)
	mustSteps("CosineRestarts", longer)
	return func(step int) float64 {
		lasts := steps
		if longer == 1 {
			step %= steps
		}
		for step >= lasts {
			step -= lasts
			if lasts > math.MaxInt/longer { // no step is behind it
				return cosine(1, end, float64(step)/(float64(lasts)*float64(longer)))
			}
			lasts *= longer
		}
		return cosine(1, end, float64(step)/float64(lasts))
	}
}

// OneCycle raises the factor from 1/25 to 1 in the first 30 % of the steps, lowers it to 1/250,000 in the others, both
// along half a period of a cosine, and stays there (Smith and Topin 2018). The numbers are those of PyTorch.
//
//asyncgen:api pure
func OneCycle(steps int) Schedule {
	mustSteps("OneCycle", steps)
	const first = 1 / 25.0
	top, last := 0.3*float64(steps)-1, float64(steps-1)
	return func(step int) float64 {
		if at := float64(step); at <= top {
			return cosine(first, 1, at/top)
		} else if at < last {
			return cosine(1, first/1e4, (at-top)/(last-top))
		}
		return first / 1e4
	}
}

// cosine goes from one number to another, as at goes from 0 to 1.
func cosine(from, to, at float64) float64 { return to + (from-to)*(1+math.Cos(math.Pi*at))/2 }

func mustSteps(name string, n int) {
	if n < 1 {
		wrong(name, "the number of steps is %d, want 1 or more", n)
	}
}

func mustFactors(name string, factors ...float64) {
	for _, f := range factors {
		if !(f >= 0) || math.IsInf(f, 1) {
			wrong(name, "the factor is %v, want a number from 0 on", f)
		}
	}
}
