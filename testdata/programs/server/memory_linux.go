package main

import (
	"bytes"
	"log"
	"os"
	"strconv"
)

// residentBytes is how much memory the process has.
func residentBytes() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		log.Fatal(err)
	}
	pages, err := strconv.ParseInt(string(bytes.Fields(text)[1]), 10, 64)
	if err != nil {
		log.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
