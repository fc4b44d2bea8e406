// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"slices"
	"time"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/policy"
)

// conditionHash is a state condition in 64 bits, which suffice to find the accesses that
// depend on a fact when it changes. Two conditions with the same hash cost one needless
// decision. The full conditions come from a new decision, with Explain.
type conditionHash uint64

// never is the expiry of an access that does not expire.
const never = math.MaxInt64

// footprint is what an access depends on: sorted hashes, and the instant (Unix
// nanoseconds) from which it no longer holds because time has passed.
type footprint struct {
	hashes []conditionHash
	until  int64
}

// footprintOf keeps the conditions that a change of state can break. It drops
// predictions, which define the instance, and conditions on the conduit's own name, which
// define the class: a conduit for which they change moves to another class. With own "", none
// does.
func footprintOf(conditions []policy.Condition, own string) footprint {
	f := footprint{until: never}
	var buffer [4]policy.Value
	for _, condition := range conditions {
		switch condition.Kind {
		case policy.FactPresent, policy.FactAbsent, policy.FactsUnchanged, policy.FactPresentAt,
			policy.FactsUnchangedAt:
			values := condition.Tuple.AppendValues(buffer[:0])
			if own == "" || condition.Conduit != own && !slices.Contains(values, policy.String(own)) {
				f.hashes = append(f.hashes, hashCondition(condition, values))
			}
		case policy.ConduitExists, policy.ConduitPolicyIs:
			f.hashes = append(f.hashes, hashConduit(condition.Number))
		}
	}
	if until, ok := policy.Until(conditions); ok {
		f.until = until.UnixNano()
	}
	slices.Sort(f.hashes)
	f.hashes = slices.Compact(f.hashes)
	return f
}

// hashCondition hashes the exact fact, wherever it stands in the conduit, if the condition names
// one, or all of the relation's facts in the conduit if the condition contains a wildcard.
func hashCondition(condition policy.Condition, values []policy.Value) conditionHash {
	exact := condition.Kind != policy.FactsUnchanged && condition.Kind != policy.FactsUnchangedAt
	for _, value := range values {
		exact = exact && value.Kind() != policy.Wildcard
	}
	if !exact {
		return hashRelation(condition.Conduit, condition.Relation)
	}
	return hashFact(condition.Conduit, condition.Relation, values)
}

func hashFact(conduit, relation string, values []policy.Value) conditionHash {
	var buffer [256]byte
	key := appendText(appendText(buffer[:0], conduit), relation)
	for _, value := range values {
		from := len(key)
		key = value.Append(appendText(key, ""))
		binary.BigEndian.PutUint32(key[from:], uint32(len(key)-from-lengthBytes)) //nolint:gosec // as in appendText
	}
	return hashBytes(key)
}

func hashRelation(conduit, relation string) conditionHash {
	var buffer [256]byte
	return hashBytes(appendText(appendText(append(buffer[:0], '*'), conduit), relation))
}

func hashConduit(id int64) conditionHash {
	return hashBytes(binary.BigEndian.AppendUint64([]byte{'#'}, uint64(id))) //nolint:gosec // only hashed
}

func hashBytes(key []byte) conditionHash {
	h := fnv.New64a()
	_, _ = h.Write(key)
	return conditionHash(h.Sum64())
}

const lengthBytes = 4

func appendText(key []byte, text string) []byte {
	key = binary.BigEndian.AppendUint32(key, uint32(len(text))) //nolint:gosec // texts are at most a few kilobytes
	return append(key, text...)
}

// changedHashes returns the conditions that a change of the catalog may have broken.
func changedHashes(change *catalog.Change) []conditionHash {
	var hashes []conditionHash
	for _, facts := range [][]policy.Fact{change.Added, change.Removed} {
		for _, fact := range facts {
			hashes = append(hashes, hashFact(fact.Conduit, fact.Relation, fact.Arguments),
				hashRelation(fact.Conduit, fact.Relation))
		}
	}
	for _, move := range change.Moved {
		hashes = append(hashes, hashConduit(int64(move.ID)))
	}
	slices.Sort(hashes)
	return slices.Compact(hashes)
}

func instant(nanoseconds int64) time.Time { return time.Unix(0, nanoseconds).UTC() }
