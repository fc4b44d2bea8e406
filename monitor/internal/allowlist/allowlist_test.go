// SPDX-License-Identifier: BSD-2-Clause

package allowlist

import (
	"encoding/json"
	"net/netip"
	"os"
	"strings"
	"testing"
)

// shared are the cases that the operator's tests read, too (test_sources.py).
type shared struct {
	Entries, Malformed []string
	Origins, Sockets   []struct {
		About                  string
		List, Allowed, Refused []string
	}
}

func cases(t *testing.T) shared {
	t.Helper()
	text, err := os.ReadFile("testdata/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var found shared
	if err := json.Unmarshal(text, &found); err != nil {
		t.Fatal(err)
	}
	return found
}

func parsed(t *testing.T, entries ...string) List {
	t.Helper()
	list, err := Parse(entries)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestEntries(t *testing.T) {
	t.Parallel()
	found := cases(t)
	for _, entry := range found.Entries {
		if _, err := Parse([]string{entry}); err != nil {
			t.Errorf("%q: %v", entry, err)
		}
	}
	for _, entry := range found.Malformed {
		if _, err := Parse([]string{entry}); err == nil {
			t.Errorf("%q is taken", entry)
		}
	}
}

func TestOrigins(t *testing.T) {
	t.Parallel()
	for _, test := range cases(t).Origins {
		list := parsed(t, test.List...)
		for _, text := range test.Allowed {
			if _, err := list.Origin(text); err != nil {
				t.Errorf("%s: %v", test.About, err)
			}
		}
		for _, text := range test.Refused {
			if target, err := list.Origin(text); err == nil {
				t.Errorf("%s: %q is allowed, as %v", test.About, text, target.URL)
			}
		}
	}
}

func TestSockets(t *testing.T) {
	t.Parallel()
	for _, test := range cases(t).Sockets {
		list := parsed(t, test.List...)
		for _, socket := range test.Allowed {
			if err := list.Socket(socket); err != nil {
				t.Errorf("%s: %v", test.About, err)
			}
		}
		for _, socket := range test.Refused {
			if list.Socket(socket) == nil {
				t.Errorf("%s: %q is allowed", test.About, socket)
			}
		}
	}
}

// The monitor's own store needs no entry, and is the only one that gets the password.
func TestOwnStore(t *testing.T) {
	t.Parallel()
	list := parsed(t, "unix:/run/other.sock").WithStore("/run/store.sock")
	if err := list.Socket("/run/store.sock"); err != nil || !list.IsStore("/run/store.sock") {
		t.Errorf("the own store: %v", err)
	}
	if err := list.Socket("/run/other.sock"); err != nil || list.IsStore("/run/other.sock") {
		t.Errorf("a listed socket: %v, the own store %v", err, list.IsStore("/run/other.sock"))
	}
	if none := (List{}); none.Socket("") == nil || none.IsStore("") {
		t.Error("a monitor without a store has one")
	}
}

// An allowed name does not lead to what belongs to the machine: who controls its name server
// would read it.
func TestAddresses(t *testing.T) {
	t.Parallel()
	list := parsed(t, "http://facts.example", "http://localhost", "http://127.0.0.1", "http://[::1]",
		"http://169.254.169.254", "http://203.0.113.7")
	for _, test := range []struct{ url, permitted, refused string }{
		{
			"http://facts.example", "203.0.113.7 2001:db8::7 10.0.0.1 192.168.1.1 fd12::1 ::ffff:203.0.113.7 64:ff9b::203.0.113.7",
			"127.0.0.1 127.9.9.9 ::1 169.254.169.254 169.254.0.1 fe80::1 fe80::1%lo 224.0.0.1 ff02::1 ff01::1 0.0.0.0 0.1.2.3 :: " +
				"255.255.255.255 240.0.0.1 ::ffff:127.0.0.1 ::ffff:169.254.169.254 ::ffff:0.0.0.0 ::127.0.0.1 64:ff9b::127.0.0.1 " +
				"64:ff9b::169.254.169.254 2002:7f00:1:: 2002:a9fe:a9fe:: fd00:ec2::254 fd20:ce::254 100.100.100.200 168.63.129.16",
		},
		{"http://localhost", "127.0.0.1 ::1 127.0.0.2 ::ffff:127.0.0.1", "169.254.169.254 fe80::1 0.0.0.0"},
		{"http://127.0.0.1", "127.0.0.1 ::ffff:127.0.0.1", "127.0.0.2 ::1 203.0.113.7 169.254.169.254"},
		{"http://[::1]", "::1", "127.0.0.1 ::2"},
		{"http://169.254.169.254", "169.254.169.254", "169.254.169.253 127.0.0.1"},
		{"http://203.0.113.7", "203.0.113.7", "127.0.0.1 203.0.113.8"},
	} {
		target, err := list.Origin(test.url)
		if err != nil {
			t.Fatal(err)
		}
		for _, address := range strings.Fields(test.permitted) {
			if err := target.Permit(netip.MustParseAddr(address)); err != nil {
				t.Errorf("%s at %s: %v", test.url, address, err)
			}
		}
		for _, address := range strings.Fields(test.refused) {
			if target.Permit(netip.MustParseAddr(address)) == nil {
				t.Errorf("%s may be at %s", test.url, address)
			}
		}
	}
}

// FuzzOrigin: what is allowed has the very host that is listed, also to the parser of the
// standard library, with which the monitor connects.
func FuzzOrigin(f *testing.F) {
	list, err := Parse([]string{"https://facts.example.org/friends/"})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{"https://facts.example.org/friends/a?b", "https://facts.example.org@evil.example/friends/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		target, err := list.Origin(text)
		if err != nil {
			return
		}
		u := target.URL
		host := strings.EqualFold(u.Hostname(), "facts.example.org") && (u.Port() == "" || u.Port() == "443")
		path := strings.HasPrefix(u.Path, "/friends/") && !strings.Contains(u.Path+"/", "/../")
		if u.Scheme != "https" || u.User != nil || !host || !path {
			t.Errorf("%q is allowed, as %#v", text, u)
		}
	})
}
