// SPDX-License-Identifier: BSD-2-Clause

package audit

import (
	"crypto/hmac"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// mark is a position in the chain. The zero mark is before the first record.
type mark struct {
	sequence uint64
	seal     string
}

// start is the mark before the first record.
var start = mark{seal: origin}

// A head names the last record. It is overwritten after its records are on disk, so it is
// never ahead of them: if the log ends before its head, records have been removed. The
// chain alone cannot show that its end is missing. There are two: one in the log, which
// goes with a copy of it, and one beside the log, which shows that the whole log, with its
// head, was replaced by an earlier copy.
//
//	shai-audit-head-2 <key's name> <number of the record> <its seal> <HMAC of what is before>
//
// Logs of monitors without a key have the number and the hash only.
const (
	headName      = "head"
	headFormat    = "shai-audit-head-2 "
	unkeyedFormat = "%020d %s\n"
	headAttempts  = 4
)

func witnessFile(directory string) string { return filepath.Clean(directory) + ".head" }

func headText(key *Key, m mark) string {
	text := fmt.Sprintf("%s%s %020d %s", headFormat, key.id, m.sequence, m.seal)
	return text + " " + key.mac([]byte(text)) + "\n"
}

// head is what the head of a log says.
type head struct {
	mark
	keyed bool
}

// readHead reads a head. It tries again if it finds a faulty one: a writer may be
// overwriting it.
func readHead(path string, key *Key) (found head, err error) {
	for range headAttempts {
		text, reading := readHeadText(path)
		if reading != nil {
			return head{}, fmt.Errorf("read audit head: %w", reading)
		}
		if found, err = parseHead(string(text), key); err == nil {
			return found, nil
		}
	}
	return head{}, fmt.Errorf("read audit head %s: %w", path, err)
}

func readHeadText(path string) ([]byte, error) {
	file, err := openRegular(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	return readSmall(file, "keep a copy of the log: the monitor writes the head anew when it starts")
}

func parseHead(text string, key *Key) (head, error) {
	if !strings.HasPrefix(text, headFormat) {
		return parseUnkeyedHead(text)
	}
	if key == nil {
		return head{}, errNoKey
	}
	found := head{keyed: true}
	var id, mac string
	_, err := fmt.Sscanf(text, headFormat+"%s %020d %s %s\n", &id, &found.sequence, &found.seal, &mac)
	switch {
	case err != nil:
		return head{}, errors.New("it is not the head of a log")
	case id != key.id:
		return head{}, fmt.Errorf("the log has the key %q and the given key is %q", id, key.id)
	case !hmac.Equal([]byte(text), []byte(headText(key, found.mark))):
		return head{}, errors.New("it is altered")
	}
	return found, nil
}

func parseUnkeyedHead(text string) (head, error) {
	if text == "" {
		return head{mark: start}, nil // begun, nothing synced yet
	}
	found := head{}
	_, err := fmt.Sscanf(text, unkeyedFormat, &found.sequence, &found.seal)
	if err != nil || text != fmt.Sprintf(unkeyedFormat, found.sequence, found.seal) ||
		!isSeal(found.seal) || (found.sequence == 0) != (found.seal == origin) {
		return head{}, errors.New("it is not a sequence number and a hash")
	}
	return found, nil
}

// readWitness reads the head beside a log. A log that was copied, or written without a
// key, has none.
func readWitness(directory string, key *Key) (head, error) {
	found, err := readHead(witnessFile(directory), key)
	if errors.Is(err, fs.ErrNotExist) {
		return head{mark: start}, nil
	}
	if err == nil && !found.keyed {
		if found.sequence == 0 {
			return found, nil // made, and nothing written yet
		}
		return head{}, fmt.Errorf("read audit head %s: it has no seal", witnessFile(directory))
	}
	return found, err
}

// heads are the two files that a writer keeps.
type heads struct {
	key             *Key
	inside, witness *os.File
}

func (h heads) write(m mark) error {
	text := []byte(headText(h.key, m))
	if _, err := h.inside.WriteAt(text, 0); err != nil {
		return err
	}
	_, err := h.witness.WriteAt(text, 0)
	return err
}

// cut removes what follows heads that are too long: somebody else has written it, and it would stay.
func (h heads) cut() error {
	for _, file := range []*os.File{h.inside, h.witness} {
		about, err := file.Stat()
		if err == nil && about.Size() > int64(len(headText(h.key, start))) {
			err = file.Truncate(int64(len(headText(h.key, start))))
		}
		if err != nil {
			return fmt.Errorf("cut audit head %s: %w", file.Name(), err)
		}
	}
	return nil
}

func (h heads) close() { h.inside.Close(); h.witness.Close() }
