// SPDX-License-Identifier: BSD-2-Clause

package figure

import (
	"math"
	"strconv"
	"strings"
)

// None is the cell of what is not known.
func None() Cell { return Cell{Text: "–"} }

// Words is a cell of text.
func Words(text string) Cell { return Cell{Text: text} }

// Number is a cell of a number; None for one that is not finite.
func Number(value float64) Cell {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return None()
	}
	return Cell{Text: Digits(value), Value: &value}
}

// Interval is a cell of an estimate; low and high are nil after a single round.
func Interval(value float64, low, high *float64) Cell {
	cell := Number(value)
	if cell.Value == nil || low == nil || high == nil {
		return cell
	}
	cell.Low, cell.High = low, high
	cell.Text += " [" + Digits(*low) + ", " + Digits(*high) + "]"
	return cell
}

// significant is how many digits a number has in a table.
const significant = 3

// Digits formats a number with three significant digits, or as a whole number when it
// has more, and without an exponent as long as people read it more easily so.
func Digits(value float64) string {
	size := math.Abs(value)
	switch {
	case size == 0:
		return "0"
	case size >= 1e15 || size < 1e-4:
		return strconv.FormatFloat(value, 'g', significant, 64)
	}
	// Rounded first: 9.996 has one decimal fewer than 9.99.
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(value, 'g', significant, 64), 64)
	decimals := max(0, significant-1-int(math.Floor(math.Log10(math.Abs(rounded)))))
	whole, fraction, _ := strings.Cut(strconv.FormatFloat(value, 'f', decimals, 64), ".")
	if value == math.Trunc(value) {
		fraction = ""
	}
	if fraction != "" {
		fraction = "." + fraction
	}
	return grouped(whole) + fraction
}

// grouped writes a comma between thousands.
func grouped(whole string) string {
	sign, digits := "", whole
	if strings.HasPrefix(whole, "-") {
		sign, digits = "-", whole[1:]
	}
	if len(digits) <= 4 {
		return whole
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// Scale is a unit in which a figure's values are easy to read.
type Scale struct {
	Unit   string
	Factor float64 // multiplies the value in the base unit
}

// scales are the units of a base unit, the largest first.
var scales = map[string][]Scale{
	"s":     {{"s", 1}, {"ms", 1e3}, {"µs", 1e6}, {"ns", 1e9}},
	"bytes": {{"GiB", 1.0 / (1 << 30)}, {"MiB", 1.0 / (1 << 20)}, {"KiB", 1.0 / (1 << 10)}, {"bytes", 1}},
	"ratio": {{"%", 100}},
}

// ScaleFor returns the unit for values of a base unit (s, bytes, ratio, or any other,
// which stays as it is) up to a size.
func ScaleFor(unit string, largest float64) Scale {
	list, known := scales[unit]
	if !known {
		return Scale{unit, 1}
	}
	for _, scale := range list {
		if math.Abs(largest)*scale.Factor >= 1 {
			return scale
		}
	}
	if largest == 0 {
		return list[0]
	}
	return list[len(list)-1]
}

// Exactly is a cell of a number with all its digits, as it was published.
func Exactly(value float64) Cell {
	return Cell{Text: strconv.FormatFloat(value, 'f', -1, 64), Value: &value}
}
