// SPDX-License-Identifier: BSD-2-Clause

package policy

import "testing"

func TestAsksForAddress(t *testing.T) {
	for text, want := range map[string]bool{
		`read :- sKeyIs("alice"). update :- sRegionIs("de").`:                                            false,
		`read :- sIpIs("127.0.0.1").`:                                                                    true,
		`update :- sKeyIs("alice"), sIpIs("127.0.0.1").`:                                                 true,
		`read :- each in "members" says user(U) { sKeyIs(U) }.`:                                          false,
		`read :- each in "members" says host(H) { sIpIs(H) }.`:                                           true,
		`read :- sKeyIs("a"). declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor).`: false,
		`read :- sKeyIs("a"). declassify :- isAsRestrictive(read, this.read) until sIpIs("127.0.0.1").`:  true,
	} {
		template, err := CompileAccepted("test", []byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got := template.AsksForAddress(); got != want {
			t.Errorf("%s: asks for the address: %v, want %v", text, got, want)
		}
	}
}
