package compare

import (
	_ "embed"
	"fmt"
	"html/template"
	"strings"
	"sync"
	"time"

	"github.com/asyncgen/asyncgen/gen"
	"github.com/asyncgen/asyncgen/internal/trace/page"
)

//go:embed result.html
var resultHTML string

// resultTemplate is parsed when it is needed: go vet starts the command that holds
// this for each package.
var resultTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("result").Funcs(template.FuncMap{
		"title":   (*Device).title,
		"rows":    (*Device).rows,
		"bars":    (*Device).bars,
		"verdict": (*Result).verdict,
		"program": (*Result).program,
		"plural":  plural,
	}).Parse(resultHTML))
})

// Page returns the result as a page for browsers: a picture for each device, and what WriteText writes below. Its
// findings are the generator's remarks. It has no sources, and explains nothing.
func (r *Result) Page() (*page.Page, error) {
	var below strings.Builder
	if err := resultTemplate().Execute(&below, r); err != nil {
		return nil, err
	}
	p := &page.Page{Title: "asyncgen compare " + r.program(), Below: below.String(), Findings: r.remarksAt}
	for _, d := range r.Devices {
		p.Pictures = append(p.Pictures, d.picture())
	}
	return p, nil
}

// picture shows the programs above each other.
func (d *Device) picture() page.Picture {
	pic := page.Picture{Name: d.title()}
	if len(d.Differences) > 0 {
		pic.Lead = d.title() + ": DIFFERENT, the rewritten program does not do the same. As written: "
	} else {
		pic.Lead = d.title() + ": identical output" + d.gained() + ". "
	}
	for i, t := range d.traces {
		pic.Sides = append(pic.Sides, page.Side{Name: []string{"as written", "rewritten"}[i], Trace: t})
	}
	return pic
}

// gained says how the times relate, in a few words: those by the clock of a model, or else the medians of the timed
// runs. A run that is traced takes longer, and is only one.
func (d *Device) gained() string {
	was, is, of := d.Original.Time(), d.Rewritten.Time(), "median of "+plural(len(d.Original.Times), "run")
	if d.Virtual && len(d.traces) == 2 {
		v, w := d.traces[0].Verdict(), d.traces[1].Verdict()
		was, is, of = v.End-v.Begin, w.End-w.Begin, "by the clock of the model"
	}
	if ratio := speed(was, is); ratio != "" {
		return fmt.Sprintf(", %s (%s)", ratio, of)
	}
	return ""
}

// remarksAt are the generator's remarks on a line.
func (r *Result) remarksAt(file string, line int) (found []page.Finding) {
	for _, m := range r.remarks {
		if m.Pos.Filename == file && m.Pos.Line == line && (m.Verdict == gen.Applied || m.Verdict == gen.Refused) {
			found = append(found, page.Finding{Code: string(m.Code), Text: strings.TrimSpace(fmt.Sprintf("%s %s", m.Verdict, m.Rule)) + ": " + m.Message})
		}
	}
	return found
}

// A bar stands for the times of one of the programs, in percent of the longest on the device.
type bar struct {
	Label            string
	From, Median, To float64
}

func (d *Device) bars() []bar {
	if len(d.Differences) > 0 {
		return nil
	}
	var longest time.Duration
	for _, s := range []*Side{&d.Original, &d.Rewritten} {
		for _, t := range s.Times {
			longest = max(longest, t)
		}
	}
	percent := func(t time.Duration) float64 { return 100 * float64(t) / float64(max(longest, 1)) }
	var bars []bar
	for _, s := range []struct {
		name string
		side *Side
	}{{"as written", &d.Original}, {"rewritten", &d.Rewritten}} {
		from, to := s.side.Times[0], s.side.Times[0]
		for _, t := range s.side.Times {
			from, to = min(from, t), max(to, t)
		}
		bars = append(bars, bar{
			Label: fmt.Sprintf("%s: median %s, %s to %s", s.name, duration(s.side.Time()), duration(from), duration(to)),
			From:  percent(from), Median: percent(s.side.Time()), To: percent(to),
		})
	}
	return bars
}
