// SPDX-License-Identifier: BSD-2-Clause

// Package pemfile reads the certificates and keys of TLS that people name. It reads regular files only,
// and not more of one than such a file has.
package pemfile

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"

	"shai.dev/monitor/internal/plainfile"
)

// largest is more than the authorities of a whole operating system take.
const largest = 4 << 20

// Pair reads a certificate and its private key, which may be in one file.
func Pair(certificate, key string) (tls.Certificate, error) {
	public, err := plainfile.Read(certificate, largest)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("read certificate: %w", err)
	}
	private, err := plainfile.Read(key, largest)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("read key: %w", err)
	}
	return tls.X509KeyPair(public, private)
}

// Authorities reads the certificates of those who may sign certificates.
func Authorities(path string) (*x509.CertPool, error) {
	text, err := plainfile.Read(path, largest)
	if err != nil {
		return nil, fmt.Errorf("read certificate authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("read certificate authority %s: it contains no PEM certificate", path)
	}
	return pool, nil
}
