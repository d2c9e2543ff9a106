package timing

import "time"
import "batch"

func single(data []Batch) time.Duration {
	start := time.Now()
	batch.Loss(w, data[0])
	return time.Since(start) // want `AT020`
}
