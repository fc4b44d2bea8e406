// SPDX-License-Identifier: BSD-2-Clause

// Package distribution hands the work of an analysis to workers on other machines, and takes their
// results: HTTP over TLS 1.3, in which both sides have a certificate of one authority. This
// authority should exist for one analysis only: whoever has a certificate of it can read the work,
// which has all facts, and return a result, which is believed.
package distribution

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"path/filepath"

	"shai.dev/monitor/internal/pemfile"
)

// The files of one side's identity, in its directory.
const (
	Authority = "authority.pem" // of both sides' certificates
	Own       = "own.pem"       // this side's private key and certificate
)

func identity(directory string) (*x509.CertPool, []tls.Certificate, error) {
	own := filepath.Join(directory, Own)
	certificate, err := pemfile.Pair(own, own)
	if err != nil {
		return nil, nil, fmt.Errorf("read key and certificate %s: %w", own, err)
	}
	authority, err := pemfile.Authorities(filepath.Join(directory, Authority))
	if err != nil {
		return nil, nil, err
	}
	return authority, []tls.Certificate{certificate}, nil
}

func serverTLS(directory string) (*tls.Config, error) {
	authority, own, err := identity(directory)
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: own, ClientCAs: authority,
		ClientAuth: tls.RequireAndVerifyClientCert}, nil
}

func clientTLS(directory string) (*tls.Config, error) {
	authority, own, err := identity(directory)
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: own, RootCAs: authority}, nil
}
