// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"math"
	"math/bits"
	"net/netip"
	"strings"
	"time"
)

// compute fills in the one missing argument (a Wildcard) of an arithmetic predicate or of
// concat, or checks the arguments if none is missing. ok is false if the predicate does
// not hold, which includes overflow, division by zero and operands of the wrong kind.
func compute(op operation, x, y, z Value) (values [3]Value, ok bool) {
	switch {
	case op == opConcat:
		return concatenate(x, y, z)
	case x.kind == Wildcard:
		x, ok = result(op, y, z)
	case y.kind == Wildcard && op == opAdd:
		y, ok = result(opSub, x, z)
		ok = ok && confirms(op, x, y, z)
	case z.kind == Wildcard && op == opAdd:
		z, ok = result(opSub, x, y)
		ok = ok && confirms(op, x, y, z)
	case y.kind == Wildcard && op == opSub:
		if z.kind == TimeValue {
			y, ok = result(opAdd, z, x) // so many seconds after it
		} else {
			y, ok = result(opAdd, x, z)
		}
		ok = ok && confirms(op, x, y, z)
	case z.kind == Wildcard && op == opSub:
		z, ok = result(opSub, y, x)
		ok = ok && confirms(op, x, y, z)
	default:
		ok = confirms(op, x, y, z)
	}
	return [3]Value{x, y, z}, ok
}

// confirms checks the inverse directions: seconds between two times are truncated, so an
// operand that was found backwards need not give the same result forwards.
func confirms(op operation, x, y, z Value) bool {
	expected, ok := result(op, y, z)
	return ok && expected == x
}

// result computes the first argument from the others. Times may be moved by whole
// seconds, and their difference is in whole seconds.
func result(op operation, y, z Value) (Value, bool) {
	switch {
	case y.kind == IntegerValue && z.kind == IntegerValue:
		number, ok := integerResult(op, y.number, z.number)
		return Integer(number), ok
	case y.kind == TimeValue && z.kind == IntegerValue && (op == opAdd || op == opSub):
		nanoseconds, ok := integerResult(opMul, z.number, int64(time.Second))
		if !ok {
			return Value{}, false
		}
		number, ok := integerResult(op, y.number, nanoseconds)
		return Value{kind: TimeValue, number: number}, ok
	case y.kind == TimeValue && z.kind == TimeValue && op == opSub:
		nanoseconds, ok := integerResult(opSub, y.number, z.number)
		return Integer(nanoseconds / int64(time.Second)), ok
	}
	return Value{}, false
}

func integerResult(op operation, y, z int64) (int64, bool) {
	switch op {
	case opAdd:
		sum := y + z
		return sum, (sum > y) == (z > 0)
	case opSub:
		difference := y - z
		return difference, (difference < y) == (z > 0)
	case opMul:
		return multiply(y, z)
	case opDiv:
		if z == 0 || y == math.MinInt64 && z == -1 {
			return 0, false
		}
		return y / z, true
	case opRem:
		if z == 0 {
			return 0, false
		}
		return y % z, true
	}
	return 0, false
}

func multiply(y, z int64) (int64, bool) {
	magnitude := func(n int64) uint64 {
		if n < 0 {
			return -uint64(n) //nolint:gosec // the magnitude of the least integer needs the sign bit
		}
		return uint64(n)
	}
	high, low := bits.Mul64(magnitude(y), magnitude(z))
	negative := (y < 0) != (z < 0)
	switch {
	case high != 0, !negative && low > math.MaxInt64, negative && low > 1<<63:
		return 0, false
	case negative:
		return -int64(low), true //nolint:gosec // compared with the greatest integer above
	}
	return int64(low), true //nolint:gosec // compared with the greatest integer above
}

func concatenate(x, y, z Value) (values [3]Value, ok bool) {
	for _, part := range [3]Value{x, y, z} {
		if part.kind != StringValue && part.kind != Wildcard {
			return values, false
		}
	}
	switch {
	case x.kind == Wildcard:
		if len(y.text)+len(z.text) > MaxString {
			return values, false
		}
		x = String(y.text + z.text)
	case y.kind == Wildcard:
		var text string
		text, ok = strings.CutSuffix(x.text, z.text)
		return [3]Value{x, String(text), z}, ok
	case z.kind == Wildcard:
		var text string
		text, ok = strings.CutPrefix(x.text, y.text)
		return [3]Value{x, y, String(text)}, ok
	default:
		left, found := strings.CutPrefix(x.text, y.text)
		return [3]Value{x, y, z}, found && left == z.text
	}
	return [3]Value{x, y, z}, true
}

// relate decides a relation between two constants. Values of different kinds are
// unequal and not ordered.
func relate(op operation, left, right Value) bool {
	if left.kind != right.kind {
		return op == opNeq
	}
	order := left.Compare(right)
	switch op {
	case opEq:
		return order == 0
	case opNeq:
		return order != 0
	case opLt:
		return order < 0
	case opLe:
		return order <= 0
	case opGt:
		return order > 0
	case opGe:
		return order >= 0
	}
	return false
}

// mirrored returns the relation with its sides exchanged.
func mirrored(op operation) operation {
	switch op {
	case opLt:
		return opGt
	case opLe:
		return opGe
	case opGt:
		return opLt
	case opGe:
		return opLe
	}
	return op
}

// implies reports whether "left premise right" implies "left conclusion right".
func implies(premise, conclusion operation) bool {
	switch premise {
	case conclusion:
		return true
	case opEq:
		return conclusion == opLe || conclusion == opGe
	case opLt:
		return conclusion == opLe || conclusion == opNeq
	case opGt:
		return conclusion == opGe || conclusion == opNeq
	}
	return false
}

// impliesBound reports whether "a premise bound" implies "a conclusion limit" for every
// a. bound and limit are different constants of one kind.
func impliesBound(premise operation, bound Value, conclusion operation, limit Value) bool {
	below := bound.Compare(limit) < 0
	switch conclusion {
	case opLt, opLe:
		return below && (premise == opLt || premise == opLe || premise == opEq)
	case opGt, opGe:
		return !below && (premise == opGt || premise == opGe || premise == opEq)
	case opNeq:
		return premise == opEq || below && (premise == opLt || premise == opLe) ||
			!below && (premise == opGt || premise == opGe)
	}
	return false
}

// kindName returns the word for a value's kind that vType uses.
func kindName(value Value) (Value, bool) {
	if !value.concrete() {
		return Value{}, false
	}
	return String(typeNames[value.kind]), true
}

// within reports whether the address lies in the prefix. If it is written with a length,
// all of that prefix must lie in it. An address without a length is its own prefix.
func within(address, prefix Value) bool {
	inner, ok := parsePrefix(address)
	if !ok {
		return false
	}
	outer, ok := parsePrefix(prefix)
	return ok && outer.Bits() <= inner.Bits() && outer.Contains(inner.Addr())
}

func parsePrefix(value Value) (netip.Prefix, bool) {
	if value.kind != StringValue {
		return netip.Prefix{}, false
	}
	if prefix, err := netip.ParsePrefix(value.text); err == nil {
		return prefix, true
	}
	address, err := netip.ParseAddr(value.text)
	if err != nil {
		return netip.Prefix{}, false
	}
	address = address.Unmap().WithZone("")
	return netip.PrefixFrom(address, address.BitLen()), true
}
