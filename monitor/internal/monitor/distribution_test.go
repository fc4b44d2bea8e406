// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/distribution"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/waiting"
)

// identities makes an authority, and the directories of a coordinator and of a worker.
func identities(t *testing.T) (coordinator, worker string) {
	t.Helper()
	root, rootKey := certificate(t, &x509.Certificate{IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign}, nil, nil)
	side := func(usage x509.ExtKeyUsage) string {
		own, key := certificate(t, &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{usage},
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, root, rootKey)
		private, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		directory := t.TempDir()
		for name, text := range map[string][]byte{
			distribution.Authority: pemOf("CERTIFICATE", root.Raw),
			distribution.Own:       append(pemOf("PRIVATE KEY", private), pemOf("CERTIFICATE", own.Raw)...),
		} {
			if err := os.WriteFile(filepath.Join(directory, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return directory
	}
	return side(x509.ExtKeyUsageServerAuth), side(x509.ExtKeyUsageClientAuth)
}

func pemOf(kind string, content []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content})
}

func certificate(t *testing.T, template, root *x509.Certificate, rootKey *ecdsa.PrivateKey) (*x509.Certificate,
	*ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(1)
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	if root == nil {
		root, rootKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, root, &key.PublicKey, rootKey)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return made, key
}

// distributed is an analysis that is being distributed.
type distributed struct {
	address, work, worker string
	results               chan [][]byte
	errors                chan error
}

// distribute serves the work of a monitor, in two shards.
func distribute(t *testing.T, m *Monitor) *distributed {
	t.Helper()
	coordinator, worker := identities(t)
	d := &distributed{work: export(t, m), worker: worker, results: make(chan [][]byte, 1), errors: make(chan error, 1)}
	file, err := os.Open(d.work)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d.address = listener.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		results, err := distribution.Serve(ctx, listener, coordinator, distribution.Work{File: file, Shards: 2}, nil)
		d.results <- results
		d.errors <- err
	}()
	t.Cleanup(func() {
		cancel()
		_ = file.Close()
	})
	return d
}

func (d *distributed) join(t *testing.T) *distribution.Worker {
	t.Helper()
	worker, err := distribution.NewWorker(d.address, d.worker)
	if err != nil {
		t.Fatal(err)
	}
	return worker
}

func (d *distributed) compute(t *testing.T, number int) []byte {
	t.Helper()
	if _, err := d.join(t).Fetch(t.Context(), t.TempDir(), 1000); err == nil ||
		!strings.Contains(err.Error(), "0 are the limit") {
		t.Errorf("work beyond a worker's limit: %v", err)
	}
	work, err := d.join(t).Fetch(t.Context(), t.TempDir(), maxWork)
	if err != nil {
		t.Fatal(err)
	}
	result, err := RunShard(t.Context(), work, maxWork, analysis.Shard{Number: number, Of: 2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// Workers fetch what was exported, and their joined results are imported. A worker that comes again
// with the same result, because it did not get the answer, changes nothing.
func TestDistributedAnalysis(t *testing.T) {
	m, _ := bareMonitor(t)
	d := distribute(t, m)
	second, first := d.compute(t, 2), d.compute(t, 1)
	worker := d.join(t)
	for _, sent := range []struct {
		number int
		result []byte
	}{{2, second}, {2, second}, {1, first}} {
		if err := worker.Send(t.Context(), analysis.Shard{Number: sent.number, Of: 2}, sent.result); err != nil {
			t.Fatal(err)
		}
	}
	results, err := <-d.results, <-d.errors
	if err != nil || len(results) != 2 || !bytes.Equal(results[0], first) || !bytes.Equal(results[1], second) {
		t.Fatalf("%d results: %v", len(results), err)
	}
	merged, basis, err := analysis.Merge(results)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.ImportAnalysis(t.Context(), "bare", basis, merged); err != nil {
		t.Error(err)
	}
}

// Nobody without a certificate of this very analysis reads the work or returns a result.
func TestDistributionIsForItsWorkers(t *testing.T) {
	m, _ := bareMonitor(t)
	d := distribute(t, m)
	_, stranger := identities(t)
	worker := d.worker
	// A stranger trusts the coordinator, and has a certificate of another analysis.
	authority, err := os.ReadFile(filepath.Join(worker, distribution.Authority))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(stranger, distribution.Authority), authority, 0o600); err != nil {
		t.Fatal(err)
	}
	result := d.compute(t, 1)
	d.worker = stranger
	if _, err := d.join(t).Fetch(t.Context(), t.TempDir(), maxWork); err == nil {
		t.Error("a stranger has the work")
	}
	if err := d.join(t).Send(t.Context(), analysis.Shard{Number: 1, Of: 2}, result); err == nil {
		t.Error("a stranger's result is taken")
	}
	if _, err := net.Dial("tcp", d.address); err != nil {
		t.Fatalf("it does not serve any more: %v", err)
	}
	d.worker = worker
	if err := d.join(t).Send(t.Context(), analysis.Shard{Number: 1, Of: 2}, result); err != nil {
		t.Errorf("its own worker: %v", err)
	}
}

// What is no result of the shard is refused, and of two results that differ neither is believed.
func TestResultsThatAreRefused(t *testing.T) {
	m, _ := bareMonitor(t)
	d := distribute(t, m)
	result, worker := d.compute(t, 1), d.join(t)
	refused := func(name string, number, of int, content []byte, want string) {
		t.Helper()
		err := worker.Send(t.Context(), analysis.Shard{Number: number, Of: of}, content)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	refused("of another shard", 2, 2, result, "not the result of shard 2/2")
	refused("of another division", 1, 3, result, "expected one of 2 shards")
	refused("no result", 1, 2, []byte("hello"), "not the result of shard 1/2")
	if err := worker.Send(t.Context(), analysis.Shard{Number: 1, Of: 2}, result); err != nil {
		t.Fatal(err)
	}
	change := api.FactChange{Add: []api.Fact{bareFact("friends/alice", "friend", "x")}}
	if _, err := m.ChangeFacts(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	other, err := RunShard(t.Context(), export(t, m), maxWork, analysis.Shard{Number: 1, Of: 2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	refused("another one for the same shard", 1, 2, other, "two results that differ")
	if results, err := <-d.results, <-d.errors; err == nil || results != nil {
		t.Errorf("it goes on: %v", err)
	}
}

// Results that come at the same time take no more memory than all results may.
func TestResultsThatAreTooLarge(t *testing.T) {
	m, _ := bareMonitor(t)
	d := distribute(t, m)
	own := filepath.Join(d.worker, distribution.Own)
	certificate, err := tls.LoadX509KeyPair(own, own)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := os.ReadFile(filepath.Join(d.worker, distribution.Authority))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS13,
		RootCAs: roots, Certificates: []tls.Certificate{certificate}}}}
	t.Cleanup(client.CloseIdleConnections)
	send := func(length int64, body io.Reader) int {
		to := "https://" + d.address + "/shards/1/2"
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, to, body)
		if err != nil {
			t.Error(err)
			return 0
		}
		request.ContentLength = length
		response, err := client.Do(request)
		if err != nil {
			return 0
		}
		_ = response.Body.Close()
		return response.StatusCode
	}
	large, written := io.Pipe()
	t.Cleanup(func() { _ = written.Close() })
	if status := send(1<<30+1, large); status != http.StatusRequestEntityTooLarge {
		t.Errorf("more than all may have: %d", status)
	}
	if status := send(-1, io.MultiReader(strings.NewReader("x"))); status != http.StatusRequestEntityTooLarge {
		t.Errorf("of unknown length: %d", status)
	}
	slow, end := io.Pipe()
	ended := make(chan int, 1)
	go func() { ended <- send(1<<30, slow) }()
	waiting.Until(t, "there is no room beside it", func() bool {
		return send(1, strings.NewReader("x")) == http.StatusRequestEntityTooLarge
	})
	_ = end.CloseWithError(io.ErrUnexpectedEOF)
	<-ended
	waiting.Until(t, "there is room again", func() bool {
		return send(1, strings.NewReader("x")) == http.StatusBadRequest
	})
}
