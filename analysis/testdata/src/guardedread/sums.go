package guardedread

import (
	"fmt"

	"batch"
)

// A sum or an average that is shown now and then needs the values of all iterations: see AT001.
func shownSums(data []Batch) {
	total, average := 0.0, 0.0
	for i, b := range data {
		total += batch.Loss(w, b).Item()
		average = 0.9*average + 0.1*batch.Loss(w, b).Item()
		if i%20 == 19 {
			fmt.Println(i, total/20, average)
			total = 0
		}
	}
}

// One of each iteration's own doesn't.
func ownSums(data []Batch) {
	for i, b := range data {
		sum := 0.0
		sum += batch.Loss(w, b).Item() // want `AT008`
		if i%20 == 19 {
			fmt.Println(i, sum)
		}
	}
}
