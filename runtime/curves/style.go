package curves

import (
	"cmp"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// style sets the axes, the fonts and the place of the legend of a plot with n series.
func (f Figure) style(p *plot.Plot, n int) {
	sans := func(size vg.Length) font.Font { return font.Font{Typeface: "Liberation", Variant: "Sans", Size: size} }
	p.Title.TextStyle.Font, p.Title.TextStyle.Color, p.Title.Padding = sans(13), ink, vg.Points(6)
	p.Legend.TextStyle.Font, p.Legend.TextStyle.Color = sans(10), ink
	p.Legend.Padding, p.Legend.ThumbnailWidth = vg.Points(3), vg.Points(18)
	p.Legend.XOffs = vg.Points(-6)
	if n == 0 {
		p.Legend.Add("no series")
	}
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font, a.Label.TextStyle.Color = sans(11), ink
		a.Tick.Label.Font, a.Tick.Label.Color = sans(9.5), ink
		a.LineStyle.Color, a.Tick.LineStyle.Color = ink, ink
		a.LineStyle.Width, a.Tick.LineStyle.Width = vg.Points(0.6), vg.Points(0.6)
		a.Tick.Length = vg.Points(4)
	}
	p.Y.Label.Padding, p.X.Label.Padding = vg.Points(4), vg.Points(2)
	p.X.Min, p.X.Max = span(p.X.Min, p.X.Max, 0, 0)
	p.X.Tick.Marker = plot.TickerFunc(steps)
	if f.LogY {
		low, high := 0.1, 1.0
		if p.Y.Min <= p.Y.Max {
			low, high = p.Y.Min, p.Y.Max
		}
		low, high = span(math.Log10(low), math.Log10(high), 0.3, 0.03)
		p.Y.Min, p.Y.Max = math.Pow(10, max(low, -307)), math.Pow(10, min(high, 308))
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.TickerFunc(decades)
	} else {
		p.Y.Min, p.Y.Max = span(p.Y.Min, p.Y.Max, 0.1*math.Abs(p.Y.Max), 0.03)
		p.Y.Tick.Marker = plot.TickerFunc(numbers)
	}
}

// span returns the range of an axis for values from low to high: 0 to 1 if there are none, with room by around them
// if they are as good as the same (1 if by is 0), else with a share of it at either end.
func span(low, high, by, share float64) (float64, float64) {
	switch {
	case low > high:
		return 0, 1
	case high-low <= 1e-9*max(math.Abs(low), math.Abs(high)):
		by = cmp.Or(by, 1)
	default:
		by = share * (high - low)
	}
	return low - by, high + by
}

// round returns multiples of a round number, 1, 2 or 5 times a power of ten, from low to high: four to ten of them,
// and that number.
func round(low, high float64) (marks []float64, step float64) {
	step = math.Pow(10, math.Floor(math.Log10((high-low)/4)))
	switch room := (high - low) / 4 / step; {
	case room >= 5:
		step *= 5
	case room >= 2:
		step *= 2
	}
	begin := math.Ceil(low / step)
	for i := range 11 {
		if v := (begin + float64(i)) * step; v <= high+1e-9*step {
			marks = append(marks, v+0) // not -0
		}
	}
	return marks, step
}

// steps marks whole numbers, with commas.
func steps(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	marks, _ := round(low, high)
	for _, v := range marks {
		if v == math.Trunc(v) {
			ticks = append(ticks, plot.Tick{Value: v, Label: commas(int64(v))})
		}
	}
	return ticks
}

// numbers marks a linear axis, with as many digits as the marks need.
func numbers(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	marks, step := round(low, high)
	for _, v := range marks {
		label := strconv.FormatFloat(v, 'g', 6, 64)
		if step >= 1e-4 && max(math.Abs(low), math.Abs(high)) < 1e6 {
			label = strconv.FormatFloat(v, 'f', max(0, int(-math.Floor(math.Log10(step)))), 64)
		}
		ticks = append(ticks, plot.Tick{Value: v, Label: label})
	}
	return ticks
}

// commas formats n with a comma after each thousand.
func commas(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// decades marks a logarithmic axis: powers of ten, in a short range 2 and 5 times these, in a shorter one what a
// linear axis has.
func decades(low, high float64) []plot.Tick {
	first, last := math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))
	width := math.Log10(high / low)
	if width < 0.8 {
		return numbers(low, high)
	}
	every := math.Ceil(width / 8) // so many powers have one label
	var ticks []plot.Tick
	for e := first; e <= last; e++ {
		for digit := 1.0; digit < 10; digit++ {
			v := digit * math.Pow(10, e)
			if v < low || v > high || digit > 1 && every > 1 {
				continue
			}
			t := plot.Tick{Value: v}
			if digit == 1 && math.Mod(e, every) == 0 || width < 2.5 && (digit == 2 || digit == 5) {
				t.Label = strconv.FormatFloat(v, 'g', 3, 64)
			}
			ticks = append(ticks, t)
		}
	}
	return ticks
}

// risesAtEnd reports whether the curves are in the upper half of the axis in the last third of the steps, where the
// legend would hide them.
func (f Figure) risesAtEnd(p *plot.Plot, parts []plotter.XYs) bool {
	low, high := p.Y.Min, p.Y.Max
	from := p.X.Max - (p.X.Max-p.X.Min)/3
	var sum, n float64
	for _, part := range parts {
		for _, xy := range part {
			if xy.X >= from {
				sum += p.Y.Scale.Normalize(low, high, xy.Y)
				n++
			}
		}
	}
	return sum > n/2
}
