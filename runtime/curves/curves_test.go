package curves

import (
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/runtime/scalars"
	"github.com/asyncgen/asyncgen/runtime/tensor"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
)

// A picture is what can be told of an SVG.
type picture struct {
	texts []string
	lines map[string]int // paths that are drawn, by the colour of the pen
	dots  map[string]int // and by that of the brush
}

// picture saves the figure as SVG and reads it again.
func (f Figure) picture(t *testing.T, series ...scalars.Series) picture {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sub", "a.svg")
	if err := f.Save(path, series); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	p := picture{lines: make(map[string]int), dots: make(map[string]int)}
	inText := false
	for d := xml.NewDecoder(file); ; {
		token, err := d.Token()
		if err == io.EOF {
			return p
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			inText = token.Name.Local == "text"
			for _, a := range token.Attr {
				if inText && a.Name.Local == "style" && !strings.Contains(a.Value, ",sans-serif;") {
					t.Errorf("a text has the style %s", a.Value)
				}
				if a.Name.Local != "style" || token.Name.Local != "path" {
					continue
				}
				for property := range strings.SplitSeq(a.Value, ";") {
					switch name, value, _ := strings.Cut(property, ":"); name {
					case "stroke":
						p.lines[unrounded.Replace(value)]++
					case "fill":
						p.dots[value]++
					}
				}
			}
		case xml.CharData:
			if inText && strings.TrimSpace(string(token)) != "" {
				p.texts = append(p.texts, strings.TrimSpace(string(token)))
			}
		case xml.EndElement:
			inText = false
		}
	}
}

// of returns a series with a value for each step.
func of(name string, values ...float64) scalars.Series {
	s := scalars.Series{Name: name, Values: values}
	for i := range values {
		s.Steps = append(s.Steps, i)
	}
	return s
}

// The colours of the first series, as SVG has them.
const first, second = "#0072B2", "#D55E00"

// unrounded replaces what vgsvg makes of these colours where they are transparent.
var unrounded = strings.NewReplacer("#0071B1", first, "#D45D00", second)

var nan, inf = math.NaN(), math.Inf(1)

func TestSave(t *testing.T) {
	for name, c := range map[string]struct {
		f           Figure
		series      []scalars.Series
		texts       []string
		lines, dots int // of the first series, that in the legend included
	}{
		"one":               {Figure{}, []scalars.Series{of("loss", 3, 2, 1)}, []string{"step", "loss"}, 2, 0},
		"title and names":   {Figure{Title: "My run", X: "epoch", Y: "nats"}, []scalars.Series{of("loss", 3, 2, 1)}, []string{"My run", "epoch", "nats", "loss"}, 2, 0},
		"gaps":              {Figure{}, []scalars.Series{of("loss", nan, 3, 2, inf, -inf, 1, 2, 3, nan, 5)}, []string{"loss (4 not finite)"}, 3, 1},
		"nothing finite":    {Figure{}, []scalars.Series{of("loss", nan, inf)}, []string{"loss (2 not finite)"}, 1, 0},
		"empty":             {Figure{}, []scalars.Series{of("loss"), of("other", 1, 2)}, []string{"loss (no values)", "other"}, 1, 0},
		"none":              {Figure{}, nil, []string{"no series"}, 0, 0},
		"one value":         {Figure{}, []scalars.Series{of("loss", 3)}, []string{"loss"}, 1, 1},
		"all the same":      {Figure{}, []scalars.Series{of("loss", 0, 0)}, []string{"0.0"}, 2, 0},
		"huge":              {Figure{}, []scalars.Series{of("loss", -1e300, 1e300, math.MaxFloat64)}, []string{"loss (1 not finite)"}, 2, 0},
		"tiny":              {Figure{}, []scalars.Series{of("loss", 1, math.Nextafter(1, 2))}, []string{"loss"}, 2, 0},
		"logarithmic":       {Figure{LogY: true}, []scalars.Series{of("loss", 100, 1, 0, -1, 0.01, 0.1)}, []string{"loss (2 not positive or not finite)", "0.01", "100"}, 3, 0},
		"nothing positive":  {Figure{LogY: true}, []scalars.Series{of("loss", 0, -1)}, []string{"loss (2 not positive or not finite)"}, 1, 0},
		"tiny, logarithmic": {Figure{LogY: true}, []scalars.Series{of("loss", 1e-300, 1e300)}, []string{"loss"}, 2, 0},
		"one, logarithmic":  {Figure{LogY: true}, []scalars.Series{of("loss", 0.5)}, []string{"0.5"}, 1, 1},
		"large steps":       {Figure{}, []scalars.Series{{Name: "loss", Steps: []int{0, 5_000_000}, Values: []float64{1, 2}}}, []string{"4,000,000"}, 2, 0},
		"steps that repeat": {Figure{Smooth: 0.5}, []scalars.Series{{Name: "loss", Steps: []int{7, 7}, Values: []float64{1, 2}}}, []string{"loss"}, 2, 0},
		"smooth":            {Figure{Smooth: 0.5}, []scalars.Series{of("loss", 3, 2, nan, 1, 4)}, []string{"loss (1 not finite)"}, 5, 0},
		"markup":            {Figure{Title: "a < b & c"}, []scalars.Series{of(`"x" > <y>`, 3, 2)}, []string{"a < b & c", `"x" > <y>`}, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := c.f.picture(t, c.series...)
			for _, text := range c.texts {
				if !slices.Contains(p.texts, text) {
					t.Errorf("%q is not in the picture, whose texts are %q", text, p.texts)
				}
			}
			if p.lines[first] != c.lines || p.dots[first] != c.dots {
				t.Errorf("there are %d lines and %d dots, want %d and %d", p.lines[first], p.dots[first], c.lines, c.dots)
			}
		})
	}
}

// Series have colours of their own, and a PNG has two pixels for each, on white.
func TestPNG(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.PNG")
	if err := (Figure{Width: 300, Height: 200}).Save(path, []scalars.Series{of("a", 1, 2, 1), of("b", 2, 1, 2)}); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	if got := img.Bounds(); got != image.Rect(0, 0, 600, 400) {
		t.Errorf("the picture has the bounds %v", got)
	}
	count := make(map[color.NRGBA]int)
	for y := range 400 {
		for x := range 600 {
			count[color.NRGBAModel.Convert(img.At(x, y)).(color.NRGBA)]++
		}
	}
	for _, c := range []color.NRGBA{palette[0], palette[1]} {
		if count[c] < 300 {
			t.Errorf("%d pixels have the colour %v", count[c], c)
		}
	}
	if white := count[color.NRGBA{255, 255, 255, 255}]; white < 200_000 {
		t.Errorf("%d pixels are white", white)
	}
}

// Smoothing is the weighted mean of all values so far, the weights being powers, also across gaps. A series that was
// recorded every 10 steps has the 10th power of the weight.
func TestSmooth(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	const weight = 0.9
	var parts []plotter.XYs
	var all []float64
	for range 5 {
		var part plotter.XYs
		for range 1 + r.IntN(20) {
			part = append(part, plotter.XY{X: float64(len(all)), Y: r.NormFloat64()})
			all = append(all, part[len(part)-1].Y)
		}
		parts = append(parts, part)
	}
	n := 0
	for i, part := range smooth(parts, weight) {
		for j, got := range part {
			sum, weights := 0.0, 0.0
			for k := range n + 1 {
				sum += all[k] * math.Pow(weight, float64(n-k))
				weights += math.Pow(weight, float64(n-k))
			}
			if want := sum / weights; math.Abs(got.Y-want) > 1e-12 || got.X != parts[i][j].X {
				t.Fatalf("average %d is %v, want %v", n, got, want)
			}
			n++
		}
	}

	seldom := scalars.Series{Name: "seldom", Steps: []int{0, 10, 20}, Values: []float64{1, 2, 3}}
	if a, b := interval(of("often", make([]float64, 21)...)), interval(seldom); a != 1 || b != 10 {
		t.Errorf("the intervals are %v and %v", a, b)
	}
	if p := (Figure{Smooth: weight}).picture(t, of("often", make([]float64, 21)...), seldom); p.lines[second] != 3 {
		t.Errorf("%d lines of the second series, want the values, the average and the legend", p.lines[second])
	}
}

// A thinned curve has the extremes and the ends of the whole, in its order, and few points.
func TestThinned(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 50 {
		xys := make(plotter.XYs, r.IntN(2000))
		for i := range xys {
			xys[i] = plotter.XY{X: float64(i), Y: r.NormFloat64()}
		}
		n := 1 + r.IntN(100)
		got := thinned(xys, n)
		if len(got) > 4*n || len(xys) <= 4*n && len(got) != len(xys) {
			t.Fatalf("%d of %d points in %d columns", len(got), len(xys), n)
		}
		for i, p := range got {
			if xys[int(p.X)] != p || i > 0 && p.X <= got[i-1].X {
				t.Fatalf("point %d is %v after %v", i, p, got[max(0, i-1)])
			}
		}
		byY := func(a, b plotter.XY) int { return int(math.Copysign(1, a.Y-b.Y)) }
		if len(xys) > 0 && (slices.MaxFunc(got, byY) != slices.MaxFunc(xys, byY) || slices.MinFunc(got, byY) != slices.MinFunc(xys, byY) ||
			got[0] != xys[0] || got[len(got)-1] != xys[len(xys)-1]) {
			t.Fatal("the curve has other extremes or ends")
		}
	}
}

func TestTicks(t *testing.T) {
	labels := func(ticks []plot.Tick) string {
		var list []string
		for _, t := range ticks {
			if t.Label != "" {
				list = append(list, t.Label)
			}
		}
		return strings.Join(list, " ")
	}
	for _, c := range []struct {
		ticks     func(low, high float64) []plot.Tick
		low, high float64
		want      string
	}{
		{steps, 0, 1200, "0 200 400 600 800 1,000 1,200"},
		{steps, 0, 3, "0 1 2 3"},
		{steps, 999_900, 1_000_100, "999,900 999,950 1,000,000 1,000,050 1,000,100"},
		{steps, -3000, 0, "-3,000 -2,500 -2,000 -1,500 -1,000 -500 0"},
		{numbers, -0.01, 1.02, "0.0 0.2 0.4 0.6 0.8 1.0"},
		{numbers, 0.12, 0.129, "0.120 0.122 0.124 0.126 0.128"},
		{numbers, 0, 5e7, "0 1e+07 2e+07 3e+07 4e+07 5e+07"},
		{decades, 0.05, 3, "0.05 0.1 0.2 0.5 1 2"},
		{decades, 1e-4, 1, "0.0001 0.001 0.01 0.1 1"},
		{decades, 1e-30, 1, "1e-28 1e-24 1e-20 1e-16 1e-12 1e-08 0.0001 1"},
		{decades, 0.3, 0.7, "0.3 0.4 0.5 0.6 0.7"},
	} {
		if got := labels(c.ticks(c.low, c.high)); got != c.want {
			t.Errorf("from %v to %v the marks are %s, want %s", c.low, c.high, got, c.want)
		}
	}
}

func TestErrors(t *testing.T) {
	s := []scalars.Series{of("loss", 1, 2)}
	if err := Save("loss.pdf", s); err == nil || err.Error() != "curves: save loss.pdf: the name ends in neither .svg nor .png" {
		t.Errorf("a PDF: %v", err)
	}
	if err := Save(filepath.Join(t.TempDir(), ".svg", "x"), s); err == nil {
		t.Error("a name without an end is no error")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	var failed *fs.PathError
	if err := Save(filepath.Join(dir, "file", "a.svg"), s); !errors.As(err, &failed) || !strings.HasPrefix(err.Error(), "curves: ") {
		t.Errorf("a file for a folder: %v", err)
	}
	for name, call := range map[string]func() error{
		"smooth":  func() error { return Figure{Smooth: 1}.Save("a.svg", s) },
		"NaN":     func() error { return Figure{Smooth: nan}.Save("a.svg", s) },
		"width":   func() error { return Figure{Width: 10}.Save("a.svg", s) },
		"lengths": func() error { return Save("a.svg", []scalars.Series{{Name: "a", Steps: []int{1}}}) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if m, ok := recover().(*tensor.Mistake); !ok || m.Package != "curves" {
					t.Errorf("the panic is %v", m)
				}
			}()
			t.Error(call())
		})
	}
}

// What a Writer has collected is drawn.
func ExampleSave() {
	dir, err := os.MkdirTemp("", "curves")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	w, err := scalars.Open(scalars.Options{})
	if err != nil {
		panic(err)
	}
	x := tensor.Full(4, 1)
	for step := range 20 {
		x = x.Sqrt()
		w.Add(step, "loss", x.Sum())
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	fmt.Println(Save(filepath.Join(dir, "loss.svg"), w.Series("loss")))
	// Output: <nil>
}
