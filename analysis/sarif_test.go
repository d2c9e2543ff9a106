package analysis_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/asyncgen/asyncgen/analysis"
	"github.com/asyncgen/asyncgen/analysis/lint"
)

// TestSARIF holds what is written against the specification, and against the
// findings themselves: each region has the text that the finding is about, and
// the replacements of each fix do what its edits do.
func TestSARIF(t *testing.T) {
	files := maps.Clone(program)
	files["wide/wide ü.go"] = `package wide

import "github.com/asyncgen/asyncgen/runtime/tensor"

func wide(x *tensor.Tensor) (s string) {
	for i := range 10 {
		x = x.AddScalar(1)
		_ = "ünï𝄞"; ünï := x.Item()
		if i%10 == 0 {
			s += string(rune(ünï))
		}
	}
	return s
}
`
	dir := module(t, files)
	findings, err := analysis.Vet(t.Context(), analysis.Config{Dir: dir, Patterns: []string{"./..."}, Info: true, Tests: true, Stderr: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	root, err := analysis.Root(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := analysis.WriteSARIF(&out, root, "v1.2.3", findings, true); err != nil {
		t.Fatal(err)
	}
	var log any
	if err := json.Unmarshal(out.Bytes(), &log); err != nil {
		t.Fatal(err)
	}
	for _, problem := range checkSARIF(log) {
		t.Error(problem)
	}
	if t.Failed() {
		t.Fatalf("in\n%s", &out)
	}

	for i, a := range analysis.Suite {
		rule := at(log, "runs", 0, "tool", "driver", "rules", i)
		level := map[lint.Severity]string{lint.Warning: "warning", lint.Info: "note"}[lint.RuleOf(a.Name).Severity]
		if at(rule, "id") != a.Name || at(rule, "helpUri") != a.URL || at(rule, "defaultConfiguration", "enabled") != true || at(rule, "defaultConfiguration", "level") != level {
			t.Errorf("rule %s is %v", a.Name, rule)
		}
	}
	results := at(log, "runs", 0, "results").([]any)
	if len(results) != len(findings) || len(findings) < 6 {
		t.Fatalf("%d results of %d findings", len(results), len(findings))
	}
	for i, f := range findings {
		file, _, _ := analysis.SplitPosn(f.Posn)
		text := readFile(t, file)
		location := at(results[i], "locations", 0, "physicalLocation")
		if got, want := sourceURI(t, root, location), file; got != want {
			t.Errorf("%s: the file is %s", f.Posn, got)
		}
		from, to := region(text, at(location, "region"))
		if want := text[offset(text, f.Posn):offset(text, f.End)]; text[from:to] != want {
			t.Errorf("%s: the region has %q, want %q", f.Posn, text[from:to], want)
		}
		level := map[bool]string{true: "note", false: "warning"}[f.Severity == "info"]
		if at(results[i], "ruleId") != f.Rule || at(results[i], "message", "text") != f.Message || at(results[i], "level") != level {
			t.Errorf("%s: result %v", f.Posn, results[i])
		}
		for j, fix := range f.Fixes {
			want := text
			for _, e := range slices.Backward(sortedEdits(fix.Edits)) {
				want = want[:e.Start] + e.New + want[e.End:]
			}
			got := text
			for _, r := range slices.Backward(at(results[i], "fixes", j, "artifactChanges", 0, "replacements").([]any)) {
				inserted, _ := at(r, "insertedContent", "text").(string)
				from, to := region(text, at(r, "deletedRegion"))
				got = got[:from] + inserted + got[to:]
			}
			if got != want {
				t.Errorf("%s: the fix gives\n%s\nwant\n%s", f.Posn, got, want)
			}
		}
	}
}

// The check of TestSARIF finds what is wrong.
func TestSARIFCheck(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.go")
	if err := os.WriteFile(file, []byte("package a\n\nvar x = 1\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	finding := analysis.Finding{
		Rule: "AT001", Posn: file + ":3:5", End: file + ":3:6", Message: "m",
		Related: []analysis.Related{{Posn: file + ":1:1", End: file + ":1:8", Message: "r"}},
		Fixes:   []analysis.Fix{{Message: "f", Edits: []analysis.Edit{{Filename: file, Start: 11, End: 14, New: "const"}}}},
	}
	root, err := analysis.Root(filepath.Dir(file))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := analysis.WriteSARIF(&out, root, "", []analysis.Finding{finding}, true); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new string }{
		{"", ""}, // nothing is wrong
		{`"version": "2.1.0"`, `"version": "2.2"`},
		{`"runs":`, `"run":`},
		{`"name": "asyncgen",`, ``},
		{`"ruleIndex": 0`, `"ruleIndex": 1`},
		{`"ruleIndex": 0`, `"ruleIndex": 100`},
		{`"level": "warning"`, `"level": "info"`},
		{`"startLine": 3`, `"startLine": 0`},
		{`"endColumn": 6`, `"endColumn": 4`},
		{`"endLine": 3`, `"endLine": "3"`},
		{`"uriBaseId": "%SRCROOT%"`, `"uriBaseId": "ROOT"`},
		{`"uri": "a.go"`, `"uri": "/a.go"`},
		{`"uri": "a.go"`, `"uri": "a b.go"`},
		{`"id": 1`, `"id": -2`},
		{`"unicodeCodePoints"`, `"bytes"`},
		{`"message": {`, `"messages": {`},
		{`"replacements": [`, `"replacements": [], "x": [`},
		{`"deletedRegion"`, `"region"`},
	} {
		text := strings.ReplaceAll(out.String(), c.old, c.new)
		var log any
		if err := json.Unmarshal([]byte(text), &log); err != nil {
			t.Fatalf("%q: %v", c, err)
		}
		if problems := checkSARIF(log); (len(problems) > 0) != (c.old != c.new) {
			t.Errorf("with %q for %q the problems are %q", c.new, c.old, problems)
		}
	}
}

// sarifObjects are the objects of SARIF 2.1.0 that the linter writes, by the
// names of section 3 of the specification, with the properties that an object
// may have, as far as they may be needed. A property ends in ! if it must be
// there; its type is an object, a list of them ([]), a map to them ({}), or a
// word that checkSARIFValue knows.
var sarifObjects = map[string]string{
	"sarifLog":               "$schema:uri version!:=2.1.0 runs!:[]run",
	"run":                    "tool!:tool invocations:[]invocation columnKind:=utf16CodeUnits|unicodeCodePoints originalUriBaseIds:{}artifactLocation results:[]result language:text",
	"invocation":             "executionSuccessful!:bool",
	"tool":                   "driver!:toolComponent extensions:[]toolComponent",
	"toolComponent":          "name!:text version:text semanticVersion:text informationUri:uri rules:[]reportingDescriptor fullName:text organization:text",
	"reportingConfiguration": "enabled:bool level:=none|note|warning|error rank:number",
	"reportingDescriptor":    "id!:text name:text shortDescription:multiformat fullDescription:multiformat help:multiformat helpUri:uri defaultConfiguration:reportingConfiguration",
	"multiformat":            "text!:text markdown:text",
	"result": "ruleId:text ruleIndex:index level:=none|note|warning|error message!:message locations:[]location relatedLocations:[]location " +
		"fixes:[]fix partialFingerprints:{}text kind:text rank:number",
	"message":          "text:text id:text markdown:text",
	"location":         "id:index physicalLocation:physicalLocation message:message",
	"physicalLocation": "artifactLocation:artifactLocation region:region contextRegion:region",
	"artifactLocation": "uri:uri uriBaseId:text index:index",
	"region":           "startLine:positive startColumn:positive endLine:positive endColumn:positive snippet:content",
	"fix":              "description:message artifactChanges!:[1]artifactChange",
	"artifactChange":   "artifactLocation!:artifactLocation replacements!:[1]replacement",
	"replacement":      "deletedRegion!:region insertedContent:content",
	"content":          "text:text",
}

// checkSARIF returns what is wrong with a log: with its form, and with what the
// specification says about values that belong together.
func checkSARIF(log any) []string {
	var problems []string
	checkSARIFValue("sarifLog", "log", log, &problems)
	if len(problems) > 0 {
		return problems
	}
	for _, run := range at(log, "runs").([]any) {
		rules, _ := at(run, "tool", "driver", "rules").([]any)
		bases, _ := at(run, "originalUriBaseIds").(map[string]any)
		for name, base := range bases {
			if uri, _ := at(base, "uri").(string); !strings.HasSuffix(uri, "/") || !strings.Contains(uri, ":") {
				// 3.14.14
				problems = append(problems, fmt.Sprintf("base %s is %q: want an absolute URI of a folder", name, uri))
			}
		}
		results, _ := at(run, "results").([]any)
		for i, r := range results {
			index, ok := at(r, "ruleIndex").(float64)
			if ok && (int(index) >= len(rules) || index >= 0 && at(rules[int(index)], "id") != at(r, "ruleId")) {
				// 3.27.6
				problems = append(problems, fmt.Sprintf("result %d: rule %v is not %v", i, index, at(r, "ruleId")))
			}
			checkSARIFPlaces(fmt.Sprintf("result %d", i), r, bases, &problems)
		}
	}
	return problems
}

// checkSARIFPlaces checks all artifact locations and regions in v.
func checkSARIFPlaces(where string, v any, bases map[string]any, problems *[]string) {
	complain := func(format string, args ...any) {
		*problems = append(*problems, where+": "+fmt.Sprintf(format, args...))
	}
	switch v := v.(type) {
	case []any:
		for _, elem := range v {
			checkSARIFPlaces(where, elem, bases, problems)
		}
	case map[string]any:
		if uri, ok := v["uri"].(string); ok {
			parsed, err := url.Parse(uri)
			base, hasBase := v["uriBaseId"].(string)
			switch {
			case err != nil || parsed.String() != uri:
				complain("%q is not a URI in normal form", uri)
			case hasBase && (parsed.IsAbs() || strings.HasPrefix(uri, "/")): // 3.4.4
				complain("%q is not relative to its base", uri)
			case hasBase && bases[base] == nil:
				complain("base %q is not declared", base)
			case !hasBase && !parsed.IsAbs():
				complain("%q is relative to nothing", uri)
			}
		}
		if line, ok := v["startLine"].(float64); ok { // 3.30
			endLine, ok := v["endLine"].(float64)
			if !ok {
				endLine = line
			}
			col, hasCol := v["startColumn"].(float64)
			endCol, hasEnd := v["endColumn"].(float64)
			if endLine < line || endLine == line && hasCol && hasEnd && endCol < col {
				complain("the region %v ends before it begins", v)
			}
		}
		for _, elem := range v {
			checkSARIFPlaces(where, elem, bases, problems)
		}
	}
}

// checkSARIFValue checks the form of v, which is to be of the given type.
func checkSARIFValue(typ, where string, v any, problems *[]string) {
	complain := func(format string, args ...any) {
		*problems = append(*problems, where+": "+fmt.Sprintf(format, args...))
	}
	number, isNumber := v.(float64)
	text, isText := v.(string)
	whole := isNumber && number == math.Trunc(number)
	switch {
	case strings.HasPrefix(typ, "["):
		list, ok := v.([]any)
		least, elem, _ := strings.Cut(typ[1:], "]")
		if !ok || least == "1" && len(list) == 0 {
			complain("%v is no list of %s", v, elem)
		}
		for i, e := range list {
			checkSARIFValue(elem, fmt.Sprintf("%s[%d]", where, i), e, problems)
		}
	case strings.HasPrefix(typ, "{}"):
		m, ok := v.(map[string]any)
		if !ok {
			complain("%v is no object", v)
		}
		for k, e := range m {
			checkSARIFValue(typ[2:], where+"."+k, e, problems)
		}
	case strings.HasPrefix(typ, "="):
		if !isText || !slices.Contains(strings.Split(typ[1:], "|"), text) {
			complain("%v is none of %s", v, typ[1:])
		}
	case typ == "bool" && v != true && v != false, typ == "text" && !isText, typ == "number" && !isNumber, typ == "positive" && (!whole || number < 1), typ == "index" && (!whole || number < -1):
		complain("%v is no %s", v, typ)
	case typ == "uri":
		if _, err := url.Parse(text); !isText || err != nil {
			complain("%v is no URI", v)
		}
	case sarifObjects[typ] != "":
		checkSARIFObject(typ, where, v, problems)
	}
}

func checkSARIFObject(typ, where string, v any, problems *[]string) {
	object, ok := v.(map[string]any)
	if !ok {
		*problems = append(*problems, fmt.Sprintf("%s: %v is no %s", where, v, typ))
		return
	}
	known := map[string]bool{}
	for _, property := range strings.Fields(sarifObjects[typ]) {
		name, kind, _ := strings.Cut(property, ":")
		name, required := strings.CutSuffix(name, "!")
		known[name] = true
		if value, ok := object[name]; ok {
			checkSARIFValue(kind, where+"."+name, value, problems)
		} else if required {
			*problems = append(*problems, fmt.Sprintf("%s: a %s has no %s", where, typ, name))
		}
	}
	for name := range object {
		if !known[name] {
			*problems = append(*problems, fmt.Sprintf("%s: %s is no property of a %s", where, name, typ))
		}
	}
	if typ == "message" && object["text"] == nil && object["id"] == nil { // 3.11
		*problems = append(*problems, where+": a message without text")
	}
}

// at walks into objects by name and lists by number.
func at(v any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[step]
		case int:
			v = v.([]any)[step]
		}
	}
	return v
}

// sourceURI is the file that a physical location names.
func sourceURI(t *testing.T, root string, location any) string {
	t.Helper()
	name, err := url.PathUnescape(at(location, "artifactLocation", "uri").(string))
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, filepath.FromSlash(name))
}

// region returns the bytes of text from which to which a region reaches.
func region(text string, r any) (from, to int) {
	place := func(line, column any) int {
		at := 0
		for range int(line.(float64)) - 1 {
			at += strings.IndexByte(text[at:], '\n') + 1
		}
		for range int(column.(float64)) - 1 {
			_, n := utf8.DecodeRuneInString(text[at:])
			at += n
		}
		return at
	}
	return place(at(r, "startLine"), at(r, "startColumn")), place(at(r, "endLine"), at(r, "endColumn"))
}

// offset is that of "file:line:column" in text.
func offset(text, posn string) int {
	_, line, col := analysis.SplitPosn(posn)
	at := 0
	for range line - 1 {
		at += strings.IndexByte(text[at:], '\n') + 1
	}
	return at + col - 1
}

func sortedEdits(edits []analysis.Edit) []analysis.Edit {
	edits = slices.Clone(edits)
	slices.SortStableFunc(edits, func(a, b analysis.Edit) int { return a.Start - b.Start })
	return edits
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
