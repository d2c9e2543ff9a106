package timing

import "time"

func inTest(asyncrt int) time.Duration {
	start := time.Now()
	w.MatMul(w)
	return time.Since(start) // want `AT020`
}
