// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"time"
)

// offerPeriod divides the time since the catalog was opened, which no clock that is set changes. An
// offer of one period is good until the next one ends.
const offerPeriod = 10 * time.Minute

// offers makes what choices are signed with. The key is of one opening of the catalog, and stored nowhere:
// if an earlier catalog comes back, which does not know what was chosen since, nothing that was signed
// before is of use.
type offers struct {
	key    []byte
	opened time.Time
}

func newOffers() offers {
	key := make([]byte, sha256.Size)
	rand.Read(key) // never fails, according to its documentation
	return offers{key: key, opened: time.Now()}
}

// nonces returns the text that stands for a conduit as it is, with its content and after a number of
// choices, and the one that it had in the period before, which is good still. Nobody knows them who has not
// got them from this catalog.
func (o offers) nonces(id uint32, name string, content []byte, times uint64) (now, earlier string) {
	period := time.Since(o.opened) / offerPeriod
	of := func(period time.Duration) string {
		sum := hmac.New(sha256.New, o.key)
		numbers := binary.BigEndian.AppendUint64(nil, uint64(period)) //nolint:gosec // -1 is a period without offers
		numbers = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(numbers, id), times)
		numbers = binary.BigEndian.AppendUint64(numbers, uint64(len(content)))
		for _, part := range [][]byte{numbers, content, []byte(name)} {
			sum.Write(part)
		}
		return hex.EncodeToString(sum.Sum(nil))
	}
	return of(period), of(period - 1)
}

// contentOf returns what tells the content that a document has from every other one; nothing if there is
// no file of its name.
func (v *View) contentOf(name string) (content []byte, err error) {
	stat, err := v.statDocument(name)
	if isAbsent(err) {
		return nil, nil
	}
	for _, number := range []int64{stat.Size, stat.Mtim.Nano(), stat.Ctim.Nano()} {
		content = binary.BigEndian.AppendUint64(content, uint64(number)) //nolint:gosec // its bits
	}
	return binary.BigEndian.AppendUint64(content, stat.Ino), err
}

// isOffered reports whether a nonce is one with which a choice for the item can be signed now.
func (i Item) isOffered(nonce string) bool {
	return hmac.Equal([]byte(i.Nonce), []byte(nonce)) || hmac.Equal([]byte(i.Earlier), []byte(nonce))
}

// ErrOutdated says that something else was chosen meanwhile, that the content is another one, that the
// offer is too old, or that nothing can be chosen.
var ErrOutdated = errors.New("the choice is about something else than the document as it is now")
