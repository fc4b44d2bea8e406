// SPDX-License-Identifier: BSD-2-Clause
// Texts from users' files as nodes. A text only ever becomes text: nothing here, and by the
// page's policy nothing anywhere, makes markup of it.

const HEAD = 300, TAIL = 60; // characters of a long text that are shown
// What has no shape of its own, by the rule of shai's output (internal/shape), of which the last ones have an empty glyph
// and no property that says so: it must not look like another name.
const unprintable = /(?! )[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800\u{13441}\u{13442}\u{16fe4}\u{1d159}\ufffc]/gu;

// make returns an element with attributes and children, which are nodes or texts.
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

// shown returns an element with a text, in which characters without a shape are written as
// escapes and from which the middle of a long text is missing.
export function shown(text, kind = "bdi") {
  const characters = Array.from(String(text).toWellFormed()), missing = characters.length - HEAD - TAIL;
  const element = make(kind, {dir: "ltr"});
  if (missing <= TAIL) {
    element.append(...escaped(characters.join("")));
  } else {
    element.append(...escaped(characters.slice(0, HEAD).join("")),
      make("span", {class: "escape"}, ` … ${missing.toLocaleString("en")} characters … `),
      ...escaped(characters.slice(-TAIL).join("")));
  }
  return element;
}

function escaped(text) {
  const nodes = [];
  let from = 0;
  for (const found of text.matchAll(unprintable)) {
    if (found.index > from) nodes.push(text.slice(from, found.index));
    nodes.push(make("span", {class: "escape"}, escapeOf(found[0])));
    from = found.index + found[0].length;
  }
  nodes.push(text.slice(from));
  return nodes;
}

// written returns a text as shown shows it, whole.
export function written(text) {
  return text.replace(unprintable, escapeOf);
}

function escapeOf(character) {
  const short = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}[character];
  return short ?? `\\u{${character.codePointAt(0).toString(16)}}`;
}

// at returns an instant in this machine's time zone.
export function at(text) {
  const time = new Date(text), two = n => String(n).padStart(2, "0");
  const day = `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
  const clock = `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
  return make("time", {datetime: text}, day === at.today() ? clock : `${day} ${clock}`);
}
at.today = () => {
  const now = new Date(), two = n => String(n).padStart(2, "0");
  return `${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())}`;
};
