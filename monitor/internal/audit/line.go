// SPDX-License-Identifier: BSD-2-Clause

package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A line is a record as JSON, its hash last. The hash covers every byte before it,
// so that it can be checked without knowing how the JSON was made:
//
//	{"sequence":1,…,"allowed":false,"hash":"<SHA-256 of {"sequence":1,…,"allowed":false}>"}
const (
	hashPrefix = `,"hash":"`
	hashSuffix = `"}`
	hashLength = len(hashPrefix) + 2*sha256.Size + len(hashSuffix)
)

// origin is the "previous" of the first record.
var origin = strings.Repeat("0", 2*sha256.Size)

// Limits on what one event may add to the log.
const (
	maxText  = 4096 // bytes of a field
	maxFact  = 512  // bytes of a fact
	maxFacts = 32   // facts of a decision
)

// unsealed is a record without its hash. Its fields are those of Record, in order.
type unsealed struct {
	Sequence uint64    `json:"sequence"`
	Time     time.Time `json:"time"`
	Previous string    `json:"previous"`
	Event
}

// seal renders a record and returns its line, newline included, and its hash.
func seal(u unsealed) (line []byte, hash string, err error) {
	body, err := json.Marshal(u)
	if err != nil {
		return nil, "", fmt.Errorf("render audit record %d: %w", u.Sequence, err)
	}
	sum := sha256.Sum256(body)
	hash = hex.EncodeToString(sum[:])
	line = append(body[:len(body)-1], hashPrefix...)
	line = append(line, hash...)
	line = append(line, hashSuffix...)
	return append(line, '\n'), hash, nil
}

// open reads a line without its newline and checks its hash.
func open(line []byte) (Record, error) {
	cut := len(line) - hashLength
	if cut < 1 || !bytes.HasPrefix(line[cut:], []byte(hashPrefix)) || !bytes.HasSuffix(line, []byte(hashSuffix)) {
		return Record{}, errors.New("the line does not end in a hash")
	}
	digest := sha256.New()
	digest.Write(line[:cut])
	digest.Write([]byte{'}'})
	want := hex.EncodeToString(digest.Sum(nil))
	if got := string(line[cut+len(hashPrefix) : len(line)-len(hashSuffix)]); got != want {
		return Record{}, fmt.Errorf("the record is altered: its content has the hash %s and it says %s", want, got)
	}
	var record Record
	if err := json.Unmarshal(line, &record); err != nil {
		return Record{}, fmt.Errorf("the record is not JSON: %w", err)
	}
	return record, nil
}

// bounded returns the event with every text valid and of limited length. File names are
// bytes; those that are not UTF-8 are escaped, not dropped.
func bounded(e Event) Event {
	for _, text := range []*string{
		&e.Pipeline, &e.Task, &e.Instance, &e.Principal, &e.Operation, &e.Conduit, &e.Policy, &e.Clause, &e.Reason,
	} {
		*text = boundedText(*text, maxText)
	}
	if len(e.Facts) > maxFacts {
		dropped := len(e.Facts) - maxFacts
		e.Facts = append(append([]string{}, e.Facts[:maxFacts]...), fmt.Sprintf("… and %d more", dropped))
	}
	for i, fact := range e.Facts {
		if safe := boundedText(fact, maxFact); safe != fact {
			e.Facts = append([]string{}, e.Facts...) // the caller's own list must not change
			e.Facts[i] = safe
		}
	}
	return e
}

func boundedText(s string, limit int) string {
	if !utf8.ValidString(s) {
		quoted := strconv.QuoteToASCII(s)
		s = quoted[1 : len(quoted)-1]
	}
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "…"
	}
	return s
}
