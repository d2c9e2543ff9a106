package lastread

import (
	"net/http"

	"batch"
)

// The network takes longer than the device: an info.
func asked(urls []string, b Batch) (last float64) {
	for _, u := range urls {
		if _, err := http.Get(u); err == nil {
			last = batch.Loss(w, b).Item() // want `AT002`
		}
	}
	return last
}
