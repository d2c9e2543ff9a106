// Command rulepages writes the pages of the rules to a folder, and removes those of
// rules that are no more:
//
//	go run ./internal/rulepages ../docs/linter
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/asyncgen/asyncgen/analysis"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: rulepages FOLDER")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "rulepages:", err)
		os.Exit(1)
	}
}

func write(dir string) error {
	old, err := filepath.Glob(filepath.Join(dir, "AT[0-9][0-9][0-9].md"))
	if err != nil {
		return err
	}
	for _, file := range old {
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for name, text := range analysis.Pages() {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			return err
		}
	}
	return nil
}
