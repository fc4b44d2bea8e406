// SPDX-License-Identifier: BSD-2-Clause

// Package certificates is a devcluster's own certificate authority. It makes the keys and
// certificates that are missing, and replaces those that are no longer valid.
package certificates

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	authorityLifetime = 10 * 365 * 24 * time.Hour
	leafLifetime      = 365 * 24 * time.Hour
	// A certificate is renewed when its remaining time is less than this, so a devcluster
	// that is started once a month never uses an expired one.
	renewal = 60 * 24 * time.Hour
	// clockSlack makes certificates valid for clients whose clock is behind.
	clockSlack = 5 * time.Minute
)

// A Leaf is one certificate that the authority signs.
type Leaf struct {
	Name      string   // of its files, without .crt and .key
	User      string   // common name; for a client, the user's name
	Groups    []string // organisations; for a client, the user's groups
	Hosts     []string // names and addresses of a server
	Addresses []net.IP
}

func (l Leaf) usage() x509.ExtKeyUsage {
	if len(l.Hosts)+len(l.Addresses) > 0 {
		return x509.ExtKeyUsageServerAuth
	}
	return x509.ExtKeyUsageClientAuth
}

// CertificateFile returns the path of the certificate with this name in a folder.
func CertificateFile(folder, name string) string { return filepath.Join(folder, name+".crt") }

// KeyFile returns the path of the private key with this name in a folder.
func KeyFile(folder, name string) string { return filepath.Join(folder, name+".key") }

// Authority is the name of the authority's own files.
const Authority = "authority"

// Ensure makes a valid authority, a valid certificate for each leaf, and the named plain
// keys in the folder. It keeps those that are there and valid at the time now.
func Ensure(folder string, now time.Time, leaves []Leaf, keys []string) error {
	authority, err := ensureAuthority(folder, now)
	if err != nil {
		return err
	}
	for _, leaf := range leaves {
		if err := ensureLeaf(folder, now, authority, leaf); err != nil {
			return err
		}
	}
	for _, name := range keys {
		if _, err := os.Stat(KeyFile(folder, name)); err == nil {
			continue
		}
		key, err := newKey()
		if err != nil {
			return err
		}
		if err := writeKey(KeyFile(folder, name), key); err != nil {
			return err
		}
	}
	return nil
}

func ensureAuthority(folder string, now time.Time) (*pair, error) {
	if found, err := readPair(folder, Authority); err == nil && found.lasts(now, leafLifetime) {
		return found, nil
	}
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "devcluster"},
		NotBefore:             now.Add(-clockSlack),
		NotAfter:              now.Add(authorityLifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	return sign(folder, Authority, template, key, &pair{template, key})
}

func ensureLeaf(folder string, now time.Time, authority *pair, leaf Leaf) error {
	if found, err := readPair(folder, leaf.Name); err == nil && found.lasts(now, renewal) &&
		found.is(leaf, authority, now) {
		return nil
	}
	key, err := newKey()
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: leaf.User, Organization: leaf.Groups},
		NotBefore:   now.Add(-clockSlack),
		NotAfter:    now.Add(leafLifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{leaf.usage()},
		DNSNames:    leaf.Hosts,
		IPAddresses: leaf.Addresses,
	}
	_, err = sign(folder, leaf.Name, template, key, authority)
	return err
}

// sign writes the key before the certificate: a crash in between leaves a pair that does
// not match, which the next Ensure replaces.
func sign(folder, name string, template *x509.Certificate, key *ecdsa.PrivateKey, authority *pair) (*pair, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, authority.certificate, key.Public(), authority.key)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate %s: %w", name, err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read the new certificate %s: %w", name, err)
	}
	if err := writeKey(KeyFile(folder, name), key); err != nil {
		return nil, err
	}
	if err := writeCertificate(CertificateFile(folder, name), certificate); err != nil {
		return nil, err
	}
	return &pair{certificate, key}, nil
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return key, nil
}

// A pair is a certificate with its private key.
type pair struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func (p *pair) lasts(now time.Time, left time.Duration) bool {
	return !now.Before(p.certificate.NotBefore) && now.Add(left).Before(p.certificate.NotAfter)
}

// is reports whether the pair is what the leaf asks for, signed by the authority.
func (p *pair) is(leaf Leaf, authority *pair, now time.Time) bool {
	roots := x509.NewCertPool()
	roots.AddCert(authority.certificate)
	_, err := p.certificate.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{leaf.usage()}})
	return err == nil &&
		p.certificate.Subject.CommonName == leaf.User &&
		slices.Equal(p.certificate.Subject.Organization, leaf.Groups) &&
		slices.Equal(p.certificate.DNSNames, leaf.Hosts) &&
		slices.EqualFunc(p.certificate.IPAddresses, leaf.Addresses, net.IP.Equal)
}
