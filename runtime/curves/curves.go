// Package curves draws numbers over the steps of a training run as a picture: SVG for pages, PNG for mails.
//
//	w.Close()
//	err := curves.Save("loss.svg", w.Series("loss", "val_loss"))
//
// A [Figure] has a title, names of the axes, a logarithmic axis and smoothing:
//
//	f := curves.Figure{Title: "MNIST", Y: "cross entropy", LogY: true, Smooth: 0.9}
//	err := f.Save("loss.png", w.Series("loss", "val_loss"))
//
// Nothing in the package waits for a device. It is the only one that needs gonum.org/v1/plot, so programs that do not
// import it are no larger for it.
package curves

import (
	"bytes"
	"cmp"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/runtime/scalars"
	"github.com/asyncgen/asyncgen/runtime/tensor"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// A Figure says how curves are drawn. The zero Figure has no title, linear axes and curves as they are.
type Figure struct {
	Title string
	X     string // the name of the horizontal axis; "": "step"
	Y     string // that of the vertical one; "": the name of the series, if there is one series
	// LogY makes the vertical axis logarithmic. Values that are not positive are left out.
	LogY bool
	// Smooth is the weight of the past in an exponential moving average of the values, without a bias to 0 at the
	// start: at least 0 and below 1. The values themselves are drawn behind it, pale. Of series that were recorded at
	// different intervals, it is the weight in that with the shortest; what counts in the others is how many steps
	// have passed.
	Smooth float64
	// Width and Height are in pixels of 1/96 inch. 0: 720 and 440. A PNG has two pixels for each, for sharp screens.
	Width, Height int
}

// Save is [Figure.Save] of the zero Figure.
//
//asyncgen:api control
func Save(path string, series []scalars.Series) error { return Figure{}.Save(path, series) }

// Save draws the series into the file at path, whose name ends in .svg or .png. It makes the folder if there is none,
// and replaces the file. A value that is NaN, infinite or beyond 1e300 is a gap in its curve, and the legend says how
// many there are. A series without values is in the legend only. Of a long series, each narrow column of the picture
// has the first, lowest, highest and last value, which looks the same.
//
// Save returns an error if the name ends in something else, or the file can't be written. It panics with a
// [tensor.Mistake] if Smooth, Width or Height is out of range, or if a series has not one value for each step.
//
//asyncgen:api control
func (f Figure) Save(path string, series []scalars.Series) error {
	f.mustBeRight(series)
	width, height := vg.Length(cmp.Or(f.Width, 720))*vg.Inch/96, vg.Length(cmp.Or(f.Height, 440))*vg.Inch/96
	var canvas vg.CanvasWriterTo
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".svg":
		canvas = vgsvg.New(width, height)
	case ".png":
		canvas = vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(2*96))}
	default:
		return fmt.Errorf("curves: save %s: the name ends in neither .svg nor .png", path)
	}
	page := draw.New(canvas)
	page.SetColor(color.White)
	page.Fill(page.Path())
	f.plot(series).Draw(draw.Crop(page, vg.Points(10), vg.Points(-14), vg.Points(8), vg.Points(-10)))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return fmt.Errorf("curves: save %s: %w", path, err)
	}
	// Few browsers have the font that the picture is laid out with. These have the same widths.
	text := bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;"))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return fmt.Errorf("curves: %w", err)
	}
	if err := os.WriteFile(path, text, 0o666); err != nil {
		return fmt.Errorf("curves: %w", err)
	}
	return nil
}

func (f Figure) mustBeRight(series []scalars.Series) {
	wrong := func(format string, args ...any) {
		panic(&tensor.Mistake{Package: "curves", Op: "Save", Text: fmt.Sprintf(format, args...)})
	}
	if !(f.Smooth >= 0 && f.Smooth < 1) {
		wrong("Smooth is %v, want at least 0 and below 1", f.Smooth)
	}
	for _, n := range []int{f.Width, f.Height} {
		if n != 0 && (n < 100 || n > 10000) {
			wrong("%d pixels, want 100 to 10,000", n)
		}
	}
	for _, s := range series {
		if len(s.Steps) != len(s.Values) {
			wrong("series %q has %d steps and %d values", s.Name, len(s.Steps), len(s.Values))
		}
	}
}

// palette has colours that people with any sort of colour vision tell apart (Okabe and Ito 2008), the dark ones
// first.
var palette = []color.NRGBA{
	{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255}, {230, 159, 0, 255}, {86, 180, 233, 255}, {0, 0, 0, 255},
}

var (
	ink  = color.Gray{60}
	rule = color.Gray{225}
)

// plot returns the plot of the series.
func (f Figure) plot(series []scalars.Series) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = f.Title, cmp.Or(f.X, "step"), f.Y
	if f.Y == "" && len(series) == 1 {
		p.Y.Label.Text = series[0].Name
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = rule, rule
	p.Add(grid)
	shortest := math.Inf(1)
	for _, s := range series {
		shortest = min(shortest, interval(s))
	}
	var all []plotter.XYs
	var means []plot.Plotter // above all values
	for i, s := range series {
		parts, left := f.parts(s)
		all = append(all, parts...)
		c := palette[i%len(palette)]
		shade := c
		if weight := math.Pow(f.Smooth, interval(s)/shortest); weight > 0 {
			shade.A = 70
			for _, part := range smooth(parts, weight) {
				means = append(means, curve(part, c, vg.Points(1.6)))
			}
		}
		for _, part := range parts {
			p.Add(curve(part, shade, vg.Points(1.2)))
		}
		p.Legend.Add(f.entry(s, left), &plotter.Line{LineStyle: draw.LineStyle{Color: c, Width: vg.Points(2)}})
	}
	p.Add(means...)
	f.style(p, len(series))
	if p.Legend.Top, p.Legend.YOffs = true, vg.Points(-4); f.risesAtEnd(p, all) {
		p.Legend.Top, p.Legend.YOffs = false, vg.Points(6)
	}
	return p
}

// interval returns how many steps there are between the values of s on average, +Inf if there are none.
func interval(s scalars.Series) float64 {
	n := len(s.Steps)
	if n < 2 || s.Steps[n-1] <= s.Steps[0] {
		return math.Inf(1)
	}
	return float64(s.Steps[n-1]-s.Steps[0]) / float64(n-1)
}

// entry returns what the legend says of s, of which so many values can't be drawn.
func (f Figure) entry(s scalars.Series, left int) string {
	switch {
	case len(s.Values) == 0:
		return s.Name + " (no values)"
	case left > 0 && f.LogY:
		return fmt.Sprintf("%s (%d not positive or not finite)", s.Name, left)
	case left > 0:
		return fmt.Sprintf("%s (%d not finite)", s.Name, left)
	}
	return s.Name
}

// most is the largest number that can be drawn: the arithmetic of axes overflows soon after.
const most = 1e300

// parts returns the runs of values that can be drawn, and how many values can't.
func (f Figure) parts(s scalars.Series) (parts []plotter.XYs, left int) {
	var part plotter.XYs
	for i, v := range s.Values {
		if !(math.Abs(v) <= most) || f.LogY && v < 1/most {
			left++
			if part != nil {
				parts = append(parts, part)
			}
			part = nil
			continue
		}
		part = append(part, plotter.XY{X: float64(s.Steps[i]), Y: v})
	}
	if part != nil {
		parts = append(parts, part)
	}
	return parts, left
}

// smooth returns the exponential moving average over all parts. Dividing by the sum of the weights removes the bias
// to 0 at the start, as in Adam.
func smooth(parts []plotter.XYs, weight float64) []plotter.XYs {
	var mean, sum float64
	list := make([]plotter.XYs, len(parts))
	for i, part := range parts {
		list[i] = slices.Clone(part)
		for j, xy := range part {
			mean = weight*mean + (1-weight)*xy.Y
			sum = weight*sum + (1 - weight)
			list[i][j].Y = mean / sum
		}
	}
	return list
}

// curve returns a line through the points, or a dot if there is one.
func curve(xys plotter.XYs, c color.Color, width vg.Length) plot.Plotter {
	if len(xys) == 1 {
		return &plotter.Scatter{XYs: xys, GlyphStyle: draw.GlyphStyle{Color: c, Radius: vg.Points(2.5), Shape: draw.CircleGlyph{}}}
	}
	return &plotter.Line{XYs: thinned(xys, columns), LineStyle: draw.LineStyle{Color: c, Width: width}}
}

// columns is how many columns a long curve is divided into: more than a picture has pixels.
const columns = 1000

// thinned returns the points that decide how a curve with more than 4n points looks if it is n columns wide: the
// first, lowest, highest and last of each column (M4: Jugel and others 2014). Columns are of equally many points.
func thinned(xys plotter.XYs, n int) plotter.XYs {
	if len(xys) <= 4*n {
		return xys
	}
	var list plotter.XYs
	for c := range n {
		from, to := c*len(xys)/n, (c+1)*len(xys)/n
		low, high := from, from
		for i := from; i < to; i++ {
			if xys[i].Y < xys[low].Y {
				low = i
			}
			if xys[i].Y > xys[high].Y {
				high = i
			}
		}
		at := []int{from, low, high, to - 1}
		slices.Sort(at)
		for _, i := range slices.Compact(at) {
			list = append(list, xys[i])
		}
	}
	return list
}
