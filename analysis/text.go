package analysis

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// WriteText writes findings one a line, as compilers do: "file:line:column:
// message". Files below dir are named relative to it. Before the message stands the
// severity, unless it is a warning, and behind it what was measured.
func WriteText(w io.Writer, dir string, findings []Finding) error {
	dir, err := realPath(dir)
	if err != nil {
		return err
	}
	for _, f := range findings {
		file, line, col := SplitPosn(f.Posn)
		severity, measured := "", ""
		if f.Severity == lint.Error || f.Severity == lint.Info {
			severity = string(f.Severity) + ": "
		}
		if f.Measured != nil {
			measured = fmt.Sprintf(" (blocked for %v, %d waits)", time.Duration(f.Measured.BlockedNS()).Round(time.Microsecond), f.Measured.Waits)
		}
		if _, err := fmt.Fprintf(w, "%s: %s%s%s\n", tensorapi.Visible(formatPosn(shortPath(dir, file), line, col)), severity, tensorapi.VisibleLines(f.Message), measured); err != nil {
			return err
		}
	}
	return nil
}

// WriteGitHub writes findings as commands to GitHub's runner of workflows, which
// shows them beside the lines of a change. Files below root are named relative
// to it.
func WriteGitHub(w io.Writer, root string, findings []Finding) error {
	for _, f := range findings {
		file, line, col := SplitPosn(f.Posn)
		_, endLine, endCol := SplitPosn(f.End)
		command := "warning"
		switch f.Severity {
		case lint.Error:
			command = "error"
		case lint.Info:
			command = "notice"
		}
		place := fmt.Sprintf("file=%s,line=%d,endLine=%d", inProperty(tensorapi.Visible(filepath.ToSlash(shortPath(root, file)))), line, max(line, endLine))
		if endLine == line { // columns make sense to it within a line only
			place += fmt.Sprintf(",col=%d,endColumn=%d", col, endCol)
		}
		if _, err := fmt.Fprintf(w, "::%s %s,title=%s::%s\n", command, place, inProperty("asyncgen "+f.Rule), inMessage(tensorapi.VisibleLines(f.Message))); err != nil {
			return err
		}
	}
	return nil
}

// Workflow commands end at the end of the line, and their properties at a colon
// or comma.
var (
	messageEscapes  = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	propertyEscapes = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

func inMessage(s string) string  { return messageEscapes.Replace(s) }
func inProperty(s string) string { return propertyEscapes.Replace(s) }
