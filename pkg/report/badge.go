package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"

	"github.com/benchpin/benchpin/pkg/record"
)

// mostBadge bounds the characters of a half of a badge.
const mostBadge = 48

// badgeForm is a whole badge as Badge writes it.
const badgeForm = `^<svg xmlns="http://www\.w3\.org/2000/svg" width="\d+" height="20" role="img" aria-label="[^"<>\n]*">\n<title>[^<>\n]*</title>\n` +
	`<rect width="\d+" height="20" rx="3" fill="#444"/>\n<path d="M\d+ 0h\d+a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3h-\d+z" fill="#[0-9a-f]+"/>\n` +
	`<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">\n(<text [^<>\n]*>[^<>\n]*</text>\n){2}</g>\n</svg>\n$`

// IsBadge reports whether these are the bytes of a badge, by its whole form: one may be replaced by another.
func IsBadge(b []byte) bool { return regexp.MustCompile(badgeForm).Match(b) }

// Badge writes a badge of a run as SVG: its workload, and AU, or the mean rate of checkpoints where the run does nothing else. It is green
// where the threshold is met, red where it is not, and grey where nothing is judged; an incomplete run has no figure. Texts of the record
// are escaped. A badge is a picture: it proves nothing.
func Badge(w io.Writer, r *record.Record) error {
	label, value, fill := badge(r)
	label, value = cut(label), cut(value)
	left, right := badgeWidth(label), badgeWidth(value)
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="20" role="img" aria-label="%s">`+"\n", left+right, escaped(label+": "+value))
	fmt.Fprintf(&b, "<title>%s</title>\n", escaped(label+": "+value))
	fmt.Fprintf(&b, `<rect width="%d" height="20" rx="3" fill="#444"/>`+"\n", left+right)
	fmt.Fprintf(&b, `<path d="M%d 0h%da3 3 0 0 1 3 3v14a3 3 0 0 1-3 3h-%dz" fill="%s"/>`+"\n", left, right-3, right-3, fill)
	b.WriteString(`<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">` + "\n")
	for _, half := range []struct {
		text      string
		at, width int
	}{{label, left / 2, left}, {value, left + right/2, right}} {
		fmt.Fprintf(&b, `<text x="%d" y="14" textLength="%d" lengthAdjust="spacingAndGlyphs">%s</text>`+"\n", half.at, half.width-badgeMargin, escaped(half.text))
	}
	b.WriteString("</g>\n</svg>\n")
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("writing the badge: %w", err)
	}
	return nil
}

// The colours are dark enough for white letters (WCAG AA, 4.5 to 1).
const (
	badgeGreen = "#2a7a2a"
	badgeRed   = "#b02020"
	badgeGrey  = "#666"

	badgeMargin = 12
)

func badge(r *record.Record) (label, value, fill string) {
	name := r.Workload.Name
	if name == "" {
		name = "benchpin"
	}
	if r.Status != record.StatusComplete {
		return name, "incomplete", badgeGrey
	}
	if checkpointOnly(&r.Plan) {
		phase := "save_checkpoint"
		label := name + " checkpoint write"
		if r.Plan.Checkpoints == 0 {
			phase, label = "load_checkpoint", name+" checkpoint read"
		}
		f := r.Metrics.Other[phase+"_bytes_per_second_mean"]
		if f.Value == nil {
			return label, "no figure", badgeGrey
		}
		return label, strings.Replace(decimalBytes(*f.Value), "B", "B/s", 1), badgeGrey
	}
	label = name + " AU"
	if r.Metrics.AU.Value == nil {
		if v := r.Metrics.BytesPerSecond.Value; v != nil {
			return name, strings.Replace(decimalBytes(*v), "B", "B/s", 1), badgeGrey
		}
		return label, "no figure", badgeGrey
	}
	value = FigureText(r.Metrics.AU)
	switch Met(r) {
	case "yes":
		return label, value, badgeGreen
	case "no":
		return label, value, badgeRed
	}
	return label, value, badgeGrey
}

func cut(s string) string {
	s = clean(s)
	if r := []rune(s); len(r) > mostBadge {
		s = string(r[:mostBadge-1]) + "…"
	}
	return s
}

// badgeWidth is about how wide a text in Verdana of 11 points is, with its margins; the text is then fitted to it.
func badgeWidth(s string) int {
	tenths := 0
	for _, r := range s {
		switch {
		case strings.ContainsRune("ijlft.,:;|!'I()[] ", r):
			tenths += 42
		case strings.ContainsRune("mwMW@%", r):
			tenths += 105
		case unicode.IsUpper(r):
			tenths += 78
		case r < unicode.MaxLatin1:
			tenths += 68
		default:
			tenths += 110
		}
	}
	return tenths/10 + badgeMargin
}

// escaped is a text as content or attribute of XML.
func escaped(s string) string {
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(s)); err != nil { // a builder takes everything
		return ""
	}
	return b.String()
}
