//go:build !amd64 || noasm || race

package vec

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// askCaches asks the system for the caches of the first core.
func askCaches() (c Caches) {
	folders, err := filepath.Glob("/sys/devices/system/cpu/cpu0/cache/index*")
	if err != nil {
		return c
	}
	for _, folder := range folders {
		read := func(name string) string {
			text, _ := os.ReadFile(filepath.Join(folder, name))
			return strings.TrimSpace(string(text))
		}
		if level, err := strconv.Atoi(read("level")); err == nil && read("type") != "Instruction" {
			c.add(level, cacheBytes(read("size")))
		}
	}
	return c
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
