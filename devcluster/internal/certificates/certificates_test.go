// SPDX-License-Identifier: BSD-2-Clause

package certificates

import (
	"crypto/x509"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

var (
	start  = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	server = Leaf{Name: "server", User: "server", Hosts: []string{"localhost"},
		Addresses: []net.IP{net.ParseIP("127.0.0.1")}}
	client = Leaf{Name: "client", User: "alice", Groups: []string{"staff"}}
)

const plainKey = "plain"

func ensure(t *testing.T, folder string, now time.Time, leaves ...Leaf) {
	t.Helper()
	if err := Ensure(folder, now, leaves, []string{plainKey}); err != nil {
		t.Fatal(err)
	}
}

func contents(t *testing.T, folder string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[entry.Name()] = string(text)
	}
	return files
}

// verify reads a pair and checks it against the authority in the folder.
func verify(t *testing.T, folder string, leaf Leaf, now time.Time) *x509.Certificate {
	t.Helper()
	authority, err := readPair(folder, Authority)
	if err != nil {
		t.Fatal(err)
	}
	found, err := readPair(folder, leaf.Name)
	if err != nil {
		t.Fatal(err)
	}
	if !found.is(leaf, authority, now) {
		t.Errorf("the certificate %s is not what was asked for, or the authority has not signed it", leaf.Name)
	}
	return found.certificate
}

func TestEnsureMakesPrivateFiles(t *testing.T) {
	folder := t.TempDir()
	ensure(t, folder, start, server, client)
	files := contents(t, folder)
	names := []string{"authority.crt", "authority.key", "client.crt", "client.key", "plain.key", "server.crt",
		"server.key"}
	if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, names) {
		t.Errorf("the folder holds %q, want %q", got, names)
	}
	for name := range files {
		if info, err := os.Stat(filepath.Join(folder, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %v (%v), want 0600", name, info.Mode().Perm(), err)
		}
	}
}

func TestUsageIsLimited(t *testing.T) {
	folder := t.TempDir()
	ensure(t, folder, start, server, client)
	for leaf, want := range map[string]x509.ExtKeyUsage{"server": x509.ExtKeyUsageServerAuth,
		"client": x509.ExtKeyUsageClientAuth} {
		found, err := readPair(folder, leaf)
		if err != nil {
			t.Fatal(err)
		}
		if got := found.certificate.ExtKeyUsage; !slices.Equal(got, []x509.ExtKeyUsage{want}) {
			t.Errorf("the certificate %s serves for %v, want only %v", leaf, got, want)
		}
		if found.certificate.IsCA {
			t.Errorf("the certificate %s may sign others", leaf)
		}
	}
}

func TestWhatIsRenewedWhen(t *testing.T) {
	const day = 24 * time.Hour
	overwrite := func(name, text string) func(*testing.T, string) {
		return func(t *testing.T, folder string) {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	copied := func(from, to string) func(*testing.T, string) {
		return func(t *testing.T, folder string) { overwrite(to, contents(t, folder)[from])(t, folder) }
	}
	nothing := func(*testing.T, string) {}
	renamed := client
	renamed.Groups = []string{"visitors"}
	tests := []struct {
		name    string
		after   time.Duration
		damage  func(*testing.T, string)
		client  Leaf
		changed []string
	}{
		{"at once", 0, nothing, client, nil},
		{"long before the end", leafLifetime - renewal - day, nothing, client, nil},
		{"near the leaves' end", leafLifetime - renewal + day, nothing, client,
			[]string{"client.crt", "client.key", "server.crt", "server.key"}},
		{
			"near the authority's end", authorityLifetime - leafLifetime + day, nothing, client,
			[]string{"authority.crt", "authority.key", "client.crt", "client.key", "server.crt", "server.key"},
		},
		{"another group", 0, nothing, renamed, []string{"client.crt", "client.key"}},
		{"a certificate cut short", 0, overwrite("client.crt", "-----BEGIN CERT"), client,
			[]string{"client.crt", "client.key"}},
		{"a key that is not its own", 0, copied("server.key", "client.key"), client,
			[]string{"client.crt", "client.key"}},
		{"a key without its certificate", 0, overwrite("server.crt", ""), client, []string{"server.crt", "server.key"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			folder := t.TempDir()
			ensure(t, folder, start, server, client)
			before := contents(t, folder)
			test.damage(t, folder)
			now := start.Add(test.after)
			ensure(t, folder, now, server, test.client)
			after := contents(t, folder)
			var changed []string
			for _, name := range slices.Sorted(maps.Keys(after)) {
				if after[name] != before[name] {
					changed = append(changed, name)
				}
			}
			if !slices.Equal(changed, test.changed) {
				t.Errorf("changed %q, want %q", changed, test.changed)
			}
			for _, leaf := range []Leaf{server, test.client} {
				if left := verify(t, folder, leaf, now).NotAfter.Sub(now); left < renewal {
					t.Errorf("the certificate %s is valid for another %s only", leaf.Name, left)
				}
			}
		})
	}
}

func TestAStrangersCertificateIsReplaced(t *testing.T) {
	folder, stranger := t.TempDir(), t.TempDir()
	ensure(t, folder, start, client)
	ensure(t, stranger, start, client)
	for _, name := range []string{"client.crt", "client.key"} {
		text := contents(t, stranger)[name]
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ensure(t, folder, start, client)
	verify(t, folder, client, start)
}
