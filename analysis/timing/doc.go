// Package timing is a rule of asyncgen vet.
//
// # AT020: elapsed time of work that is not finished
//
// Calls of tensor operations return when the work is enqueued. A clock that is
// read before and after them measures how long enqueueing takes, often a
// thousandth of the truth, unless something waits before the second reading.
//
// The rule reports time.Since, Sub and differences such as time.Now().UnixNano() - start if work is
// enqueued after the clock was started, and control can get from there to the second reading without
// waiting for the work. It also reports Enqueued of a Timer, the time of enqueueing, beside a text
// that speaks of something else.
//
// WRONG
//
//	start := time.Now()
//	y := x.MatMul(w)
//	fmt.Println(time.Since(start)) // how long it took to ask
//
// RIGHT
//
//	start := time.Now()
//	y := x.MatMul(w)
//	if err := y.Wait(); err != nil {
//		return err
//	}
//	fmt.Println(time.Since(start)) // how long it took to do
//
// It also reports how much work a loop has counted until a deadline, divided by the time that it had, or the other way
// around, if nothing waits for the work: float64(n) / d.Seconds().
//
// Silent:
//
//   - elapsed times that are only compared, as deadlines are; a comparison with another elapsed
//     time says which is faster, and is reported; so is a comparison of a clock that each iteration
//     of a loop starts and asks, since it says how long an iteration takes;
//   - clocks that are read a second time after a wait, with no other work enqueued in between or with
//     both times in one print, which tell enqueueing and finishing apart;
//   - names and texts beside the clock or Timer that speak of enqueueing, dispatching, launching,
//     submitting or issuing;
//   - loops that wait in each iteration, except for what the last iteration leaves. A loop is taken
//     to run at least once.
//
// A deferred function literal reads the clock at every return. It is reported if its function waits
// nowhere.
//
// Some functions read a clock that others have started, and count as readings where they are
// called:
//
//   - a function that is given the time of the start: defer track(time.Now());
//   - a function that another one returns, which has started the clock: defer timer()();
//   - a function that takes the time of a function it is given: timed("product", func() { y =
//     x.MatMul(w) });
//   - a method of a span that has the time in a field, set where the span was made or by another
//     method, in this package or in one that can reach a tensor: s := span{"product", time.Now()}, and
//     later s.end().
//
// Missed: clocks in fields of what is not local; clocks in functions of packages that can't reach a
// tensor; work that is enqueued through interfaces and function values of which nothing is known,
// and which return no tensor. Waiting for a tensor that was computed before the clock started
// counts for nothing; waiting for any other counts for everything.
//
// Fix: inserts a wait for all work before the second reading. In a loop it would cost more than it
// tells, so none is offered there. The wait is asyncrt.WaitIdle, which leaves failures to those who
// read the results.
package timing
