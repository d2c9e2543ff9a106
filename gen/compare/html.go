package compare

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"sync"
	"time"
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

// WriteHTML writes the result as one page that needs nothing else, for
// browsers.
func (r *Result) WriteHTML(w io.Writer) error { return resultTemplate().Execute(w, r) }

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
