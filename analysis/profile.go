package analysis

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// The go command runs its tool once for each package and keeps what came of it
// until the package, the tool or the flags change. It knows nothing of files with
// settings and profiles. So the digest of those called asyncgen.json, and of what they
// name, is a part of the tool's version; and [Vet] names the files with profiles in a
// flag and gives their digest in another.

const (
	profileFlag = "-profile="
	digestFlag  = "-profile-digest="
	noProfiles  = "none" // the digest of no file
)

// profileFlags returns the flags that make units use the profiles in the files of
// cfg and in the file asyncgen.json above its folder.
func profileFlags(cfg Config) ([]string, error) {
	files := cfg.Profiles
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("vet: %w", err)
	}
	if found := tensorapi.Find(dir); found != "" {
		profiles, err := tensorapi.Load(found, nil)
		if err != nil {
			return nil, err
		}
		if _, err := lint.SettingsAbove(dir); err != nil {
			return nil, err
		}
		if len(profiles) > 0 {
			files = append(files[:len(files):len(files)], found)
		}
	}
	if len(files) == 0 {
		return []string{digestFlag + noProfiles}, nil
	}
	var flags []string
	for i, file := range files {
		if !filepath.IsAbs(file) {
			file = filepath.Join(dir, file)
		}
		if strings.Contains(file, ",") {
			return nil, fmt.Errorf("vet: %s: the name of a file with profiles can't have a comma", files[i])
		}
		flags = append(flags, file)
	}
	digest, err := tensorapi.Digest(flags...)
	if err != nil {
		return nil, err
	}
	return []string{profileFlag + strings.Join(flags, ","), digestFlag + digest}, nil
}

// useProfiles loads the profiles for a unit: those that the flags in args name, else those in the asyncgen.json at or
// above the unit's folder.
func useProfiles(args []string, dir func() string) error {
	var files []string
	digest := ""
	for _, arg := range args {
		if list, ok := strings.CutPrefix(arg, profileFlag); ok {
			files = append(files, strings.Split(list, ",")...)
		} else if d, ok := strings.CutPrefix(arg, digestFlag); ok {
			digest = d
		}
	}
	if len(files) == 0 {
		if digest == noProfiles {
			return nil
		}
		if found := tensorapi.Find(dir()); found != "" {
			return blocking.LoadProfiles(found)
		}
		return nil
	}
	for _, file := range files {
		if err := blocking.LoadProfiles(file); err != nil {
			return err
		}
	}
	switch want, err := tensorapi.Digest(files...); {
	case err != nil:
		return err
	case digest == "":
		return fmt.Errorf("-profile without -profile-digest=%s, by which go vet knows that a file has changed: \"asyncgen vet -profile FILE\" passes both, and %s needs neither", want, tensorapi.ConfigName)
	case digest != want:
		return errors.New("the files with profiles have changed meanwhile")
	}
	return nil
}

// printVersion prints what go vet takes for the version of its tool, and reports
// whether it did: unitchecker does it as well where there are no files of settings.
func printVersion(w io.Writer, dir string) bool {
	config := ConfigDigest(dir)
	if config == "" {
		return false
	}
	h := sha256.New()
	io.WriteString(h, config)
	self, err := os.Executable()
	if err != nil {
		return false
	}
	f, err := os.Open(self)
	if err != nil {
		return false
	}
	defer f.Close()
	if _, err := io.Copy(h, f); err != nil {
		return false
	}
	_, err = fmt.Fprintf(w, "%s version devel buildID=%x\n", filepath.Base(self), h.Sum(nil))
	return err == nil
}

// ConfigDigest changes with the files called asyncgen.json that packages may have which
// are analysed from the folder dir, with what these name, and with the profiles. It is
// empty if there are none. What keeps findings from one run for the next has to ask.
func ConfigDigest(dir string, profiles ...string) string {
	root, files := configFiles(dir)
	files = append(files, profiles...)
	if len(files) == 0 {
		return ""
	}
	h := sha256.New()
	for _, file := range files {
		// The same settings in another clone say the same of packages outside of it, whose facts are there already.
		name := file
		if rel, err := filepath.Rel(root, file); root != "" && err == nil {
			name = rel
		}
		fmt.Fprintln(h, name)
		if _, err := tensorapi.Load(file, h); err != nil {
			// Others say what is wrong, also after the next change.
			text, _ := os.ReadFile(file)
			h.Write(text)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// configFiles lists the files of settings that packages may have which the go command
// is asked for in dir: those in dir and above, and all others, in its module or workspace, whose folder is root.
func configFiles(dir string) (root string, files []string) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", nil
	}
	root = tensorapi.Root(dir)
	for found := tensorapi.Find(dir); found != ""; found = tensorapi.Find(filepath.Dir(filepath.Dir(found))) {
		files = append(files, found)
		if filepath.Dir(found) == root || root == "" {
			break
		}
	}
	if root == "" {
		return "", files
	}
	filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch name := filepath.Base(path); {
		case err != nil: // nor will the go command read it
		case d.IsDir() && path != root && (name[0] == '.' || name[0] == '_' || name == "node_modules"):
			return filepath.SkipDir
		case name == tensorapi.ConfigName && d.Type().IsRegular() && !slices.Contains(files, path):
			files = append(files, path)
		}
		return nil
	})
	return root, files
}
