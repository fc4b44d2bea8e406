// SPDX-License-Identifier: BSD-2-Clause
// The page that explains decisions. The question is in the address' fragment, which browsers
// send to no server: #principal=bob&conduit=/corpus/1.txt

import {linkTo, record, showAnswer, showDecisions, showReaders} from "./answer.js";
import {Problem, ask, enter, follow} from "./monitor.js";
import {at, make, shown, written} from "./shown.js";

const byId = id => document.getElementById(id);
const form = byId("question");
const held = new Map(); // field -> value that it cannot hold, such as a line break: it shows the escape
const LIVE = 50; // denials that stay on the page
let pipelines = [];
let running = new AbortController();
let fromForm = false;
let watching = false;
let late = []; // denials that came while the list is paused

function fail(error) {
  if (error.name === "AbortError") return;
  if (!(error instanceof Problem)) throw error;
  byId("problem").replaceChildren(shown(error.message, "span"),
    ...(error.remedy ? ["; ", shown(error.remedy, "span")] : []));
  byId("problem").hidden = false;
}

// put shows a value in a field. The value stands until a person edits the field.
function put(name, value) {
  form.elements[name].value = written(value);
  if (form.elements[name].value === value) held.delete(name);
  else held.set(name, value);
}

function asked() {
  return Object.fromEntries([...new FormData(form)].map(([name, text]) => [name, held.get(name) ?? text]));
}

// showTasks offers the tasks of the pipeline that is chosen.
function showTasks() {
  const {tasks = []} = pipelines.find(one => one.name === form.pipeline.value) ?? {};
  const chosen = form.task.value;
  form.task.replaceChildren(make("option", {value: ""}, "the one that users connect to"),
    ...tasks.map(name => make("option", {value: name}, name)));
  form.task.value = tasks.includes(chosen) ? chosen : "";
}

async function connect() {
  pipelines = await ask("pipelines", {});
  form.pipeline.replaceChildren(...pipelines.map(one => make("option", {value: one.name}, one.name)));
  byId("pipeline-field").hidden = pipelines.length < 2;
  showTasks();
  showState();
}

function showState() {
  const one = pipelines.find(known => known.name === form.pipeline.value);
  byId("state").replaceChildren(...(one ? ["pipeline ", shown(one.name), `, mode ${one.mode}`,
    ...(one.analyzed ? [", analysed ", at(one.analyzed)] : [])] : ["no pipeline is applied"]));
}

// explain asks about what the form says. What an earlier question would still show is dropped.
async function explain() {
  running.abort();
  running = new AbortController();
  const {signal} = running, question = asked();
  byId("problem").hidden = true;
  form.setAttribute("aria-busy", "true");
  for (const id of ["readers", "decisions"]) byId(id).hidden = true;
  try {
    showAnswer(await ask("explain", question, signal).catch(error => {
      if (!signal.aborted) byId("answer").hidden = true; // it is of an earlier question
      throw error;
    }));
    if (!fromForm) byId("verdict").focus();
    const {pipeline, conduit, access} = question;
    await Promise.all([
      ask("readers", {pipeline, conduit, access}, signal).then(readers => showReaders(readers, question)),
      ask("decisions", {conduit}, signal).then(showDecisions),
    ]);
  } catch (error) {
    if (error.name !== "AbortError" && byId("problem").hidden && !signal.aborted) fail(error);
  } finally {
    if (!signal.aborted) form.removeAttribute("aria-busy");
    fromForm = false;
  }
}

// read takes the question, or the ticket of a link, from the address.
async function read() {
  const given = new URLSearchParams(location.hash.slice(1));
  const ticket = given.get("ticket");
  if (ticket) {
    given.delete("ticket");
    history.replaceState(null, "", given.size ? `#${given}` : location.pathname);
    await enter(ticket);
    byId("problem").hidden = true; // this window may ask again
  }
  if (pipelines.length === 0 || ticket) await connect();
  watch().catch(fail);
  if (!given.get("conduit")) return;
  if (given.get("pipeline")) form.pipeline.value = given.get("pipeline");
  showTasks();
  showState();
  for (const name of ["principal", "region", "conduit"]) put(name, given.get(name) ?? "");
  form.task.value = given.get("task") ?? "";
  form.access.value = given.get("access") ?? "read";
  await explain();
}

// watch shows denials as they happen, and connects again when the stream ends. It ends when this
// window may not ask; the next link begins it again.
async function watch() {
  if (watching) return;
  watching = true;
  const hint = byId("live-hint");
  let wait = 1000;
  const event = (name, data) => {
    if (name === "begin") {
      byId("live").replaceChildren();
      late = [];
      hint.textContent = "Denials of all pipelines appear here as they happen.";
      wait = 1000;
    } else if (name === "denial" && isPaused()) {
      late = [...late.slice(1 - LIVE), data];
      byId("pause").textContent = `Go on (${late.length})`;
    } else if (name === "denial") {
      showDenial(data);
    } else if (name === "problem") {
      hint.textContent = data;
    }
  };
  while (watching) {
    try {
      await follow("data/denials", event);
      hint.textContent = "The stream of denials has ended; connecting again.";
    } catch (error) {
      watching = error.status !== 401 && error.status !== 429;
      hint.textContent = `Not following denials: ${error.message}. ${watching ? "Trying again." : "A new link begins it again."}`;
      if (!watching) return;
    }
    await new Promise(resolve => setTimeout(resolve, wait));
    wait = Math.min(2 * wait, 30_000);
  }
}

function isPaused() { return byId("pause").getAttribute("aria-pressed") === "true"; }

function showDenial(one) {
  const list = byId("live");
  list.prepend(record(one));
  while (list.children.length > LIVE) list.lastElementChild.remove();
}

byId("pause").addEventListener("click", event => {
  const paused = !isPaused();
  event.target.setAttribute("aria-pressed", String(paused));
  event.target.textContent = paused ? "Go on" : "Pause";
  for (const one of late.splice(0)) showDenial(one);
});
form.addEventListener("submit", event => {
  event.preventDefault();
  fromForm = true;
  const link = linkTo(asked());
  if (location.hash === link) read().catch(fail);
  else location.hash = link;
});
form.addEventListener("input", event => held.delete(event.target.name));
form.pipeline.addEventListener("change", () => {
  showTasks();
  showState();
});
byId("skip").addEventListener("click", event => {
  event.preventDefault();
  form.principal.focus();
});
byId("copy").addEventListener("click", event => {
  navigator.clipboard.writeText(event.target.value).then(
    () => { event.target.textContent = "Copied"; },
    () => { getSelection().selectAllChildren(byId("command")); }); // the browser forbids it: copy by hand
});
byId("expand").addEventListener("click", event => {
  const all = [...document.querySelectorAll("#tree details")], open = all.some(one => !one.open);
  for (const one of all) one.open = open;
  event.target.textContent = open ? "Close all steps" : "Open all steps";
});
window.addEventListener("hashchange", () => read().catch(fail));
read().catch(fail);
