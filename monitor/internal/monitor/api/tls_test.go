// SPDX-License-Identifier: BSD-2-Clause

package api_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/monitor/api/apitest"
)

// authority issues certificates for one test.
type authority struct {
	t           *testing.T
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	path        string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	a.certificate = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true,
		BasicConstraintsValid: true,
		NotBefore:             time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageCertSign,
	}
	a.path, _ = a.issue(a.certificate)
	return a
}

// issue writes a certificate and its key, and returns their paths. The first one
// signs itself.
func (a *authority) issue(template *x509.Certificate) (certificate, key string) {
	a.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	if a.key == nil {
		a.key = private
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &private.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		a.t.Fatal(err)
	}
	directory := a.t.TempDir()
	certificate, key = filepath.Join(directory, "certificate.pem"), filepath.Join(directory, "key.pem")
	for path, block := range map[string]*pem.Block{
		certificate: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	return certificate, key
}

func (a *authority) leaf(name string, usage x509.ExtKeyUsage) (certificate, key string) {
	return a.issue(&x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:   time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{usage},
	})
}

func TestMutualTLS(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	certificate, key := ours.leaf("monitor", x509.ExtKeyUsageServerAuth)
	_, listeners := apitest.Serve(t, &api.Handler{Service: new(apitest.Service)}, api.Endpoints{
		Listen: "127.0.0.1:0", Certificate: certificate, Key: key, ClientCA: ours.path,
	})
	address := listeners[1].Addr().String()
	for _, test := range []struct {
		name     string
		issuer   *authority
		usage    x509.ExtKeyUsage
		serverCA string
		refused  bool
	}{
		{"our client", ours, x509.ExtKeyUsageClientAuth, ours.path, false},
		{"another authority's client", theirs, x509.ExtKeyUsageClientAuth, ours.path, true},
		{"a server's certificate", ours, x509.ExtKeyUsageServerAuth, ours.path, true},
		{"a client that expects another server", ours, x509.ExtKeyUsageClientAuth, theirs.path, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			certificate, key := test.issuer.leaf("client", test.usage)
			client, err := api.Connect(api.Target{Server: address, Certificate: certificate, Key: key,
				ServerCA: test.serverCA})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := client.Status(context.Background()); (err != nil) != test.refused {
				t.Errorf("status: %v", err)
			}
		})
	}
	for name, config := range map[string]*tls.Config{
		"no certificate": {InsecureSkipVerify: true},
		"TLS 1.2":        {InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12},
	} {
		t.Run(name, func(t *testing.T) {
			connection, err := tls.Dial("tcp", address, config)
			if err == nil {
				defer connection.Close()
				// With TLS 1.3 the refusal comes after the client's own handshake.
				_, err = connection.Read(make([]byte, 1))
			}
			if err == nil || !strings.Contains(err.Error(), "remote error: tls") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// The page is for browsers of this machine: it is on the socket, not on the address for others.
func TestNoPageForOtherMachines(t *testing.T) {
	ours := newAuthority(t)
	certificate, key := ours.leaf("monitor", x509.ExtKeyUsageServerAuth)
	empty := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	socket, listeners := apitest.Serve(t, &api.Handler{Service: new(apitest.Service), Page: empty}, api.Endpoints{
		Listen: "127.0.0.1:0", Certificate: certificate, Key: key, ClientCA: ours.path,
	})
	certificate, key = ours.leaf("operator", x509.ExtKeyUsageClientAuth)
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	byTLS := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{pair}},
	}
	bySocket := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	address := "https://" + listeners[1].Addr().String()
	for _, test := range []struct {
		by      *http.Transport
		address string
		want    int
	}{
		{byTLS, address + "/page/", 404}, {byTLS, address + "/page/data/pipelines", 404},
		{byTLS, address + "/v1/status", 200}, {bySocket, "http://localhost/page/", 200},
	} {
		response, err := (&http.Client{Transport: test.by}).Get(test.address)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != test.want {
			t.Errorf("%s: %d, want %d", test.address, response.StatusCode, test.want)
		}
		test.by.CloseIdleConnections()
	}
}

func TestListenNeedsCertificates(t *testing.T) {
	ours := newAuthority(t)
	certificate, key := ours.leaf("monitor", x509.ExtKeyUsageServerAuth)
	for name, endpoints := range map[string]api.Endpoints{
		"no certificate":   {Key: key, ClientCA: ours.path},
		"no key":           {Certificate: certificate, ClientCA: ours.path},
		"no authority":     {Certificate: certificate, Key: key},
		"missing file":     {Certificate: certificate + "x", Key: key, ClientCA: ours.path},
		"not an authority": {Certificate: certificate, Key: key, ClientCA: key},
	} {
		endpoints.Listen = "127.0.0.1:0"
		if _, err := endpoints.Open(); err == nil || !strings.Contains(err.Error(), "listen on 127.0.0.1:0: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
