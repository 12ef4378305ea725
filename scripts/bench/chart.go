package main

import (
	"fmt"
	"html"
	"os"
	"strings"
)

// The chart's measures, in pixels for the width at which a README is displayed.
const (
	chartWidth  = 840
	margin      = 28
	labelWidth  = 250 // from the margin to where bars begin
	barHeight   = 18
	rowHeight   = 27
	valueWidth  = 64 // kept free on the right for the longest bar's value
	headHeight  = 56 // of the title and the line below it
	panelHead   = 54 // of a panel's title, and of the words above its baseline
	panelFoot   = 18
	captionFoot = 40
)

// panel is a group of bars.
type panel struct {
	title string
	own   bool // it has its own scale, not that of the previous panels
	rows  []panelRow
}

type panelRow struct {
	id, label string
	other     bool // it belongs to another client
}

var panels = []panel{
	{
		title: "A call to a service in memory",
		rows: []panelRow{
			{id: "list-1", label: "list of 1 card"},
			{id: "list-20", label: "list of 20 cards"},
			{id: "list-100-worst", label: "list of 100, the slowest shape"},
			{id: "list-1000-worst", label: "list of 1,000, the slowest shape"},
			{id: "card", label: "one card"},
			{id: "bins", label: "50 BINs"},
			{id: "tiny", label: "smallest call"},
		},
	},
	{
		title: "A call over loopback, the service included",
		rows: []panelRow{
			{id: "list-loopback", label: "list of 100 cards"},
			{id: "tiny-loopback", label: "smallest call"},
		},
	},
	{
		title: "A list call in memory, each client against its own baseline", own: true,
		rows: []panelRow{
			{id: "list-cardwire", label: "cardwire"},
			{id: "list-github", label: "go-github", other: true},
			{id: "list-generated", label: "generated from OpenAPI", other: true},
			{id: "list-stripe", label: "stripe-go", other: true},
			{id: "list-metronome", label: "metronome-go", other: true},
		},
	},
}

// chartStyle has its own background, so that it is readable on a page of any color.
const chartStyle = `
text { font: 14px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, "DejaVu Sans", sans-serif; fill: #24292f }
.ground { fill: #ffffff; stroke: #d0d7de }
.title { font-size: 20px; font-weight: 600 }
.panel { font-size: 15px; font-weight: 600 }
.small { font-size: 12.5px; fill: #57606a }
.value { font-weight: 600 }
.track { fill: #eef1f4 }
.ours { fill: #0f7b6c }
.others { fill: #9a6b1f }
.by-hand { stroke: #24292f; stroke-width: 1.5; stroke-dasharray: 4 3 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.ground { fill: #0d1117; stroke: #30363d }
.small { fill: #9da7b3 }
.track { fill: #1c2229 }
.ours { fill: #3fb8a4 }
.others { fill: #d29f4a }
.by-hand { stroke: #e6edf3 }
}
`

// draw writes the chart of the times as an SVG.
func draw(file string, r *result) error { return os.WriteFile(file, []byte(chart(r)), 0o644) }

func chart(r *result) string {
	var body strings.Builder
	y := margin + headHeight
	shared := 1.0
	for _, p := range panels {
		if !p.own {
			shared = max(shared, p.longest(r))
		}
	}
	for _, p := range panels {
		most := shared
		if p.own {
			most = max(1, p.longest(r))
		}
		y = p.draw(&body, y, most, r)
	}
	height := y + captionFoot
	title := "Time, against the same written by hand"
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-label="%s">`+"\n",
		chartWidth, height, chartWidth, height, title)
	fmt.Fprintf(&out, "<title>%s</title>\n<style>%s</style>\n", title, chartStyle)
	fmt.Fprintf(&out, `<rect class="ground" x="0.5" y="0.5" width="%d" height="%d" rx="8"/>`+"\n", chartWidth-1, height-1)
	write(&out, margin+14, "title", title)
	write(&out, margin+38, "small", "By hand is a bare http.Client, io.ReadAll and encoding/json into a plain struct. A shorter bar is less time.")
	out.WriteString(body.String())
	write(&out, height-22, "small", fmt.Sprintf("%s, %d processors. Medians of rounds that take turns: go run ./scripts/bench",
		r.machine(), r.Procs))
	out.WriteString("</svg>\n")
	return out.String()
}

// longest is the largest value of the panel.
func (p *panel) longest(r *result) (most float64) {
	for _, row := range p.rows {
		v, _ := r.value(row.id)
		most = max(most, v)
	}
	return most
}

// draw writes the rows that were measured, and returns where the next panel
// begins. A bar of the value most takes all the room.
func (p *panel) draw(out *strings.Builder, y int, most float64, r *result) int {
	const left, room = margin + labelWidth, chartWidth - 2*margin - labelWidth - valueWidth
	var rows []panelRow
	for _, row := range p.rows {
		if _, ok := r.value(row.id); ok {
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return y
	}
	write(out, y+20, "panel", p.title)
	y += panelHead
	byHand := left + room/most
	for i, row := range rows {
		v, _ := r.value(row.id)
		top := y + i*rowHeight
		class := "ours"
		if row.other {
			class = "others"
		}
		length := v / most * room
		write(out, top+14, "", row.label)
		fmt.Fprintf(out, `<rect class="track" x="%d" y="%d" width="%d" height="%d" rx="2"/>`+"\n", left, top, room, barHeight)
		fmt.Fprintf(out, `<rect class="%s" x="%d" y="%d" width="%.1f" height="%d" rx="2"/>`+"\n", class, left, top, length, barHeight)
		fmt.Fprintf(out, `<text class="value" x="%d" y="%d" text-anchor="end">%.2f</text>`+"\n", chartWidth-margin, top+14, v)
	}
	bottom := y + len(rows)*rowHeight
	fmt.Fprintf(out, `<line class="by-hand" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>`+"\n", byHand, y-6, byHand, bottom-rowHeight+barHeight+6)
	fmt.Fprintf(out, `<text class="small" x="%.1f" y="%d" text-anchor="middle">by hand: 1</text>`+"\n", byHand, y-11)
	return bottom + panelFoot
}

// write puts a line of text at the left margin.
func write(out *strings.Builder, y int, class, text string) {
	fmt.Fprintf(out, `<text class="%s" x="%d" y="%d">%s</text>`+"\n", class, margin, y, html.EscapeString(text))
}

func (r *result) value(id string) (float64, bool) {
	for _, row := range r.Rows {
		if row.ID == id {
			return row.Value, true
		}
	}
	return 0, false
}
