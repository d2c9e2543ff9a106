package fuzz

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

var (
	seedFlag     = flag.Uint64("seed", 171, "of the first program; 0 takes the time")
	programsFlag = flag.Int("programs", 8, "how many programs TestPrograms tries")
	longFlag     = flag.Int("pairs", 0, "how many pairs of an original and a rewritten kernel TestLong tries")
	checkedFlag  = flag.Int("checked", 0, "how many programs TestChecked rewrites")
	batchFlag    = flag.Int("batch", 200, "how many programs TestLong builds at once")
	exceptFlag   = flag.String("except", "", "seeds of programs that are left out, with commas between them")
	firstFlag    = flag.Bool("first", false, "end TestLong with the first batch that has a program that differs")
	acceptFlag   = flag.Bool("accept", true, "hold how much is rewritten above a floor, and what the programs do within bounds")
	shrinkFlag   = flag.Bool("shrink", false, "leave out what is not needed of programs that differ")
)

// The syntax and the types of a batch live as long as it does: looking for what does not would take
// a third of the time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	m.Run()
}

func seed() uint64 {
	if *seedFlag == 0 {
		return uint64(time.Now().UnixNano()) >> 10
	}
	return *seedFlag
}

// TestPrograms tries a few programs. The seed is fixed, so that a change is
// judged by what it does; TestLong tries others.
func TestPrograms(t *testing.T) {
	s := seed()
	t.Logf("seed %d", s)
	if r := run(t, moduleRoot(t), s, *programsFlag); r != nil {
		accept(t, r)
	}
}

// TestLong tries as many as it is told, two batches at a time: one is built while the other runs.
// What the programs are built with is what the library is when it begins, whatever becomes of that.
func TestLong(t *testing.T) {
	if *longFlag == 0 {
		t.Skip("takes four minutes per thousand pairs, or more: -pairs N tries N")
	}
	type part struct {
		seed uint64
		n    int
	}
	root := libraryCopy(t)
	var mu sync.Mutex // guards total, busy, failed and shown
	total, busy, failed, shown := newReport(), 0, false, time.Now()
	start := time.Now()
	so := func() string {
		return fmt.Sprintf("%d programs, %d pairs, %d of them rewritten, in %v: %d different", total.Programs, total.Pairs, total.Changed, time.Since(start).Round(time.Second), len(total.Different))
	}
	var workers sync.WaitGroup
	parts := make(chan part)
	for range 2 {
		workers.Go(func() {
			for p := range parts {
				r := run(t, root, p.seed, p.n)
				mu.Lock()
				busy -= p.n
				if failed = failed || r == nil; r != nil {
					total.add(r)
				}
				if time.Since(shown) > 30*time.Second {
					shown = time.Now()
					fmt.Fprintln(os.Stderr, so())
				}
				mu.Unlock()
			}
		})
	}
	next := seed()
	t.Logf("seed %d", next)
	for {
		mu.Lock()
		n := min(*batchFlag, *longFlag-total.Pairs-busy) // of a program comes one pair at least
		if failed || *firstFlag && len(total.Different) > 0 {
			n = 0
		}
		busy += max(n, 0)
		mu.Unlock()
		if n <= 0 {
			break
		}
		parts <- part{next, n}
		next += uint64(n)
	}
	close(parts)
	workers.Wait()
	t.Logf("%s; the next seed is %d", so(), next)
	accept(t, total)
}

// TestChecked: what the generator writes passes its own check. The programs are not run, so that many can be tried.
func TestChecked(t *testing.T) {
	if *checkedFlag == 0 {
		t.Skip("takes half a minute per thousand programs: -checked N tries N")
	}
	first, unchecked, rewritten := seed(), 0, 0
	t.Logf("seed %d", first)
	for from := uint64(0); from < uint64(*checkedFlag); from += uint64(*batchFlag) {
		var programs []*program
		for i := from; i < min(from+uint64(*batchFlag), uint64(*checkedFlag)); i++ {
			programs = append(programs, newProgram(first+i, fmt.Sprintf("K%05d", i)))
		}
		b, err := newRewritten(t.Context(), moduleRoot(t), programs)
		if err != nil {
			t.Fatal(err)
		}
		b.close()
		r := newReport()
		r.count(b)
		for _, d := range r.Different {
			t.Error(d)
		}
		for _, m := range b.remarks {
			if m.Code == plan.Unchecked {
				unchecked++
				t.Logf("%v", m)
			}
		}
		for _, isRewritten := range b.forms["all"] {
			if isRewritten {
				rewritten++
			}
		}
	}
	t.Logf("%d programs, %d rewritten, %d that can't be checked", *checkedFlag, rewritten, unchecked)
	if unchecked*100 > rewritten {
		t.Errorf("%d of %d functions can't be checked: too many", unchecked, rewritten)
	}
}

// run tries n programs with the library in the module at root, and fails for each that differs. It
// returns nil if they can't be tried.
func run(t *testing.T, root string, seed uint64, n int) *Report {
	t.Helper()
	command := fmt.Sprintf("go test ./gen/internal/fuzz -run TestPrograms -accept=false -shrink -seed %d -programs %d", seed, n)
	r, err := Run(t.Context(), Config{Root: root, Seed: seed, Programs: n, Shrink: *shrinkFlag, Except: strings.Split(*exceptFlag, ",")})
	if err != nil {
		t.Errorf("%v\n%s", err, command)
		return nil
	}
	for _, d := range r.Different {
		t.Errorf("%v\n%s", d, command)
	}
	return r
}

// libraryCopy is the root of a copy of what programs import of this module.
func libraryCopy(t *testing.T) string {
	from, to := moduleRoot(t), t.TempDir()
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), text, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"device", "internal", "runtime"} {
		if err := os.CopyFS(filepath.Join(to, name), os.DirFS(filepath.Join(from, name))); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// floors are how often each rewrite has to be made in a hundred programs. Of a few programs that is rounded down: those
// of TestPrograms need not have the rarest rewrites, TestLong has.
var floors = map[string]int{
	"defer-read": 8, "defer-sum": 10, "defer-store": 5, "defer-print": 20, "defer-guarded": 10, "read-rows": 1, "device-scalar": 8,
	"device-select": 2, "speculate": 10, "batch-rows": 3, "map-rows": 20, "bound": 40, "split-call": 8, "undo": 5, "fuse": 50,
}

// accept reports what was rewritten. Refusing everything is no way to pass.
func accept(t *testing.T, r *Report) {
	t.Helper()
	applied, refused := 0, 0
	var table strings.Builder
	for _, rule := range rewrites {
		n, least := r.Applied[rule], floors[rule]*r.Programs/100
		applied += n
		fmt.Fprintf(&table, "%-13s applied %5d, at least %d\n", rule, n, least)
		if *acceptFlag && n < least {
			t.Errorf("%s was made %d times in %d programs: too rarely to prove anything", rule, n, r.Programs)
		}
	}
	for _, code := range slices.Sorted(maps.Keys(r.Refused)) {
		fmt.Fprintf(&table, "%-13s refused %5d\n", code, r.Refused[code])
		refused += r.Refused[code]
	}
	t.Logf("%d programs, %d pairs of which %d were rewritten, %d inputs of which %d end in a panic, %d judged by the interpreter, %d runs compared, %d programs with little memory; %d waits as written, %d rewritten\n%d of %d reads put off\n%s",
		r.Programs, r.Pairs, r.Changed, r.Inputs, r.Panics, r.Judged, r.Runs, r.Tight, r.Waits[0], r.Waits[1], applied, applied+refused, table.String())
	if !*acceptFlag {
		return
	}
	if applied*100 < (applied+refused)*30 {
		t.Errorf("%d of %d reads were put off: too few", applied, applied+refused)
	}
	if r.Judged*100 < r.Inputs*80 {
		t.Errorf("the interpreter knew %d of %d outcomes: too few", r.Judged, r.Inputs)
	}
	if r.Panics*4 > r.Inputs*3 || r.Panics*50 < r.Inputs {
		t.Errorf("%d of %d inputs end in a panic", r.Panics, r.Inputs)
	}
	if r.Waits[1] > r.Waits[0] { // in the sum: one loop alone may have a wait at its end that it had not
		t.Errorf("the rewritten programs wait %d times, as written %d times", r.Waits[1], r.Waits[0])
	}
}

// Without the library there is nothing to try programs with: an error, no report.
func TestNoLibrary(t *testing.T) {
	r, err := Run(t.Context(), Config{Root: filepath.Join(t.TempDir(), "gone"), Seed: 1, Programs: 1})
	if r != nil || err == nil {
		t.Errorf("got %v, %v, want an error", r, err)
	}
}

// Every program that is made is one that compiles, as far as names go.
func TestProgramsAreValid(t *testing.T) {
	for seed := range uint64(1000) {
		if p := newProgram(seed, "K"); !p.isValid() {
			t.Fatalf("seed %d is not valid:\n%s", seed, p.listing())
		}
	}
}

// A smaller program lacks something, and shares no statement with the one that it was made from.
func TestSmaller(t *testing.T) {
	for seed := range uint64(20) {
		p := newProgram(seed, "K")
		before := p.listing()
		for _, q := range smaller(p) {
			if q.statements() >= p.statements() {
				t.Fatalf("seed %d: %d statements of %d", seed, q.statements(), p.statements())
			}
			for _, list := range q.lists() {
				*list = nil
			}
		}
		if p.listing() != before {
			t.Fatalf("seed %d: making smaller ones has changed it", seed)
		}
	}
}

// FuzzProgram lets the coverage of the generator steer what programs are made
// of. Without -fuzz, it only makes the programs.
func FuzzProgram(f *testing.F) {
	f.Add([]byte("a program is made of decisions, one a byte, and of zeros when these have been used up"))
	f.Add([]byte{1, 2, 3, 250, 128, 7, 9, 77, 31, 200, 3, 3, 3, 17, 90, 41, 5, 6, 66, 13, 0, 1, 0, 1, 255, 254})
	isFuzzing := flag.Lookup("test.fuzz").Value.String() != ""
	f.Fuzz(func(t *testing.T, decisions []byte) {
		p := makeProgram(fromBytes(decisions), 1, "K")
		if !p.isValid() {
			t.Fatalf("not valid:\n%s", p.listing())
		}
		if !isFuzzing || !p.ends() {
			return
		}
		r, err := tryAll(t.Context(), Config{Root: moduleRoot(t), Seed: 1}, []*program{p})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range r.Different {
			t.Error(d)
		}
	})
}
