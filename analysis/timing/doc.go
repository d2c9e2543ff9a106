// Package timing is a rule of asyncgen vet.
//
// # AT020: elapsed time of work that is not finished
//
// Calls of tensor operations return when the work is enqueued. A clock that is
// read before and after them measures how long enqueueing takes, often a
// thousandth of the truth, unless something waits before the second reading.
//
// The rule reports time.Since and Sub when work is enqueued after the clock was
// started and there is a way from there to the second reading on which nothing
// waits for it. It also reports Enqueued of a Timer, the time of enqueueing, beside
// a text that speaks of something else.
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
// Silent: elapsed times that are only compared, as deadlines are, but not with other elapsed times,
// which says what is faster; clocks that are read a second time after a wait, which tell the two times
// apart; names and texts beside the clock or Timer that speak of enqueueing, dispatching, launching,
// submitting or issuing; loops that wait in each iteration, up to what the last one leaves. A loop is taken to
// run at least once. A deferred function literal reads the clock at every return, and is reported if
// its function waits nowhere.
//
// A function that is given the time at which a clock was started, or another
// function whose time it takes, and one that a function which starts a clock
// returns, read clocks as well: defer track(time.Now()), defer timer()(),
// timed("product", func() { y = x.MatMul(w) }). So do methods of a span, which has the time in a field that
// was set where the span was made, or by another method: s := span{"product", time.Now()}, and later s.end().
//
// Missed: clocks that are kept in fields of what is not local, and those of functions in packages that
// can't reach a tensor; work that is enqueued through interfaces and function
// values that nothing is known about and that return no tensor.
// Waiting for a tensor that was computed before the clock started counts for
// nothing; waiting for any other counts for everything.
//
// Fix: inserts a wait for all work before the second reading; in a loop, where
// it would cost more than it tells, none is offered. It is asyncrt.WaitIdle,
// which leaves failures to those who read the results.
package timing
