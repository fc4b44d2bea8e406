// SPDX-License-Identifier: BSD-2-Clause

package look

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// pairs are foregrounds with the ground that they are drawn on, and the least contrast
// that WCAG 2.2 asks for: 4.5 for text, 3 for shapes.
var pairs = []struct {
	foreground, ground string
	least              float64
}{
	{"ink", "ground", 4.5}, {"ink", "card", 4.5}, {"soft", "ground", 4.5}, {"soft", "card", 4.5},
	{"accent", "ground", 4.5}, {"accent", "card", 4.5}, {"on-accent", "accent", 4.5},
	{"good", "good-ground", 4.5}, {"note", "note-ground", 4.5}, {"wrong", "wrong-ground", 4.5},
}

func TestContrast(t *testing.T) {
	variables := map[string]Colour{}
	for _, found := range regexp.MustCompile(`--([a-z-]+): light-dark\((#\w{6}), (#\w{6})\);`).
		FindAllStringSubmatch(Stylesheet(), -1) {
		variables[found[1]] = Colour{Light: found[2], Dark: found[3]}
	}
	checked := pairs
	for group, colours := range Colours() {
		for name := range colours {
			checked = append(checked, struct {
				foreground, ground string
				least              float64
			}{group + "-" + name, "card", 3})
		}
	}
	for _, pair := range checked {
		foreground, ground := variables[pair.foreground], variables[pair.ground]
		if foreground == (Colour{}) || ground == (Colour{}) {
			t.Errorf("no variable --%s or --%s", pair.foreground, pair.ground)
			continue
		}
		for scheme, found := range map[string]float64{
			"light": contrast(t, foreground.Light, ground.Light), "dark": contrast(t, foreground.Dark, ground.Dark),
		} {
			if found < pair.least {
				t.Errorf("%s on %s, %s: contrast %.2f, want %.1f", pair.foreground, pair.ground, scheme, found, pair.least)
			}
		}
	}
}

// contrast is the ratio of WCAG 2.2, from 1 to 21.
func contrast(t *testing.T, one, other string) float64 {
	t.Helper()
	a, b := luminance(t, one), luminance(t, other)
	return (math.Max(a, b) + 0.05) / (math.Min(a, b) + 0.05)
}

func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	total := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		part, err := strconv.ParseUint(colour[1+2*i:3+2*i], 16, 8)
		if err != nil {
			t.Fatalf("%q is no colour: %v", colour, err)
		}
		share := float64(part) / 255
		if share <= 0.04045 {
			share /= 12.92
		} else {
			share = math.Pow((share+0.055)/1.055, 2.4)
		}
		total += weight * share
	}
	return total
}

// Rules use only variables that are defined: an unknown one would silently be no colour.
func TestVariables(t *testing.T) {
	text := Stylesheet()
	for _, found := range regexp.MustCompile(`var\((--[a-z-]+)`).FindAllStringSubmatch(text, -1) {
		if !strings.Contains(text, "\n  "+found[1]+": ") {
			t.Errorf("%s is used and not defined", found[1])
		}
	}
}
