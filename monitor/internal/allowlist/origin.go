// SPDX-License-Identifier: BSD-2-Clause

package allowlist

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// origin is a parsed URL, as far as it is compared.
type origin struct {
	scheme, host string // in lower case; an address in its canonical form
	port         uint16
	segments     []string // of the path, decoded; nil: every path
}

// originForm is narrower than RFC 3986: no user, no fragment, no empty port, no zone, and
// only those characters in which parsers of URLs agree. Names outside of ASCII have an ASCII
// form (RFC 5891), in which they are written here.
var originForm = regexp.MustCompile(`^(https?)://(\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z_.-]+)(?::([1-9][0-9]{0,4}))?` +
	`(/[A-Za-z0-9._~!$&'()*+,=:@%/-]*)?(\?[A-Za-z0-9._~!$&'()*+,;=:@%/?-]*)?$`)

var (
	labelForm  = regexp.MustCompile(`^[0-9a-z_]([0-9a-z_-]{0,61}[0-9a-z_])?$`)
	numberForm = regexp.MustCompile(`^([0-9]+|0x[0-9a-f]*)$`)
)

const maxHost = 253

var usualPorts = map[string]uint16{"http": 80, "https": 443}

// parseOrigin reads a URL, and says whether it has a query, which is not compared.
func parseOrigin(text string) (found origin, query bool, err error) {
	parts := originForm.FindStringSubmatch(text)
	if parts == nil {
		return found, false, errors.New("it is not a plain http or https URL: it has another scheme, a user, a fragment, " +
			"an empty port, or characters that are not in every URL's form")
	}
	found.scheme, found.port = parts[1], usualPorts[parts[1]]
	if found.host, err = parseHost(parts[2]); err != nil {
		return found, false, err
	}
	if parts[3] != "" {
		port, err := strconv.ParseUint(parts[3], 10, 16)
		if err != nil {
			return found, false, fmt.Errorf("the port %s is too large", parts[3])
		}
		found.port = uint16(port)
	}
	if parts[4] != "" {
		found.segments, err = parsePath(parts[4])
	}
	return found, parts[5] != "", err
}

// parseHost returns a host's canonical form. A host whose last label is a number is an IPv4
// address to resolvers, in one of several notations (inet_aton): only a.b.c.d is taken.
func parseHost(text string) (string, error) {
	if inner, isAddress := strings.CutPrefix(text, "["); isAddress {
		address, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		if err != nil || !address.Is6() {
			return "", fmt.Errorf("%s is not an IPv6 address", text)
		}
		if address.Is4In6() {
			return "", fmt.Errorf("%s is an IPv4 address; write %s", text, address.Unmap())
		}
		return address.String(), nil
	}
	name := strings.ToLower(text)
	labels := strings.Split(name, ".")
	malformed := func(label string) bool { return !labelForm.MatchString(label) }
	if len(name) > maxHost || slices.ContainsFunc(labels, malformed) {
		return "", fmt.Errorf("the host %s is not a plain name; write it without a dot at its end", text)
	}
	if !numberForm.MatchString(labels[len(labels)-1]) {
		return name, nil
	}
	address, err := netip.ParseAddr(name)
	if err != nil {
		return "", fmt.Errorf("the host %s is a number; write it as an address of four decimal numbers", text)
	}
	return address.String(), nil
}

// parsePath returns the decoded segments of a path that begins with a slash. It refuses what
// servers take apart in different ways.
func parsePath(text string) ([]string, error) {
	segments := strings.Split(text, "/")[1:]
	for i, segment := range segments {
		decoded, err := url.PathUnescape(segment)
		if err != nil {
			return nil, fmt.Errorf("the path has %q, which is not encoded", segment)
		}
		switch last := i == len(segments)-1; {
		case decoded == "" && !last:
			return nil, errors.New("the path has an empty segment")
		case decoded == "." || decoded == "..":
			return nil, errors.New("the path has a segment . or ..")
		case strings.ContainsAny(decoded, `/\%;`), strings.ContainsFunc(decoded, isControl):
			return nil, fmt.Errorf("the path has %q, which servers read in different ways", segment)
		}
		segments[i] = decoded
	}
	return segments, nil
}

// covers reports whether an entry allows a URL.
func (o origin) covers(wanted origin) bool {
	if o.scheme != wanted.scheme || o.host != wanted.host || o.port != wanted.port {
		return false
	}
	if o.segments == nil {
		return true
	}
	segments := wanted.segments
	if segments == nil {
		segments = []string{""}
	}
	last := len(o.segments) - 1
	if o.segments[last] != "" {
		return slices.Equal(o.segments, segments)
	}
	return len(segments) > last && slices.Equal(o.segments[:last], segments[:last])
}
