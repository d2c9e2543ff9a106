package analysis

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/lint"
)

// WriteSARIF writes findings in the Static Analysis Results Interchange Format,
// version 2.1.0. Files below root, a folder, are named relative to it. Version is
// that of this program. Columns count code points, not bytes, so the files
// that the findings are in are read. If the findings are not complete, as some packages could
// not be analysed, the file says so: what it lacks is not mended.
func WriteSARIF(w io.Writer, root, version string, findings []Finding, complete bool) error {
	s := sarifWriter{root: root, sources: make(sources)}
	log := sarifLog{
		Schema:  "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
		Version: "2.1.0",
		Runs: []sarifRun{{
			Tool: sarifTool{Driver: sarifDriver{
				Name:           "asyncgen",
				Version:        version,
				InformationURI: "https://github.com/asyncgen/asyncgen",
				Rules:          sarifRules(),
			}},
			Invocations:        []sarifInvocation{{complete}},
			ColumnKind:         "unicodeCodePoints",
			OriginalURIBaseIDs: map[string]sarifArtifact{srcRoot: {URI: fileURI(root) + "/"}},
			Results:            []sarifResult{}, // an empty list says that there was nothing to find
		}},
	}
	for _, f := range findings {
		r, err := s.result(f)
		if err != nil {
			return fmt.Errorf("vet: write SARIF: %w", err)
		}
		log.Runs[0].Results = append(log.Runs[0].Results, r)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "\t")
	enc.SetEscapeHTML(false)
	return enc.Encode(log)
}

// The objects of SARIF 2.1.0 that are used here, as section 3 of the
// specification defines them.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool               sarifTool                `json:"tool"`
		Invocations        []sarifInvocation        `json:"invocations"`
		ColumnKind         string                   `json:"columnKind"`
		OriginalURIBaseIDs map[string]sarifArtifact `json:"originalUriBaseIds"`
		Results            []sarifResult            `json:"results"`
	}
	sarifInvocation struct {
		Successful bool `json:"executionSuccessful"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version,omitempty"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string          `json:"id"`
		ShortDescription sarifText       `json:"shortDescription"`
		Help             sarifText       `json:"help"`
		HelpURI          string          `json:"helpUri"`
		Default          sarifRuleConfig `json:"defaultConfiguration"`
	}
	sarifRuleConfig struct {
		Enabled bool   `json:"enabled"`
		Level   string `json:"level"`
	}
	sarifText struct {
		Text     string `json:"text"`
		Markdown string `json:"markdown,omitempty"`
	}
	sarifResult struct {
		RuleID       string            `json:"ruleId"`
		RuleIndex    int               `json:"ruleIndex"`
		Level        string            `json:"level"`
		Message      sarifText         `json:"message"`
		Locations    []sarifLocation   `json:"locations"`
		Related      []sarifLocation   `json:"relatedLocations,omitempty"`
		Fixes        []sarifFix        `json:"fixes,omitempty"`
		Fingerprints map[string]string `json:"partialFingerprints,omitempty"`
	}
	sarifLocation struct {
		ID       int           `json:"id,omitempty"`
		Physical sarifPhysical `json:"physicalLocation"`
		Message  *sarifText    `json:"message,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   sarifRegion   `json:"region"`
	}
	sarifArtifact struct {
		URI       string `json:"uri"`
		URIBaseID string `json:"uriBaseId,omitempty"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn"`
		EndLine     int `json:"endLine"`
		EndColumn   int `json:"endColumn"` // of the character behind the region
	}
	sarifFix struct {
		Description sarifText     `json:"description"`
		Changes     []sarifChange `json:"artifactChanges"`
	}
	sarifChange struct {
		Artifact     sarifArtifact      `json:"artifactLocation"`
		Replacements []sarifReplacement `json:"replacements"`
	}
	sarifReplacement struct {
		Deleted  sarifRegion `json:"deletedRegion"`
		Inserted *sarifText  `json:"insertedContent,omitempty"`
	}
)

const srcRoot = "%SRCROOT%" // the name that readers of SARIF give the checked-out repository

func sarifRules() []sarifRule {
	var list []sarifRule
	for _, a := range Suite {
		title, page, _ := strings.Cut(a.Doc, "\n\n")
		list = append(list, sarifRule{
			ID:               a.Name,
			ShortDescription: sarifText{Text: title},
			Help:             sarifText{strings.TrimSpace(page), strings.TrimSpace(markdown(page))},
			HelpURI:          a.URL,
			Default:          sarifRuleConfig{true, sarifLevel(lint.RuleOf(a.Name).Severity)},
		})
	}
	return list
}

// A sarifWriter translates findings.
type sarifWriter struct {
	root    string
	sources sources
}

func (s *sarifWriter) result(f Finding) (sarifResult, error) {
	r := sarifResult{RuleID: f.Rule, RuleIndex: ruleIndex(f.Rule), Level: sarifLevel(f.Severity), Message: sarifText{Text: f.Message}}
	at, err := s.location(f.Posn, f.End)
	if err != nil {
		return sarifResult{}, err
	}
	r.Locations = []sarifLocation{at}
	for i, rel := range f.Related {
		at, err := s.location(rel.Posn, rel.End)
		if err != nil {
			return sarifResult{}, err
		}
		at.ID, at.Message = i+1, &sarifText{Text: rel.Message}
		r.Related = append(r.Related, at)
	}
	for _, fix := range f.Fixes {
		changes, err := s.changes(fix)
		if err != nil {
			return sarifResult{}, err
		}
		r.Fixes = append(r.Fixes, sarifFix{sarifText{Text: fix.Message}, changes})
	}
	key, err := s.sources.key(s.root, f)
	if err != nil {
		return sarifResult{}, err
	}
	r.Fingerprints = map[string]string{"asyncgen/v1": key.hash()}
	return r, nil
}

// sarifLevel is SARIF's word for a severity.
func sarifLevel(s lint.Severity) string {
	switch s {
	case lint.Error:
		return "error"
	case lint.Info:
		return "note"
	}
	return "warning"
}

func ruleIndex(id string) int {
	for i, a := range Suite {
		if a.Name == id {
			return i
		}
	}
	return -1 // SARIF's word for none
}

func (s *sarifWriter) location(posn, end string) (sarifLocation, error) {
	file, line, col := SplitPosn(posn)
	src, err := s.sources.read(file)
	if err != nil {
		return sarifLocation{}, err
	}
	r := sarifRegion{StartLine: line, StartColumn: src.column(line, col)}
	endFile, endLine, endCol := SplitPosn(end)
	if endFile != file || endLine < line {
		endLine, endCol = line, col
	}
	r.EndLine, r.EndColumn = endLine, src.column(endLine, endCol)
	return sarifLocation{Physical: sarifPhysical{s.artifact(file), r}}, nil
}

// artifact names a file.
func (s *sarifWriter) artifact(file string) sarifArtifact {
	rel := relative(s.root, file)
	if !filepath.IsLocal(rel) {
		return sarifArtifact{URI: fileURI(file)}
	}
	u := url.URL{Path: filepath.ToSlash(rel)}
	return sarifArtifact{URI: u.EscapedPath(), URIBaseID: srcRoot}
}

func fileURI(file string) string {
	path := filepath.ToSlash(file)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/x
	}
	u := url.URL{Scheme: "file", Path: strings.TrimSuffix(path, "/")}
	return u.String()
}

// changes groups the edits of a fix by file.
func (s *sarifWriter) changes(fix Fix) ([]sarifChange, error) {
	var list []sarifChange
	at := make(map[string]int)
	for _, e := range fix.Edits {
		src, err := s.sources.read(e.Filename)
		if err != nil {
			return nil, err
		}
		i, ok := at[e.Filename]
		if !ok {
			i = len(list)
			at[e.Filename] = i
			list = append(list, sarifChange{Artifact: s.artifact(e.Filename)})
		}
		r := sarifReplacement{}
		r.Deleted.StartLine, r.Deleted.StartColumn = src.position(e.Start)
		r.Deleted.EndLine, r.Deleted.EndColumn = src.position(e.End)
		if e.New != "" {
			r.Inserted = &sarifText{Text: e.New}
		}
		list[i].Replacements = append(list[i].Replacements, r)
	}
	return list, nil
}
