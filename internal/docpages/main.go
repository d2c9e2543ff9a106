// Command docpages writes the generated pages of the docs: one for each rule of the linter, one
// with all codes of the generator, and one with all operations and their names in other libraries.
//
//	go run ./internal/docpages docs
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/asyncgen/asyncgen/analysis"
	"github.com/asyncgen/asyncgen/gen"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: docpages FOLDER")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "docpages:", err)
		os.Exit(1)
	}
}

// write writes all pages below dir, and removes those of rules that no longer exist.
func write(dir string) error {
	old, err := filepath.Glob(filepath.Join(dir, "linter", "AT[0-9][0-9][0-9].md"))
	if err != nil {
		return err
	}
	for _, file := range old {
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	pages := make(map[string]string)
	for name, text := range analysis.Pages() {
		pages[filepath.Join("linter", name)] = text
	}
	pages[filepath.Join("generator", "codes.md")] = gen.CodesPage()
	pages[filepath.Join("guide", "operations.md")] = operationsPage()
	for name, text := range pages {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			return err
		}
	}
	return nil
}
