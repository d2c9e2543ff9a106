package loopprint

import (
	"fmt"
	"net/http"

	"batch"
)

// The network takes longer than the device: an info.
func asked(urls []string, b Batch) {
	for _, u := range urls {
		if _, err := http.Get(u); err == nil {
			fmt.Println(batch.Loss(w, b)) // want `AT004`
		}
	}
}
