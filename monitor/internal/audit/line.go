// SPDX-License-Identifier: BSD-2-Clause

package audit

import (
	"bytes"
	"crypto/hmac"
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

// A line is a record as JSON, its seal last. The seal covers every byte before it, so that
// it can be checked without knowing how the JSON was made:
//
//	{"sequence":1,…,"allowed":false,"mac":"<HMAC-SHA256 of {"sequence":1,…,"allowed":false}>"}
//
// Monitors without a key have written "hash", the SHA-256, in place of "mac".
const (
	macPrefix  = `,"mac":"`
	hashPrefix = `,"hash":"`
	sealLength = 2 * sha256.Size
	lineEnd    = `"}`
)

// origin is the "previous" of the first record.
var origin = strings.Repeat("0", 2*sha256.Size)

// Limits on what one event may add to the log.
const (
	maxText  = 4096 // bytes of a field
	maxFact  = 512  // bytes of a fact
	maxFacts = 32   // facts of a decision
)

// unsealed is a record without its seal. Its fields are those of Record, in order.
type unsealed struct {
	Sequence uint64    `json:"sequence"`
	Time     time.Time `json:"time"`
	Previous string    `json:"previous"`
	Event
}

// seal renders a record and returns its line, newline included, and its seal.
func (k *Key) seal(u unsealed) (line []byte, seal string, err error) {
	body, err := json.Marshal(u)
	if err != nil {
		return nil, "", fmt.Errorf("render audit record %d: %w", u.Sequence, err)
	}
	seal = k.mac(body)
	line = append(body[:len(body)-1], macPrefix...)
	line = append(line, seal...)
	line = append(line, lineEnd...)
	return append(line, '\n'), seal, nil
}

// open reads a line without its newline and checks its seal. It accepts lines with a hash:
// the caller decides where these may be.
func (k *Key) open(line []byte) (Record, error) {
	body, said, keyed, err := unseal(line)
	if err != nil {
		return Record{}, err
	}
	switch {
	case keyed && k == nil:
		return Record{}, errNoKey
	case keyed && !hmac.Equal([]byte(said), []byte(k.mac(body))):
		return Record{}, errors.New("the record is altered, or was written with another key")
	case !keyed:
		sum := sha256.Sum256(body)
		if want := hex.EncodeToString(sum[:]); said != want {
			return Record{}, fmt.Errorf("the record is altered: its content has the hash %s and it says %q", want, said)
		}
	}
	var record Record
	if err := json.Unmarshal(line, &record); err != nil {
		return Record{}, fmt.Errorf("the record is not JSON: %w", err)
	}
	if !isSeal(record.Previous) {
		return Record{}, fmt.Errorf("the record follows %.100q, which is no seal", record.Previous)
	}
	record.MAC, record.Hash = said, "" // from the end of the line, whatever else the line holds
	if !keyed {
		record.MAC, record.Hash = "", said
	}
	return record, nil
}

func isSeal(text string) bool {
	return len(text) == sealLength && strings.Trim(text, "0123456789abcdef") == ""
}

// unseal divides a line into what the seal covers and the seal.
func unseal(line []byte) (body []byte, seal string, keyed bool, err error) {
	rest, ends := bytes.CutSuffix(line, []byte(lineEnd))
	if !ends || len(rest) < sealLength {
		return nil, "", false, errors.New("the line does not end in a seal")
	}
	rest, seal = rest[:len(rest)-sealLength], string(rest[len(rest)-sealLength:])
	content, keyed := bytes.CutSuffix(rest, []byte(macPrefix))
	if !keyed {
		if content, ends = bytes.CutSuffix(rest, []byte(hashPrefix)); !ends {
			return nil, "", false, errors.New("the line does not end in a seal")
		}
	}
	return append(bytes.Clone(content), '}'), seal, keyed, nil
}

// bounded returns the event with every text valid and of limited length. File names are
// bytes; those that are not UTF-8 are escaped, not dropped.
func bounded(e Event) Event {
	for _, text := range []*string{
		&e.Pipeline, &e.Task, &e.Instance, &e.Principal, &e.Reader, &e.Operation, &e.Conduit, &e.Policy,
		&e.Clause, &e.Reason,
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
