// SPDX-License-Identifier: BSD-2-Clause
// Requests to the monitor. This window's token is kept where only this origin, port included,
// can read it, and is sent in a header, never by the browser itself.

const KEY = "shai-token";
const QUIET = 45_000; // milliseconds without a heartbeat, after which a stream counts as dead

// Problem is an answer that is an error: title, detail, remedy.
export class Problem extends Error {
  constructor(problem, status) {
    super(problem.detail ?? problem.title);
    this.remedy = problem.remedy ?? "";
    this.status = status;
  }
}

// enter exchanges the ticket of a link for this window's token.
export async function enter(ticket) {
  const answer = await request("session", {
    method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify({ticket}),
  });
  sessionStorage.setItem(KEY, (await answer.json()).token);
}

// ask returns the answer to a question.
export async function ask(what, question, signal) {
  const parameters = new URLSearchParams(Object.entries(question).filter(([, value]) => value));
  return (await request(`data/${what}?${parameters}`, {signal})).json();
}

async function request(path, options) {
  const token = sessionStorage.getItem(KEY);
  if (token) options.headers = {...options.headers, Authorization: `Bearer ${token}`};
  let answer;
  try {
    answer = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem({detail: "the monitor does not answer", remedy: "is it still running? shai status"}, 0);
  }
  if (answer.ok) return answer;
  const problem = await answer.json().catch(() => ({detail: `${answer.status} ${answer.statusText}`}));
  throw new Problem(problem, answer.status);
}

// follow passes on the events of a stream until the stream ends or fails, or is silent for too long.
export async function follow(path, event) {
  const dead = new AbortController();
  let timer = setTimeout(() => dead.abort(), QUIET);
  try {
    const answer = await request(path, {signal: dead.signal});
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const {done, value} = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(() => dead.abort(), QUIET);
      const blocks = (text + value).split("\n\n");
      text = blocks.pop();
      for (const block of blocks) pass(block, event);
    }
  } finally {
    clearTimeout(timer);
  }
}

function pass(block, event) {
  let name = "", data = "";
  for (const line of block.split("\n")) {
    if (line.startsWith("event: ")) name = line.slice(7);
    if (line.startsWith("data: ")) data += line.slice(6);
  }
  if (name) event(name, JSON.parse(data));
}
