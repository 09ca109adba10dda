package html

import (
	"math"
	"strconv"
	"strings"
)

// chart is a picture. Horizontal places are percentages of its width and vertical ones are pixels, so that it fills what there is of a
// screen or sheet while its letters keep their size. Plots are curves, which stretch.
type chart struct {
	ID, Title, Desc string
	Height          int
	// Framed charts leave room at the left, for the labels of an axis.
	Framed bool
	Plot   *plot
	Rects  []rect
	Lines  []line
	Dots   []dot
	Texts  []text
	Legend []key
	Data   table
}

// plot is a part of the chart that is stretched to its width: curves in a system of 1000 by 100.
type plot struct {
	Y, Height int
	Areas     []area
}

type area struct{ Class, D string }

type rect struct{ X, Y, W, H, Class, Tip string }

type line struct{ X1, Y1, X2, Y2, Class string }

type dot struct{ X, Y, Class, Tip string }

// text has its anchor (start, middle, end) and an offset in pixels.
type text struct{ X, Y, Anchor, Class, S string }

// key is an entry of a legend.
type key struct{ Class, Name string }

// table is a table with a head for each column and each row.
type table struct {
	Caption string
	Head    []string
	Rows    [][]string
	Notes   []string
	// Open tables are seen at once, others when they are asked for.
	Open bool
}

// pc is a part of 1 as a percentage.
func pc(v float64) string { return strconv.FormatFloat(100*clamp(v), 'f', 3, 64) + "%" }

func clamp(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return min(1, max(0, v))
}

func px(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

func num(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }

// ticks are about n round numbers from 0 to most.
func ticks(most float64, n int) []float64 {
	if !(most > 0) || math.IsInf(most, 0) {
		return []float64{0}
	}
	step := round125(most / float64(n))
	var list []float64
	for i := 0; i <= 4*n && float64(i)*step <= most*(1+1e-9); i++ {
		list = append(list, float64(i)*step)
	}
	return list
}

// round125 is the least of 1, 2 and 5 times a power of ten that is not below v.
func round125(v float64) float64 {
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*p >= v*(1-1e-9) {
			return m * p
		}
	}
	return 10 * p
}

// anchorAt keeps a text at a place of the horizontal axis inside of the picture.
func anchorAt(v float64) string {
	switch {
	case v < 0.05:
		return "start"
	case v > 0.91:
		return "end"
	}
	return "middle"
}

// frame draws the horizontal lines of an axis from 0 to most between top and base, with labels left of the picture.
func (c *chart) frame(top, base, most float64, label func(float64) string) {
	c.Framed = true
	for _, v := range ticks(most, 4) {
		y := base - (base-top)*v/most
		class := "grid"
		if v == 0 {
			class = "base"
		}
		c.Lines = append(c.Lines, line{"0%", px(y), "100%", px(y), class})
		if v > 0 {
			c.Texts = append(c.Texts, text{"0%", px(y + 4), "end", "tick axis", label(v)})
		}
	}
}

// stack draws areas on each other. Each layer has a value from 0 to 1 for every stretch, whose ends are from and to in parts of 1.
func stack(from, to []float64, layers [][]float64, classes []string) []area {
	below := make([]float64, len(from))
	areas := make([]area, 0, len(layers))
	for i, layer := range layers {
		var up strings.Builder
		down := make([]string, 0, len(from))
		for j := range from {
			x1, x2 := num(1000*clamp(from[j])), num(1000*clamp(to[j]))
			y1, y2 := num(100-100*clamp(below[j]+layer[j])), num(100-100*clamp(below[j]))
			verb := "L"
			if j == 0 {
				verb = "M"
			}
			up.WriteString(verb + x1 + " " + y1 + "L" + x2 + " " + y1)
			down = append(down, "L"+x2+" "+y2+"L"+x1+" "+y2)
			below[j] += layer[j]
		}
		for j := len(down) - 1; j >= 0; j-- {
			up.WriteString(down[j])
		}
		areas = append(areas, area{classes[i], up.String() + "Z"})
	}
	return areas
}

// bar draws parts of a whole beside each other, between y and y+h.
func (c *chart) bar(y, h float64, parts []part, whole float64) {
	at := 0.0
	for _, p := range parts {
		if w := p.seconds / whole; w > 0 {
			c.Rects = append(c.Rects, rect{pc(at), px(y), pc(w), px(h), p.class, p.tip(whole)})
			at += w
		}
	}
}
