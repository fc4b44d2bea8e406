// SPDX-License-Identifier: BSD-2-Clause

package factsource

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"shai.dev/monitor/internal/allowlist"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/plainfile"
)

// address is a source of facts behind a URL. Its position is the answer's entity tag.
type address struct {
	spec     manifest.FactHTTP
	declared manifest.Declared
	client   *http.Client
}

const maxRedirects = 5

// maxCertificatesBytes is several times the size of a system's bundle of all authorities.
const maxCertificatesBytes = 4 << 20

func newAddress(spec manifest.FactHTTP, allowed allowlist.List, names *net.Resolver) (*address, error) {
	target, err := allowed.Origin(spec.URL)
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: dialTime, Resolver: names, Control: permitted(target)}
	transport := &http.Transport{ // without the environment's proxy, which could forge facts, and resolves names
		DialContext:           dialer.DialContext,
		TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12},
		ResponseHeaderTimeout: fetchTime,
		MaxIdleConns:          1,
		IdleConnTimeout:       time.Minute,
	}
	if spec.CAFile != "" {
		text, err := readCertificates(spec.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read certificate authority: %w", err)
		}
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("read certificate authority %s: it contains no PEM certificate", spec.CAFile)
		}
	}
	return &address{spec: spec, client: &http.Client{Transport: transport, CheckRedirect: sameHost(allowed),
		Timeout: fetchTime}}, nil
}

// permitted returns a check of each address that the target's name was resolved to, directly
// before the connection: a name server cannot answer differently in between.
func permitted(target allowlist.Target) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		resolved, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		return target.Permit(resolved.Addr())
	}
}

// readCertificates reads a file of certificates that a manifest names. It reads no more than the size
// that the file has: files of /proc have none, and some of them do not end.
func readCertificates(name string) ([]byte, error) {
	file, err := plainfile.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.Size() > maxCertificatesBytes:
		return nil, fmt.Errorf("%s has %d bytes; at most %d are read", name, info.Size(), maxCertificatesBytes)
	}
	return io.ReadAll(io.LimitReader(file, info.Size()))
}

// sameHost follows redirects only within the host that the manifest trusts, and to what is
// allowed there.
func sameHost(allowed allowlist.List) func(*http.Request, []*http.Request) error {
	return func(next *http.Request, before []*http.Request) error {
		first := before[0].URL
		switch {
		case next.URL.Scheme != first.Scheme || next.URL.Host != first.Host:
			return fmt.Errorf("it redirects to %s://%s; set it as the url if you trust it", next.URL.Scheme,
				next.URL.Host)
		case len(before) > maxRedirects:
			return fmt.Errorf("it redirects more than %d times", maxRedirects)
		}
		if _, err := allowed.Origin(next.URL.String()); err != nil {
			return fmt.Errorf("it redirects: %w", err)
		}
		return nil
	}
}

// Pause implements [Source].
func (a *address) Pause() time.Duration { return time.Duration(a.spec.IntervalSeconds) * time.Second }

// Close implements [Source].
func (a *address) Close() { a.client.CloseIdleConnections() }

// Fetch implements [Source].
func (a *address) Fetch(ctx context.Context, position string) (Update, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.spec.URL, nil)
	if err != nil {
		return Update{}, fmt.Errorf("fetch facts: %w", err)
	}
	request.Header.Set("Accept", "application/jsonl, application/x-ndjson")
	// Go's client would ask for the same, but keep to itself how the answer says where it ends.
	request.Header.Set("Accept-Encoding", "gzip")
	request.Header.Set("User-Agent", "shai")
	if position != "" {
		request.Header.Set("If-None-Match", position)
	}
	response, err := a.client.Do(request)
	if err != nil {
		return Update{}, fmt.Errorf("fetch facts: %w", err)
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode == http.StatusNotModified && position != "":
		return Update{}, nil
	case response.StatusCode != http.StatusOK:
		return Update{}, fmt.Errorf("fetch facts from %s: it answers %s", a.spec.URL, response.Status)
	}
	if err := isWhole(response); err != nil {
		return Update{}, fmt.Errorf("fetch facts from %s: %w", a.spec.URL, err)
	}
	body, err := unpacked(response)
	if err != nil {
		return Update{}, fmt.Errorf("fetch facts from %s: %w", a.spec.URL, err)
	}
	limited := &limitedReader{from: body, left: maxBytes}
	counted := &tally{mostFacts: maxFacts, mostValues: maxValues}
	facts, err := readStatements(limited, a.spec.URL, a.declared, counted.add)
	if err != nil {
		return Update{}, err
	}
	return Update{Whole: &catalog.Fetched{Position: response.Header.Get("ETag"), Facts: facts}}, nil
}

// isWhole refuses an answer that could be a part of one: where its end is that of the connection, a server that fails
// in the middle of it looks like one that has said everything. So does what is compressed in several pieces, of which
// each has an end of its own.
func isWhole(response *http.Response) error {
	switch {
	case response.Header.Get("Content-Range") != "":
		return errors.New("it answers with a part")
	case response.ContentLength < 0 && len(response.TransferEncoding) == 0:
		return errors.New("its answer does not say where it ends; have the server give its length (Content-Length), or " +
			"send it in pieces (chunked)")
	}
	return nil
}

// unpacked reads the body of an answer, which may be compressed.
func unpacked(response *http.Response) (io.Reader, error) {
	switch encoding := strings.ToLower(response.Header.Get("Content-Encoding")); encoding {
	case "", "identity":
		return response.Body, nil
	case "gzip", "x-gzip":
		return gzip.NewReader(response.Body)
	default:
		return nil, fmt.Errorf("its answer is encoded as %q; have the server send it with gzip, or as it is", encoding)
	}
}

// limitedReader returns an error at the limit, at which io.LimitReader would return
// io.EOF.
type limitedReader struct {
	from io.Reader
	left int
}

func (l *limitedReader) Read(into []byte) (int, error) {
	if l.left <= 0 {
		return 0, errors.New("the answer is too large; divide the facts among several sources")
	}
	count, err := l.from.Read(into[:min(len(into), l.left)])
	l.left -= count
	return count, err
}
