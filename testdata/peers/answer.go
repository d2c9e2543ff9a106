package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"time"
)

// answerAs answers questions from standard input until there are no more.
func answerAs(name string) error {
	peers := map[string]func(question) func(){ours: oursFor, captured: oursFor, "gonum": gonumFor, "GoMLX": gomlxFor}
	versions := map[string]string{ours: oursVersion(), captured: oursVersion(), "gonum": moduleVersion("gonum.org/v1/gonum"), "GoMLX": gomlxVersion()}
	work, ok := peers[name]
	if !ok {
		return fmt.Errorf("no peer is called %s", name)
	}
	answers := json.NewEncoder(os.Stdout)
	if err := answers.Encode(greeting{Version: versions[name]}); err != nil {
		return err
	}
	questions := bufio.NewScanner(os.Stdin)
	for questions.Scan() {
		var q question
		if err := json.Unmarshal(questions.Bytes(), &q); err != nil {
			return err
		}
		a := answer{}
		if q.Work == "train" {
			a = train(q, name == captured)
		} else {
			a = answerTo(q, work)
		}
		if err := answers.Encode(a); err != nil {
			return err
		}
	}
	return questions.Err()
}

func answerTo(q question, work func(question) func()) answer {
	runtime.GC()
	switch q.Work {
	case "peak":
		return answer{Seconds: peakFlops(q.Budget)}
	case "triad":
		return answer{Seconds: triadBytes(q)}
	case "none":
		return answer{}
	}
	f := work(q)
	if f == nil {
		return answer{Missing: "not measured"}
	}
	return answer{Seconds: median(f, q.Budget)}
}

// median is the median time of a call of f, in windows of 2 ms at least, within so many seconds; or the time of
// one call that takes longer, after one to get warm. On a GPU a window ends when the device has done everything.
func median(f func(), budget float64) float64 {
	f()
	settle()
	start := time.Now()
	f()
	settle()
	once := max(time.Since(start), 100*time.Nanosecond)
	if once.Seconds() > budget {
		return once.Seconds()
	}
	calls := max(1, int(2*time.Millisecond/once))
	var times []float64
	for end := time.Now().Add(time.Duration(budget * 1e9)); len(times) < 3 || time.Now().Before(end); {
		start := time.Now()
		for range calls {
			f()
		}
		settle()
		times = append(times, time.Since(start).Seconds()/float64(calls))
	}
	slices.Sort(times)
	return times[len(times)/2]
}

func moduleVersion(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == path {
				return m.Version
			}
		}
	}
	return "of unknown version"
}
