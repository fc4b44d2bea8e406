// SPDX-License-Identifier: BSD-2-Clause

package policy

// ConduitTable is a set of conduits in memory, for tests and small programs. Any
// number of goroutines may read it at once.
type ConduitTable struct {
	byName map[string]*Conduit
	dense  []*Conduit         // by number, for numbers up to that of conduits
	sparse map[int64]*Conduit // by number, for others
}

// NewConduitTable returns a table of the given conduits. Of two with the same name or
// number, the later one counts.
func NewConduitTable(conduits ...Conduit) *ConduitTable {
	t := &ConduitTable{byName: make(map[string]*Conduit), dense: make([]*Conduit, len(conduits)+1),
		sparse: make(map[int64]*Conduit)}
	for _, conduit := range conduits {
		kept := t.byName[conduit.Name]
		if kept == nil {
			kept = new(Conduit)
			t.byName[conduit.Name] = kept
		}
		*kept = conduit
		switch {
		case conduit.ID == 0:
		case t.isDense(conduit.ID):
			t.dense[conduit.ID] = kept
		default:
			t.sparse[conduit.ID] = kept
		}
	}
	return t
}

func (t *ConduitTable) isDense(id int64) bool { return id > 0 && id < int64(len(t.dense)) }

// ConduitByName implements [Conduits].
func (t *ConduitTable) ConduitByName(name string) (Conduit, bool) { return found(t.byName[name]) }

// ConduitByID implements [Conduits].
func (t *ConduitTable) ConduitByID(id int64) (Conduit, bool) {
	if t.isDense(id) {
		return found(t.dense[id])
	}
	return found(t.sparse[id])
}

func found(conduit *Conduit) (Conduit, bool) {
	if conduit == nil {
		return Conduit{}, false
	}
	return *conduit, true
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
