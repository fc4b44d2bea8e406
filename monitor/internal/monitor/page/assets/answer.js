// SPDX-License-Identifier: BSD-2-Clause
// What the page shows of answers.

import {at, make, shown} from "./shown.js";

const byId = id => document.getElementById(id);

// linkTo returns the address of a question on this page.
export function linkTo(question) {
  return "#" + new URLSearchParams(Object.entries(question).filter(([, value]) => value));
}

// showAnswer shows a decision and its derivation.
export function showAnswer(answer) {
  const {allowed, question} = answer;
  const verdict = byId("verdict");
  verdict.className = `verdict ${allowed ? "good" : "problem"}`;
  verdict.replaceChildren(allowed ? "Allowed" : "Denied");
  byId("sentence").replaceChildren(shown(answer.sentence, "span"));
  const besides = [answer.wouldDeny, ...(answer.provisos ?? []).map(one => `but: ${one}`)].filter(one => one);
  byId("would").hidden = besides.length === 0;
  byId("would").replaceChildren(...besides.map(one => make("div", {}, shown(one, "span"))));
  byId("remedy").hidden = !answer.remedy;
  byId("command").replaceChildren(shown(answer.remedy ?? "", "span"));
  byId("copy").value = answer.remedy ?? "";
  byId("copy").textContent = "Copy";
  byId("facts").replaceChildren(
    ...fact("Asked", `${question.access} of `, shown(question.conduit, "code"), " by ", shown(answer.instance, "code")),
    ...fact("Policy", shown(answer.policy || "none", "code")),
    ...fact("Taint", shown(answer.taint, "code"), " (", shown(answer.taintOf), ")"),
    ...(answer.conditions?.length
      ? fact("As long as", ...answer.conditions.map(one => make("div", {}, shown(one, "code")))) : []));
  const derivation = answer.derivation;
  const steps = derivation.statement || derivation.because ? [derivation] : [];
  byId("derivation").hidden = steps.length === 0;
  byId("tree").replaceChildren(...steps.map(one => step(one, allowed)));
  byId("expand").textContent = "Open all steps";
  byId("answer").hidden = false;
}

function fact(name, ...content) {
  return [make("dt", {}, name), make("dd", {}, ...content)];
}

// step returns one step of the derivation. Those that decide are open: what holds of an
// access that is allowed, what fails of one that is denied.
function step(derivation, allowed) {
  const {holds, because = []} = derivation;
  const line = [
    make("span", {class: holds ? "mark holds" : "mark fails"}, holds ? "holds" : "fails"), " ",
    shown(derivation.statement, "code"),
  ];
  if (derivation.source) line.push(" ", make("span", {class: "source"}, shown(derivation.source)));
  if (because.length === 0) return make("li", {}, make("div", {class: "leaf"}, ...line));
  const details = make("details", holds === allowed ? {open: ""} : {},
    make("summary", {}, ...line), make("ul", {}, ...because.map(one => step(one, allowed))));
  return make("li", {}, details);
}

// showReaders shows who else has access.
export function showReaders(readers, question) {
  const {total, current} = readers;
  const verb = question.access === "write" ? "write" : "read";
  byId("readers-title").replaceChildren(`Who else can ${verb} it`);
  const rest = [" By the analysis of ", at(readers.analyzed),
    current ? ", which reflects the facts of now." : ": facts or policies have changed since."];
  const count = total === 0 ? "Nobody who is expected." : `${total.toLocaleString("en")} ${total === 1 ? "user or task" : "users and tasks"}.`;
  byId("readers-hint").replaceChildren(count, ...rest);
  byId("people").replaceChildren(...readers.readers.map(reader => person(reader, question)),
    ...(total > readers.readers.length
      ? [make("li", {class: "hint"}, `and ${(total - readers.readers.length).toLocaleString("en")} more`)] : []));
  byId("readers").hidden = false;
}

function person(reader, question) {
  const {task, principal = "", regions = []} = reader;
  const asked = {...question, task: principal ? "" : task, principal, region: regions[0] ?? ""};
  const name = make("a", {href: linkTo(asked)}, shown(principal || `task ${task}`));
  const more = regions.length > 3 ? ` and ${regions.length - 3} more` : "";
  return make("li", {}, name, " ", ...(regions.length
    ? [make("span", {class: "hint"}, "from ", shown(regions.slice(0, 3).join(", ")), more)] : []));
}

// showDecisions shows audit records about a document.
export function showDecisions(records) {
  byId("decisions-hint").replaceChildren(records.length
    ? "From the audit log; what the analysis has settled is not recorded." : "The audit log has none.");
  byId("records").replaceChildren(...records.map(one => record(one)));
  byId("decisions").hidden = false;
}

// record returns an audit record as an item of a list.
export function record(one) {
  const {task = "", operation = "", conduit = "", allowed, repeated = 0} = one;
  const principal = one.principal?.startsWith("task/") ? "" : one.principal ?? "";
  const asked = {pipeline: one.pipeline, principal, region: regionOf(one, principal), conduit,
    task: principal ? "" : task, access: operation === "write" ? "write" : "read"};
  const line = make("p", {class: "line"},
    make("span", {class: allowed ? "mark holds" : "mark fails"}, allowed ? "allowed" : "denied"), " ", at(one.time), " ",
    make("b", {}, shown(principal || task || "a task")), ` ${operation} `, shown(conduit, "code"));
  if (conduit && (principal || task)) {
    line.append(" ", make("a", {href: linkTo(asked)}, "Why?", make("span", {class: "unseen"}, " ",
      shown(principal || task), " ", operation, " ", shown(conduit))));
  }
  const times = repeated > 0 ? ` (${(1 + repeated).toLocaleString("en")} times)` : "";
  const reason = (one.reason ?? "").split(" [", 1)[0]; // what follows is for programs, and for Why?
  return make("li", {}, line, make("p", {class: "hint"}, shown(reason), times));
}

// regionOf returns the region of an instance such as worker(alice, de).
function regionOf(one, principal) {
  const found = /^[^(]*\((.*), ([^,"]*)\)$/.exec(one.instance ?? "");
  return found && found[1] === principal ? found[2] : "";
}
