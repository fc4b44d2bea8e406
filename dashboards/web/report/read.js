// SPDX-License-Identifier: BSD-2-Clause

// Reads the numbers of a chart from its table, which is all that a chart knows: the two cannot differ.

/** The number of a text such as "12,345.6", with commas between thousands; null for "–". */
function number(text) {
  const digits = text.replaceAll(",", "");
  return digits === "–" || digits === "" ? null : Number(digits);
}

const INTERVAL = /^(\S+) \[(\S+), (\S+)\]$/;

/** {value, low, high} of a cell such as "259.6 [246.7, 267.4]"; low and high are null without an interval. */
function cell(element) {
  const text = element.textContent;
  const found = INTERVAL.exec(text);
  return found
    ? { value: number(found[1]), low: number(found[2]), high: number(found[3]), text }
    : { value: number(text), low: null, high: null, text };
}

/** The rows and the drawn columns of a figure's table. */
export function read(table) {
  const headings = [...table.tHead.rows[0].cells].slice(1);
  const rows = [...table.tBodies[0].rows];
  const names = rows.map((row) => row.cells[0].querySelector("time")?.dateTime ?? row.cells[0].textContent);
  const columns = headings.flatMap((heading, at) =>
    heading.dataset.hidden === undefined
      ? [
          {
            title: heading.textContent,
            colour: heading.dataset.colour,
            reference: heading.dataset.reference !== undefined,
            cells: rows.map((row) => cell(row.cells[at + 1])),
          },
        ]
      : [],
  );
  return { names, columns, colours: rows.map((row) => row.cells[0].dataset.colour) };
}
