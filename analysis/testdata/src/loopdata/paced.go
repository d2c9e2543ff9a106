package loopdata

import (
	"time"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// health looks at a model each minute: what it makes then costs nothing.
func health(say func(*tensor.Tensor)) {
	for range time.Tick(time.Minute) {
		say(tensor.Zeros(1, 32).MulScalar(2))
	}
}

func ticks(t *time.Ticker, say func(*tensor.Tensor)) {
	for {
		<-t.C
		say(tensor.Zeros(1, 32).MulScalar(2))
	}
}

// watched does so for each message.
func watched(messages <-chan string, say func(*tensor.Tensor)) {
	for range messages {
		say(tensor.Zeros(1, 32).MulScalar(2)) // want `tensor.Zeros\(1, 32\).MulScalar\(2\) makes the same tensor in each iteration`
	}
}
