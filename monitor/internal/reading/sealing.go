// SPDX-License-Identifier: BSD-2-Clause

package reading

import (
	"crypto/hpke"
	"encoding/json"
	"errors"
	"fmt"
)

// An answer is sealed with HPKE (RFC 9180). The key exchange is the hybrid of X25519 and ML-KEM-768:
// a sealed answer lies in the API server's store, and in its backups for as long as they are kept.
var (
	kem  = hpke.MLKEM768X25519()
	kdf  = hpke.HKDFSHA256()
	aead = hpke.AES256GCM()
	info = []byte("shai.dev/v1alpha1 MemberReading")
)

// ErrNotOpened says that bytes are not an answer that was sealed for this key.
var ErrNotOpened = errors.New("the answer was not sealed for this reader, or was changed on its way")

// Key is the private key of one reader, for one command. Nobody else has it, and it is never stored.
type Key struct{ private hpke.PrivateKey }

// NewKey makes a key.
func NewKey() (Key, error) {
	private, err := kem.GenerateKey()
	if err != nil {
		return Key{}, fmt.Errorf("make a key: %w", err)
	}
	return Key{private}, nil
}

// Recipient returns the public key, for [Request.Recipient].
func (k Key) Recipient() []byte { return k.private.PublicKey().Bytes() }

// Seal encrypts an answer, so that only who has the recipient's private key can read it. The error
// says that the recipient is no public key.
func Seal(recipient []byte, answer Answer) ([]byte, error) {
	public, err := kem.NewPublicKey(recipient)
	if err != nil {
		return nil, fmt.Errorf("the recipient is no public key for %s: %w", info, err)
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return nil, err
	}
	return hpke.Seal(public, kdf, aead, info, text)
}

// Open decrypts an answer. The error wraps ErrNotOpened, or says that the answer is not of this
// version.
func (k Key) Open(sealed []byte) (Answer, error) {
	text, err := hpke.Open(k.private, kdf, aead, info, sealed)
	if err != nil {
		return Answer{}, fmt.Errorf("%w: %w", ErrNotOpened, err)
	}
	var answer Answer
	if err := json.Unmarshal(text, &answer); err != nil {
		return Answer{}, fmt.Errorf("read the monitor's answer: %w", err)
	}
	return answer, nil
}
