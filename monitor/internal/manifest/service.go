// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"shai.dev/monitor/internal/wire"
)

var hostName = regexp.MustCompile(`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`)

// service returns where users dial a connection without variables: its service, or the
// address it listens at. The field is the one that the error is about.
func service(conduit Conduit) (dialled, field string, err error) {
	address, err := netip.ParseAddrPort(conduit.Listen)
	switch {
	case err != nil:
		return "", "listen", fmt.Errorf("%q is not an address; expected a form such as 127.0.0.1:8640", conduit.Listen)
	case conduit.Service != "":
		return conduit.Service, "service", checkDialled(conduit.Service)
	case address.Addr().IsUnspecified() || address.Port() == 0:
		return "", "listen", fmt.Errorf("users cannot dial %q; write where they do into the field service, "+
			"such as search.example.org:443", conduit.Listen)
	default:
		return address.String(), "listen", nil
	}
}

// checkDialled checks that clients can write the service in one way only: they sign it,
// and the signature is compared with the manifest's text.
func checkDialled(service string) error {
	colon := strings.LastIndexByte(service, ':')
	if colon < 0 || len(service) >= wire.NameMax || !isHost(service[:colon]) || !isPort(service[colon+1:]) {
		return fmt.Errorf("%q is not a host and a port; expected a form such as search.example.org:443, "+
			"in lower case and of at most %d bytes", service, wire.NameMax-1)
	}
	return nil
}

func isPort(text string) bool {
	port, err := strconv.ParseUint(text, 10, 16)
	return err == nil && port > 0 && strconv.FormatUint(port, 10) == text
}

func isHost(text string) bool {
	if bracketed, ok := strings.CutPrefix(text, "["); ok {
		inner, closed := strings.CutSuffix(bracketed, "]")
		address, err := netip.ParseAddr(inner)
		return closed && err == nil && address.Is6() && address.String() == inner
	}
	return hostName.MatchString(text)
}
