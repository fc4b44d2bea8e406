// SPDX-License-Identifier: BSD-2-Clause

package policy

// ConduitTable is a set of conduits in memory, for tests and small programs. Any
// number of goroutines may read it at once.
type ConduitTable struct {
	byName map[string]Conduit
	byID   map[int64]string
}

// NewConduitTable returns a table of the given conduits. Of two with the same name or
// number, the later one counts.
func NewConduitTable(conduits ...Conduit) *ConduitTable {
	t := &ConduitTable{byName: make(map[string]Conduit), byID: make(map[int64]string)}
	for _, conduit := range conduits {
		t.byName[conduit.Name] = conduit
		if conduit.ID != 0 {
			t.byID[conduit.ID] = conduit.Name
		}
	}
	return t
}

// ConduitByName implements [Conduits].
func (t *ConduitTable) ConduitByName(name string) (Conduit, bool) {
	conduit, found := t.byName[name]
	return conduit, found
}

// ConduitByID implements [Conduits].
func (t *ConduitTable) ConduitByID(id int64) (Conduit, bool) {
	name, found := t.byID[id]
	if !found {
		return Conduit{}, false
	}
	return t.ConduitByName(name)
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
