package verify

import "strings"

// A question is what a run asks of its choices or of its schedule. Runs that begin alike and get the same answers are
// the same.
type question struct {
	kind int
	of   *term
	n    int
}

// Kinds of questions.
const (
	asksNothing   = iota
	asksCondition // is it true?
	asksOnwards   // does a loop go on, of which it is the condition and that has had n iterations?
	asksKnown     // has it been asked, and is it true?
	asksLong      // are n iterations as many as any loop may have?
	asksEndless   // are n iterations too many for a loop whose end is not known?
	asksRoom      // do n functions wait that are too many?
	asksAhead     // is a loop too far ahead of n tests?
	asksChance    // does one of n cases happen, which none does if the schedule is not random?
)

// answer returns the answer to a question that a run of this path with this schedule asks.
func answer(q question, c *choices, when schedule) bool {
	switch q.kind {
	case asksCondition:
		return c.isTrue(q.of)
	case asksOnwards:
		if _, ok := c.known[q.of]; !ok {
			c.known[q.of] = q.n < c.iterations && c.random.IntN(100) < c.onwards
		}
		return c.known[q.of]
	case asksKnown:
		return c.known[q.of]
	case asksLong:
		return q.n >= c.longest
	case asksEndless:
		return q.n > c.iterations+8
	case asksRoom:
		return q.n > when.window
	case asksAhead:
		return q.n > when.ahead
	}
	return when.random != nil && when.random.IntN(q.n) == 0
}

// isTrue returns how a condition turns out.
func (c *choices) isTrue(of *term) bool {
	b, ok := c.known[of]
	if !ok {
		c.asked++
		b = c.random.IntN(100) < c.percent
		if c.only > 0 {
			b = c.asked == c.only
		}
		if strings.HasPrefix(of.op, "==:") && (of.args[0].op == "nil" || of.args[1].op == "nil") {
			b = c.random.IntN(100) < c.nils
			if of.args[0].op == "result" || of.args[1].op == "result" { // an error, mostly
				b = c.random.IntN(100) < 75
			}
		}
		c.known[of] = b
	}
	return b
}

// A story is what runs do that have got the same answers so far: they ask the next question or come to an end. A run
// costs much more than its questions. Where conditions are few, half of the paths are like others.
type story struct {
	asks question // asksNothing: they end, or no run has come here
	then [2]*story
	end  *outcome
}

// after is how the story goes on after an answer.
func (s *story) after(isTrue bool) **story {
	if isTrue {
		return &s.then[1]
	}
	return &s.then[0]
}

// goOn follows the story as choices and schedule answer. It returns how it ends or, where no run has got the same
// answers, those so far.
func (s *story) goOn(c *choices, when schedule) (end *outcome, told []bool) {
	for s != nil && s.asks.kind != asksNothing {
		isTrue := answer(s.asks, c, when)
		told = append(told, isTrue)
		s = *s.after(isTrue)
	}
	if s == nil {
		return nil, told
	}
	return s.end, told
}

// ask returns the answer to a question, and goes on with the story.
func (r *run) ask(q question) (isTrue bool) {
	if len(r.told) > 0 {
		isTrue, r.told = r.told[0], r.told[1:]
	} else {
		isTrue = answer(q, r.choices, r.when)
	}
	switch r.at.asks {
	case question{}:
		r.at.asks = q
	case q:
	default:
		panic("two runs with the same answers are not the same")
	}
	next := r.at.after(isTrue)
	if *next == nil {
		*next = new(story)
	}
	r.at = *next
	return isTrue
}

// happens reports whether one of n cases happens.
func (r *run) happens(n int) bool { return r.ask(question{asksChance, nil, n}) }
