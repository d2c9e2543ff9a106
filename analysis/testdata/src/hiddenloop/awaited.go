package hiddenloop

import (
	"net/http"
	"slices"

	"batch"
)

// The network takes longer than the device: an info.
func asked(urls []string, b Batch) (total float64) {
	for _, u := range slices.Backward(urls) {
		if _, err := http.Get(u); err == nil {
			total += batch.Loss(w, b).Item() // want `AT012`
		}
	}
	return total
}
