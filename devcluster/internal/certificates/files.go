// SPDX-License-Identifier: BSD-2-Clause

package certificates

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"

	"shai.dev/devcluster/internal/directory"
)

// readPair reads a certificate and its key. It fails if they do not match.
func readPair(folder, name string) (*pair, error) {
	read, err := tls.LoadX509KeyPair(CertificateFile(folder, name), KeyFile(folder, name))
	if err != nil {
		return nil, fmt.Errorf("read the certificate %s: %w", name, err)
	}
	key, ok := read.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("read the key %s: it is a %T, not an ECDSA key", name, read.PrivateKey)
	}
	return &pair{read.Leaf, key}, nil
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("encode the key %s: %w", path, err)
	}
	return directory.Replace(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
}

func writeCertificate(path string, certificate *x509.Certificate) error {
	return directory.Replace(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}))
}
