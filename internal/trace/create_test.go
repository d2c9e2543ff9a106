package trace

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// TestCreate: only new files, empty ones and traces are written to.
func TestCreate(t *testing.T) {
	dir := t.TempDir()
	var old bytes.Buffer
	NewWriter(&old, places).Close()
	for _, c := range []struct {
		name, has string
		ok        bool
	}{
		{"new", "", true}, {"trace", old.String(), true}, {"short", head[:10], false}, {"text", "important", false}, {"json", "[]", false},
	} {
		path := filepath.Join(dir, c.name)
		if c.has != "" {
			if err := os.WriteFile(path, []byte(c.has), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		f, err := Create(path)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
		if err == nil {
			f.Close()
			c.has = ""
		}
		if text, err := os.ReadFile(path); err != nil || string(text) != c.has {
			t.Errorf("%s: %v, now there is %q", c.name, err, text)
		}
	}
	if _, err := Create(dir); err == nil {
		t.Error("a folder is a trace")
	}
	if _, err := Create(filepath.Join(dir, "no", "folder")); err == nil {
		t.Error("a file in a folder that does not exist")
	}
	f, err := Create(filepath.Join(dir, "of-%p"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if want := "of-" + strconv.Itoa(os.Getpid()); filepath.Base(f.Name()) != want {
		t.Errorf("%s, want %s", f.Name(), want)
	}
	// Who was there first goes on with its own file.
	first, err := Create(filepath.Join(dir, "both"))
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	second, err := Create(filepath.Join(dir, "both"))
	if err != nil {
		t.Skip("files in use can't be removed here: ", err)
	}
	defer second.Close()
	w := NewWriter(second, places)
	if _, err := first.WriteString("of the first"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(second.Name()); err != nil || !bytes.Equal(text, old.Bytes()) {
		t.Errorf("%v, %q", err, text)
	}
}
