// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// ConduitKind is the kind of a conduit. It never changes while the conduit exists.
type ConduitKind uint8

// The kinds of conduit, in the words of cKindIs. DescriptorConduit is a channel
// that transfers the right to open conduits and nothing else. OutputConduit is what a task
// prints.
const (
	UnknownConduit ConduitKind = iota // satisfies no cKindIs
	FileConduit
	TupleConduit
	ConnectionConduit
	PipeConduit
	DescriptorConduit
	OutputConduit
)

var conduitKinds = []string{"unknown", "file", "tuple", "connection", "pipe", "descriptor", "output"}

// String returns the kind in the form of cKindIs.
func (k ConduitKind) String() string {
	if int(k) < len(conduitKinds) {
		return conduitKinds[k]
	}
	return conduitKinds[0]
}

// ParseConduitKind is the inverse of [ConduitKind.String]. It also accepts "channel", the
// word that manifests use for a descriptor.
func ParseConduitKind(name string) (ConduitKind, error) {
	if name == "channel" {
		return DescriptorConduit, nil
	}
	for i, known := range conduitKinds[1:] {
		if name == known {
			return ConduitKind(i + 1), nil
		}
	}
	return UnknownConduit, fmt.Errorf("conduit kind %q is unknown: use one of %s or channel",
		name, strings.Join(conduitKinds[1:], ", "))
}

// Conduit holds the properties of a conduit that decisions depend on.
type Conduit struct {
	ID       int64       // dense number, from 1; 0 if it has none
	Name     string      // path, key or address; never empty
	Kind     ConduitKind // satisfies cKindIs
	Length   int64       // current length in bytes, for cCurrLenIs, if Measured is set
	Measured bool        // somebody has looked; else no cCurrLenIs holds
	Type     string      // declared shape of the content, for cTypeIs; "" satisfies none
	Internal bool        // between tasks of the pipeline, for cIsInternal
	// Directory says that the conduit means every file of a directory that tasks get as a
	// whole. It satisfies neither cNameIs nor cIdIs.
	Directory bool
	Policy    *Policy // nil: nobody may read or write
}

// Label returns the obligations that the conduit's policy puts on everything derived from
// its data. Without a policy it is an obligation that nobody satisfies.
func (c Conduit) Label() Label {
	if c.Policy == nil {
		return nobody.Label(c.Name)
	}
	return c.Policy.Label(c.Name)
}

// Fact is a tuple in a conduit: Conduit says Relation(Arguments…).
type Fact struct {
	Conduit   string
	Relation  string
	Arguments []Value
	// Offset is the tuple's position in the conduit, if Positioned is set.
	Offset     int64
	Positioned bool
}

// Pattern selects facts.
type Pattern struct {
	Conduit   string  // "" for any conduit
	Relation  string  // required
	Arguments []Value // as many as the relation has; the zero Value for any
	// Positioned selects only facts with an offset; Offset is then that offset,
	// or the zero Value for any.
	Positioned bool
	Offset     Value
	// Rows, if set, is the number of facts that lookups may still look at, those that turn out
	// not to match included. Lookups count it down and end when it is used up, although more
	// facts may match. Whoever sets it must take 0 for a lookup without a result.
	Rows *int
}

// Look counts a fact that a lookup looks at. It returns false when the lookup must end.
// Implementations of [Facts] call it.
func (p *Pattern) Look() bool {
	if p.Rows == nil {
		return true
	}
	if *p.Rows <= 0 {
		return false
	}
	*p.Rows--
	return true
}

// Facts is a read-only view of the tuples in conduits. It must be safe for concurrent
// use.
type Facts interface {
	// Has reports whether any fact matches. It must use an index: comparisons call it for
	// every document class.
	Has(pattern Pattern) bool
	// Lookup calls yield with each match until yield returns false, ordered by
	// conduit, then offset, then arguments ([Value.Compare]). A fact's Arguments
	// may be reused by the implementation after yield returns.
	Lookup(pattern Pattern, yield func(Fact) bool)
}

// Conduits is a read-only view of the conduits and their policies.
type Conduits interface {
	ConduitByName(name string) (Conduit, bool)
	ConduitByID(id int64) (Conduit, bool)
}

// State is the input that rules are evaluated against. It must not change during a call
// into this package.
type State interface {
	Facts
	Conduits
}

// Session is the party for which a task acts, or the connected party. The reference
// monitor has verified it; the offline analysis predicts it.
type Session struct {
	Principal string     // name, or "task/<task name>" for a task without a user; "" when not authenticated
	Key       string     // public key in hexadecimal, "" when not known; sKeyIs accepts either
	IP        netip.Addr // peer address; the zero Addr satisfies no sIpIs
	Region    string     // derived from IP by the monitor; "" satisfies no sRegionIs
}

// Update is the content of a write, as the monitor has parsed it. It must be
// complete: if a write contains anything but tuples, it has no Update.
type Update struct {
	Facts     []Fact // what the conduit will say; Conduit is ignored
	NewLength int64  // length in bytes afterwards, for cNewLenIs
}

// Environment is everything besides the state that a decision may depend on.
type Environment struct {
	Session *Session  // nil: nobody; all session predicates fail
	Now     time.Time // the clock; with the zero Time, all literals about time fail
	// Target is the conduit that is written, or by which data leaves. The c… predicates
	// are about it. [Decide] sets it.
	Target *Conduit
	Update *Update // nil: unknown; willsay and cNewLenIs fail
	// Waive, if set, reports which policies are not enforced: their demands are not
	// checked. The demands of other policies are, and a waived policy still counts if it
	// keeps an obligation of another one.
	Waive func(*Policy) bool
	// Conditions, if set, is memory for those of the decision. They are valid until it is used
	// again.
	Conditions []Condition
	// Bulk leaves out the reasons of denials, which cost more than the decision.
	Bulk bool
	// Explain asks for Decision.Derivation, which costs several times the decision.
	Explain bool
	// Steps overrides DefaultSteps when positive.
	Steps int
}
