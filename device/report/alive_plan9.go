package report

import (
	"os"
	"strconv"
)

// isAlive reports whether there is a process with that number, whoever owns it.
func isAlive(pid int) bool {
	_, err := os.Stat("/proc/" + strconv.Itoa(pid))
	return err == nil
}
