// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"encoding/binary"
	"hash/fnv"
	"testing"

	"shai.dev/monitor/policy"
)

// Stored results hold hashes: those of another version must stay the same.
func TestHashesOfConditions(t *testing.T) {
	of := func(first string, texts ...string) conditionHash {
		h := fnv.New64a()
		_, _ = h.Write([]byte(first))
		for _, text := range texts {
			_ = binary.Write(h, binary.BigEndian, uint32(len(text)))
			_, _ = h.Write([]byte(text))
		}
		return conditionHash(h.Sum64())
	}
	values := []policy.Value{policy.String(`a"b`), policy.Integer(-7), policy.Time(now), {}}
	if got, want := hashFact("c", "says", values), of("", "c", "says", `"a\"b"`, "-7", "2017-06-01T00:00:00Z", "_"); got != want {
		t.Errorf("a fact has hash %x, want %x", got, want)
	}
	if got, want := hashRelation("c", "says"), of("*", "c", "says"); got != want {
		t.Errorf("a relation has hash %x, want %x", got, want)
	}
	if got, want := hashConduit(258), of("#\x00\x00\x00\x00\x00\x00\x01\x02"); got != want {
		t.Errorf("a conduit has hash %x, want %x", got, want)
	}
}
