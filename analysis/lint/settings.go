package lint

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/asyncgen/asyncgen/analysis/internal/jsonfile"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// Settings are what a file called [tensorapi.ConfigName] says about rules, for the
// packages in its folder and below, down to those that have another such file nearer. The
// file is in the folder of a module or workspace, or below it:
//
//	{
//		"rules": {"AT005": "warning", "AT024": "off", "AT001": {"warning": "error"}},
//		"paths": {
//			"internal/legacy": {"all": "off", "AT011": "on"},
//			"*_test.go":       {"AT020": "info"}
//		},
//		"reasons": "required"
//	}
//
// A rule is "off", "on", or has a severity: "error", "warning" or "info" is then that of all its
// findings. "on" means what no setting would. An object, as for AT001, changes only the findings that
// would be warnings, or infos. The word all stands for the rules that the same object does not name.
// What a path says goes before what rules says, and of two paths that match a file the later one
// counts.
//
// Paths are relative to the folder of the file, with slashes. In them ? stands for a character, * for
// any number of characters but slashes, ** for any number of folders, [a-z] for one of these
// characters, and {a,b} for a or b. The path of a folder stands for all files in it. A path without a
// slash stands for files and folders of that name in any folder.
//
// With "reasons": "required", comments that suppress findings need a reason, also those for
// golangci-lint, //nolint:asyncgen. With "optional", none needs one. Without it, //asyncgen:ignore does
// and //nolint:asyncgen doesn't.
type Settings struct {
	root    string // the folder of the file
	file    string
	rules   levels
	paths   []pathLevels
	reasons string
}

// levels says what happens to the findings of rules, by the rule's id or "all".
type levels map[string]level

// A level says what happens to findings, by the severity that they have without it.
type level map[Severity]Severity

type pathLevels struct {
	glob  *regexp.Regexp
	rules levels
}

// as returns the severity that l gives to a rule's findings of severity s, if it says anything about them.
func (l levels) as(rule string, s Severity) (Severity, bool) {
	for _, key := range []string{rule, "all"} {
		if level, ok := l[key]; ok {
			to, ok := level[s]
			return to, ok
		}
	}
	return "", false
}

// File returns the name of the file, empty if there is none.
func (s *Settings) File() string { return s.file }

// In returns the severity, in a file, of findings that have the severity by without settings. It may be "off".
func (s *Settings) In(rule, file string, by Severity) Severity {
	if as, ok := s.byPath(rule, file, by); ok {
		return as
	}
	return s.Of(rule, by)
}

// byPath returns what the settings for the path of a file say.
func (s *Settings) byPath(rule, file string, by Severity) (as Severity, ok bool) {
	if len(s.paths) == 0 {
		return "", false
	}
	rel, inside := s.relative(file)
	for _, p := range s.paths {
		if to, says := p.rules.as(rule, by); inside && says && p.glob.MatchString(rel) {
			as, ok = to, true
		}
	}
	return as, ok
}

// relative returns the path of a file relative to the folder of the settings, if it is in that.
func (s *Settings) relative(file string) (string, bool) {
	rel, err := filepath.Rel(s.root, file)
	if err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel), true
	}
	root, errRoot := filepath.EvalSymlinks(s.root)
	file, errFile := filepath.EvalSymlinks(file)
	if errRoot != nil || errFile != nil {
		return "", false
	}
	rel, err = filepath.Rel(root, file)
	return filepath.ToSlash(rel), err == nil && filepath.IsLocal(rel)
}

// named are the rules that were asked for by their ids.
var named []string

// Ask says that these rules were asked for by their ids. They apply even if the settings switch them off for all
// files. It is called before the analysis begins.
func Ask(rules ...string) { named = append(named, rules...) }

// severity is In for rules that were asked for, and off for findings that are not to be reported.
func (s *Settings) severity(rule, file string, by Severity) Severity {
	if _, ok := s.byPath(rule, file, by); !ok && slices.Contains(named, rule) && s.Of(rule, by) == off {
		return by
	}
	return s.In(rule, file, by)
}

// Of returns the severity that the settings give to findings which have the severity by without them,
// in files for which no path says anything else. It may be "off".
func (s *Settings) Of(rule string, by Severity) Severity {
	if as, ok := s.rules.as(rule, by); ok {
		return as
	}
	return by
}

// SettingsAbove returns the settings for packages in dir: those of the nearest file in dir or above, in the same module
// or workspace.
func SettingsAbove(dir string) (*Settings, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	file := tensorapi.Find(dir)
	if file == "" {
		return new(Settings), nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return ParseSettings(file, text)
}

var settings sync.Map // by folder: func() (*Settings, error)

// knownSettings is SettingsAbove, but reads each folder's settings once.
func knownSettings(dir string) (*Settings, error) {
	read, ok := settings.Load(dir)
	if !ok {
		read, _ = settings.LoadOrStore(dir, sync.OnceValues(func() (*Settings, error) { return SettingsAbove(dir) }))
	}
	return read.(func() (*Settings, error))()
}

// ParseSettings reads the settings in the text of a file. Errors have the form
// "file:line:column: what is wrong", one line for each mistake.
func ParseSettings(file string, text []byte) (*Settings, error) {
	s := &Settings{root: filepath.Dir(file), file: file}
	r := jsonfile.NewReader(file, text)
	r.Object("the file", func(key string) {
		switch key {
		case "rules":
			s.rules = readLevels(r, key)
		case "paths":
			r.Object(`"paths"`, func(pattern string) {
				glob, err := globOf(pattern)
				if err != nil {
					r.Errorf("path %q: %v", pattern, err)
				}
				s.paths = append(s.paths, pathLevels{glob, readLevels(r, pattern)})
			})
		case "reasons":
			s.reasons = readWord(r, `"reasons"`, "required", "optional")
		default:
			if !slices.Contains(tensorapi.ConfigKeys, key) {
				r.Errorf("there is no setting %q%s", key, jsonfile.DidYouMean(key, tensorapi.ConfigKeys))
			}
			r.Skip()
		}
	})
	r.End()
	return s, r.Err()
}

// readWord reads one of the given words.
func readWord(r *jsonfile.Reader, what string, words ...string) string {
	list := `"` + strings.Join(words[:len(words)-1], `", "`) + `" or "` + words[len(words)-1] + `"`
	if r.Next() != '"' {
		r.Point()
		r.Errorf("%s is %s", what, list)
		r.Skip()
		return ""
	}
	word, _ := r.Token().(string)
	if !slices.Contains(words, word) {
		r.Errorf("%s is %s, not %q%s", what, list, word, jsonfile.DidYouMean(word, words))
	}
	return word
}

// readLevels reads an object about rules.
func readLevels(r *jsonfile.Reader, what string) levels {
	l := make(levels)
	r.Object(fmt.Sprintf("%q", what), func(rule string) {
		if known := append(IDs(), "all"); !slices.Contains(known, rule) {
			r.Errorf("there is no rule %q%s", rule, jsonfile.DidYouMean(rule, known))
		}
		l[rule] = readLevel(r, rule)
	})
	return l
}

// readLevel reads what is said about one rule.
func readLevel(r *jsonfile.Reader, rule string) level {
	words := []string{string(Error), string(Warning), string(Info), string(off), "on"}
	l := make(level)
	if r.Next() != '{' {
		switch word := readWord(r, rule, words...); word {
		case "on":
			return level{Warning: Warning, Info: Info}
		default:
			return level{Warning: Severity(word), Info: Severity(word)}
		}
	}
	r.Object(rule, func(key string) {
		if s := Severity(key); s != Warning && s != Info {
			r.Errorf("%s has findings of the severities \"warning\" and \"info\", not %q%s", rule, key, jsonfile.DidYouMean(key, words[1:3]))
		}
		l[Severity(key)] = Severity(readWord(r, fmt.Sprintf("%q of %s", key, rule), words[:4]...))
	})
	return l
}

// globOf compiles a pattern for the paths of files.
func globOf(pattern string) (*regexp.Regexp, error) {
	clean := strings.TrimSuffix(pattern, "/")
	anchored := strings.Contains(clean, "/")
	clean = strings.TrimSuffix(strings.TrimPrefix(clean, "./"), "/**")
	switch {
	case strings.Contains(pattern, `\`):
		return nil, errors.New("folders are separated by slashes")
	case clean == "" || clean == ".":
		return nil, errors.New(`the folder itself is meant by "**"`)
	case path.IsAbs(clean) || filepath.IsAbs(clean):
		return nil, errors.New("paths are relative to the folder of this file")
	case slices.Contains(strings.Split(clean, "/"), ".."):
		return nil, errors.New("what is above the folder of this file has a file of its own")
	}
	var b strings.Builder
	b.WriteString("^")
	if !anchored {
		b.WriteString("(?:.*/)?")
	}
	alternatives := false
	for i := 0; i < len(clean); i++ {
		rest := clean[i:]
		switch c := clean[i]; {
		case strings.HasPrefix(rest, "**/") && (i == 0 || clean[i-1] == '/'):
			b.WriteString("(?:.*/)?")
			i += len("**/") - 1
		case rest == "**" && (i == 0 || clean[i-1] == '/'):
			b.WriteString(".*")
			i++
		case strings.HasPrefix(rest, "**"):
			return nil, errors.New("** stands for folders, between slashes")
		case c == '*':
			b.WriteString("[^/]*")
		case c == '?':
			b.WriteString("[^/]")
		case c == '[':
			end := strings.IndexByte(rest, ']')
			if end < 2 {
				return nil, errors.New("want a list of characters in brackets: [a-z]")
			}
			set := rest[1:end]
			if not, ok := strings.CutPrefix(set, "!"); ok {
				set = "^" + not
			}
			b.WriteString("[" + set + "]")
			i += end
		case c == '{' && !alternatives && strings.Contains(rest, "}"):
			b.WriteString("(?:")
			alternatives = true
		case c == ',' && alternatives:
			b.WriteString("|")
		case c == '}' && alternatives:
			b.WriteString(")")
			alternatives = false
		case c == '{' || c == '}':
			return nil, errors.New("braces are not paired: want {a,b}")
		default:
			_, n := utf8.DecodeRuneInString(rest)
			b.WriteString(regexp.QuoteMeta(rest[:n]))
			i += n - 1
		}
	}
	b.WriteString("(?:/.*)?$")
	glob, err := regexp.Compile(b.String())
	if err != nil || alternatives {
		return nil, errors.New("want a pattern like dir/**/{a,b}_[a-z]*.go")
	}
	return glob, nil
}

// DidYouMean proposes the known word nearest to one that is not, if one is near:
// "; did you mean "AT001"?".
func DidYouMean(word string, known []string) string { return jsonfile.DidYouMean(word, known) }

// IDs lists the ids of the rules in the program, in order.
func IDs() []string { return slices.Sorted(maps.Keys(rules)) }

var rules = make(map[string]*Rule) // that have an analyzer, by id

// RuleOf returns the rule with the given id, nil if there is none in the program.
func RuleOf(id string) *Rule { return rules[id] }
