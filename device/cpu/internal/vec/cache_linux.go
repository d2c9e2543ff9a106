//go:build !amd64 || noasm || race

package vec

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// largestCache is the size of the largest cache of the first core, in bytes, or 0 where the system does not tell.
func largestCache() int {
	files, err := filepath.Glob("/sys/devices/system/cpu/cpu0/cache/index*/size")
	if err != nil {
		return 0
	}
	largest := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		largest = max(largest, cacheBytes(strings.TrimSpace(string(text))))
	}
	return largest
}

// cacheBytes is a size such as 512K, or 0 if it is not understood.
func cacheBytes(size string) int {
	unit := 1
	switch {
	case strings.HasSuffix(size, "K"):
		unit = 1 << 10
	case strings.HasSuffix(size, "M"):
		unit = 1 << 20
	}
	n, err := strconv.Atoi(strings.TrimRight(size, "KM"))
	if err != nil {
		return 0
	}
	return n * unit
}
