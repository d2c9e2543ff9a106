package opgraph

import (
	"cmp"
	"fmt"
	"html"
	"slices"
	"strings"
	"unicode/utf8"
)

// A layered drawing, after Sugiyama, Tagawa and Toda (1981): nodes are put in
// layers so that all edges lead downwards; an edge that passes through layers gets
// a place in each of them; the places of a layer are ordered so that few edges
// cross; then each moves sideways towards those it is connected with.

// The measures of the drawing, in pixels.
const (
	boxHeight = 52
	charWidth = 7 // of the label's font, on average
	boxMargin = 12
	gapX      = 24
	gapY      = 44
	border    = 20
)

// A place is a node in its layer, or where an edge passes through a layer.
type place struct {
	node     int // -1: an edge passes
	layer    int
	width    float64
	x        float64 // of the middle
	up, down []*place
}

type layout struct {
	g      Graph
	layers [][]*place
	byNode []*place
	routes [][]*place // of each edge, from the upper end to the lower
}

// sweeps is how often layers are ordered, and how often places are moved. More sweeps change little.
const sweeps = 12

func layOut(g Graph) *layout {
	l := &layout{g: g}
	l.makeLayers()
	l.routeEdges()
	for i := range sweeps {
		l.order(i%2 == 0)
	}
	l.placeLeft()
	for i := range sweeps {
		l.straighten(i%2 == 0)
	}
	l.shift()
	return l
}

// makeLayers puts each node as high as possible below the nodes that it depends on. One that depends on nothing
// goes just above its first reader.
func (l *layout) makeLayers() {
	nodes := l.g
	layer := make([]int, len(nodes))
	for i := range nodes {
		for _, in := range nodes[i].Inputs {
			layer[i] = max(layer[i], layer[in]+1)
		}
	}
	highest := make([]int, len(nodes)) // layer of the first reader
	for i := range highest {
		highest[i] = -1
	}
	for i := range nodes {
		for _, in := range nodes[i].Inputs {
			if highest[in] < 0 || layer[i] < highest[in] {
				highest[in] = layer[i]
			}
		}
	}
	for i := range nodes {
		n := &nodes[i]
		if len(n.Inputs) == 0 && highest[i] > 0 {
			layer[i] = highest[i] - 1
		}
		text := max(utf8.RuneCountInString(n.Op), utf8.RuneCountInString(n.What), utf8.RuneCountInString(n.Where))
		l.add(&place{node: i, layer: layer[i], width: float64(text*charWidth + 2*boxMargin)})
	}
}

func (l *layout) add(p *place) {
	for len(l.layers) <= p.layer {
		l.layers = append(l.layers, nil)
	}
	l.layers[p.layer] = append(l.layers[p.layer], p)
	if p.node >= 0 {
		l.byNode = append(l.byNode, p)
	}
}

// routeEdges gives each edge a place in every layer that it passes.
func (l *layout) routeEdges() {
	for i := range l.g {
		to := l.byNode[i]
		for _, in := range l.g[i].Inputs {
			at := l.byNode[in]
			route := []*place{at}
			for at.layer+1 < to.layer {
				next := &place{node: -1, layer: at.layer + 1}
				l.add(next)
				connect(at, next)
				at = next
				route = append(route, at)
			}
			connect(at, to)
			l.routes = append(l.routes, append(route, to))
		}
	}
}

func connect(upper, lower *place) {
	upper.down, lower.up = append(upper.down, lower), append(lower.up, upper)
}

// order sorts each layer by the mean position of each place's neighbours in the layer before, going down or up.
func (l *layout) order(downwards bool) {
	for k := range l.layers {
		layer := l.layers[k]
		if !downwards {
			layer = l.layers[len(l.layers)-1-k]
		}
		at := map[*place]float64{}
		for i, p := range layer {
			neighbours := p.up
			if !downwards {
				neighbours = p.down
			}
			at[p] = float64(i)
			if len(neighbours) > 0 {
				at[p] = meanOf(neighbours)
			}
		}
		slices.SortStableFunc(layer, func(a, b *place) int { return cmp.Compare(at[a], at[b]) })
		for i, p := range layer {
			p.x = float64(i)
		}
	}
}

func meanOf(ps []*place) float64 {
	sum := 0.0
	for _, p := range ps {
		sum += p.x
	}
	return sum / float64(len(ps))
}

// placeLeft puts the places of each layer side by side, from the left.
func (l *layout) placeLeft() {
	for _, layer := range l.layers {
		x := 0.0
		for _, p := range layer {
			p.x = x + p.width/2
			x += p.width + gapX
		}
	}
}

// straighten moves places below, or above, their neighbours, as far as the other places of the layer leave room.
// Places that touch form a run. Each run moves by the mean of what its places want.
func (l *layout) straighten(downwards bool) {
	for k := range l.layers {
		layer := l.layers[k]
		if !downwards {
			layer = l.layers[len(l.layers)-1-k]
		}
		type run struct {
			first, n   int
			want, left float64 // sum of wanted left edges, relative to the run's; the left edge
			width      float64
		}
		var runs []run
		for i, p := range layer {
			want := p.x
			if neighbours := p.neighbours(downwards); len(neighbours) > 0 {
				want = meanOf(neighbours)
			}
			r := run{first: i, n: 1, want: want - p.width/2, left: want - p.width/2, width: p.width}
			for len(runs) > 0 && runs[len(runs)-1].left+runs[len(runs)-1].width+gapX > r.left {
				before := runs[len(runs)-1]
				runs = runs[:len(runs)-1]
				shift := before.width + gapX
				r.first, r.want = before.first, before.want+r.want-float64(r.n)*shift
				r.n += before.n
				r.width += shift
				r.left = r.want / float64(r.n)
			}
			runs = append(runs, r)
		}
		for _, r := range runs {
			x := r.left
			for _, p := range layer[r.first : r.first+r.n] {
				p.x = x + p.width/2
				x += p.width + gapX
			}
		}
	}
}

func (p *place) neighbours(up bool) []*place {
	if up {
		return p.up
	}
	return p.down
}

// shift moves the drawing to the border.
func (l *layout) shift() {
	first := true
	left := 0.0
	for _, layer := range l.layers {
		for _, p := range layer {
			if x := p.x - p.width/2; first || x < left {
				left, first = x, false
			}
		}
	}
	for _, layer := range l.layers {
		for _, p := range layer {
			p.x += border - left
		}
	}
}

func (p *place) y() float64 { return border + float64(p.layer)*(boxHeight+gapY) }

func (l *layout) svg() string {
	width := 0.0
	for _, p := range l.byNode {
		width = max(width, p.x+p.width/2)
	}
	for _, route := range l.routes {
		for _, p := range route {
			width = max(width, p.x)
		}
	}
	width += border
	height := 2*border + float64(len(l.layers))*(boxHeight+gapY) - gapY
	if len(l.layers) == 0 {
		width, height = 2*border, 2*border
	}
	var b strings.Builder
	b.WriteString(FirstSVG)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" font-family="sans-serif" font-size="12" text-anchor="middle">
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z" fill="#555"/></marker></defs>
<rect width="100%%" height="100%%" fill="white"/>
`, width, height, width, height)
	for _, route := range l.routes {
		fmt.Fprintf(&b, "<path d=\"%s\" fill=\"none\" stroke=\"#555\" marker-end=\"url(#tip)\"/>\n", path(route))
	}
	for i, p := range l.byNode {
		l.g[i].draw(&b, p)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// path returns an edge: down from the middle of a box, through its places, to the next box.
func path(route []*place) string {
	var b strings.Builder
	x, y := route[0].x, route[0].y()+boxHeight
	fmt.Fprintf(&b, "M%.1f %.1f", x, y)
	for _, p := range route[1:] {
		middle := (y + p.y()) / 2
		fmt.Fprintf(&b, "C%.1f %.1f %.1f %.1f %.1f %.1f", x, middle, p.x, middle, p.x, p.y())
		x, y = p.x, p.y()
		if p.node < 0 {
			y += boxHeight
			fmt.Fprintf(&b, "L%.1f %.1f", x, y)
		}
	}
	return b.String()
}

// draw writes the box of n.
func (n *Node) draw(b *strings.Builder, p *place) {
	style := `fill="#e8f0fe" stroke="#3367d6"`
	if n.IsOutside {
		style = `fill="#f5f5f5" stroke="#777" stroke-dasharray="4 3"`
	}
	fmt.Fprintf(b, "<g><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" rx=\"6\" %s/>", p.x-p.width/2, p.y(), p.width, boxHeight, style)
	y := p.y() + 18
	if n.Where == "" {
		y += 7
	}
	fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%.1f\" font-weight=\"bold\">%s</text>", p.x, y, html.EscapeString(n.Op))
	fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%.1f\">%s</text>", p.x, y+14, html.EscapeString(n.What))
	if at := n.Where; at != "" {
		fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%.1f\" fill=\"#777\" font-size=\"10\">%s</text>", p.x, y+27, html.EscapeString(at))
	}
	b.WriteString("</g>\n")
}
