package sametemp

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// named is a test of another name.
type named struct {
	*testing.T
	name string
}

func (n named) Name() string { return n.name }

func TestDir(t *testing.T) {
	var runs [2][]string
	for i := range runs {
		t.Run("", func(t *testing.T) {
			for range 2 {
				dir := Dir(named{t, "Test/an odd name: ü"})
				if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
					t.Errorf("%s has %v, %v; want an empty folder", dir, entries, err)
				}
				if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o666); err != nil {
					t.Error(err)
				}
				runs[i] = append(runs[i], dir)
			}
		})
	}
	if !slices.Equal(runs[0], runs[1]) || runs[0][0] == runs[0][1] {
		t.Errorf("the folders are %q; want the same two in each run", runs)
	}
	for _, dir := range runs[0] {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is there when the test has ended: %v", dir, err)
		}
	}
}
