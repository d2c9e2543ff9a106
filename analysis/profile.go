package analysis

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// The go command runs its tool once for each package and keeps what came of it
// until the package, the tool or the flags change. It knows nothing of files with
// profiles. So [Vet] names them in a flag and gives their digest in another; and
// a tool that go vet runs by itself, which uses the file that it finds above a
// package, makes the digest of the one above the current folder a part of its
// version.

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

// useProfiles makes the profiles known that a unit is to use, by the command line:
// those that flags name, else those in asyncgen.json above the unit's folder.
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
// whether it did: unitchecker does it as well where there are no profiles.
func printVersion(w io.Writer, dir string) bool {
	file := tensorapi.Find(dir)
	if file == "" {
		return false
	}
	h := sha256.New()
	if profiles, err := tensorapi.Load(file, h); err != nil {
		// Units say what is wrong, also after the next change.
		text, _ := os.ReadFile(file)
		h.Write(text)
	} else if len(profiles) == 0 {
		return false
	}
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
