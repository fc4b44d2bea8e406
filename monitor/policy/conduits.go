// SPDX-License-Identifier: BSD-2-Clause

package policy

// ConduitTable is a set of conduits in memory, for tests and small programs. Any
// number of goroutines may read it at once.
type ConduitTable struct {
	byName map[string]*Conduit
	byID   map[int64]*Conduit
}

// NewConduitTable returns a table of the given conduits. Of two with the same name or
// number, the later one counts.
func NewConduitTable(conduits ...Conduit) *ConduitTable {
	t := &ConduitTable{byName: make(map[string]*Conduit), byID: make(map[int64]*Conduit)}
	for _, conduit := range conduits {
		kept := t.byName[conduit.Name]
		if kept == nil {
			kept = new(Conduit)
			t.byName[conduit.Name] = kept
		}
		*kept = conduit
		if conduit.ID != 0 {
			t.byID[conduit.ID] = kept
		}
	}
	return t
}

// ConduitByName implements [Conduits].
func (t *ConduitTable) ConduitByName(name string) (Conduit, bool) {
	if conduit := t.byName[name]; conduit != nil {
		return *conduit, true
	}
	return Conduit{}, false
}

// ConduitByID implements [Conduits].
func (t *ConduitTable) ConduitByID(id int64) (Conduit, bool) {
	if conduit := t.byID[id]; conduit != nil {
		return *conduit, true
	}
	return Conduit{}, false
}

// joined is a state of two parts.
type joined struct {
	Facts
	Conduits
}

// StateOf joins facts and conduits to a state.
func StateOf(facts Facts, conduits Conduits) State { return joined{facts, conduits} }

// indexOf returns the index that a state's facts are in, nil if they are elsewhere.
func indexOf(state State) *FactIndex {
	switch s := state.(type) {
	case joined:
		index, _ := s.Facts.(*FactIndex)
		return index
	case interface{ FactIndex() *FactIndex }:
		return s.FactIndex()
	}
	return nil
}
