package compare

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// watchPeak begins to follow the largest resident size of a process. The
// function that it returns stops that, and returns the size in bytes, or 0.
//
// The tempting Maxrss of the finished process is the wrong figure: it counts
// the memory of whoever started the process, too, which the two share until
// the program is loaded. That of this process is often the larger one.
func watchPeak(pid int) (stop func(*os.ProcessState) int64) {
	end, peak := make(chan struct{}), make(chan int64)
	go func() {
		peak <- followPeak(pid, end)
	}()
	return func(*os.ProcessState) int64 {
		close(end)
		return <-peak
	}
}

// followPeak looks at the process until it ends or end is closed, at
// intervals that are a thousandth of the time it has run.
func followPeak(pid int, end <-chan struct{}) (peak int64) {
	// Kept open, the file belongs to this process even if its number is used again.
	status, err := os.Open("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		<-end
		return 0
	}
	defer status.Close()
	start := time.Now()
	text := make([]byte, 4096)
	for {
		n, err := status.ReadAt(text, 0)
		if n == 0 && err != nil {
			<-end
			return peak
		}
		peak = max(peak, highWater(text[:n]))
		select {
		case <-end:
			return peak
		case <-time.After(max(200*time.Microsecond, time.Since(start)/1000)):
		}
	}
}

// highWater is the largest resident size in bytes that the text of a file
// /proc/PID/status tells, 0 after the process has given back its memory.
func highWater(status []byte) int64 {
	_, rest, _ := bytes.Cut(status, []byte("\nVmHWM:"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	kb, err := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(line, []byte(" kB")))), 10, 64)
	if err != nil {
		return 0
	}
	return kb << 10
}
