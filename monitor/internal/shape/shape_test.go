// SPDX-License-Identifier: BSD-2-Clause

package shape

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// The table is that of the explain page's test, too.
func TestHas(t *testing.T) {
	text, err := os.ReadFile("testdata/shapes.json")
	if err != nil {
		t.Fatal(err)
	}
	var table map[string][]string
	if err := json.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"without a shape": false, "with a shape": true} {
		if len(table[name]) == 0 {
			t.Errorf("no characters %s", name)
		}
		for _, one := range table[name] {
			if found := Has([]rune(one)[0]); found != want {
				t.Errorf("%U has a shape: %t, want %t", []rune(one), found, want)
			}
			if shown := Visible(one); (shown == one) != want || !want && !strings.HasPrefix(shown, `\`) {
				t.Errorf("%U is shown as %s", []rune(one), shown)
			}
		}
	}
}

func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "bob": "bob", "line\nbreak": `line\nbreak`, "\u202egnp": `\u202egnp`, "\xff\x80": `\xff\x80`,
		"al\u200dice\U00013441": `al\u200dice\U00013441`, "replaced \ufffd": "replaced \ufffd",
	} {
		if found := Visible(text); found != want {
			t.Errorf("%q is shown as %q, want %q", text, found, want)
		}
	}
}

func TestJSON(t *testing.T) {
	value := map[string]string{"text": "a\u009b3J\u202e\U000e0001\tb\u00e9\n"}
	got, err := JSON(value)
	want := "{\n  \"text\": \"a\\u009b3J\\u202e\\udb40\\udc01\\tb\u00e9\\n\"\n}\n"
	if err != nil || got != want {
		t.Errorf("got  %q, %v\nwant %q", got, err, want)
	}
	var read map[string]string
	if err := json.Unmarshal([]byte(got), &read); err != nil || read["text"] != value["text"] {
		t.Errorf("programs read %q: %v", read, err)
	}
}
