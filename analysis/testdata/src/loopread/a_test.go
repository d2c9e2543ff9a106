package loopread

func inTest(data []Batch) (total float64) {
	for _, b := range data {
		total += step(b).Item()
	}
	return total
}
