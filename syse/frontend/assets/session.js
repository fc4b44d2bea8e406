/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Sessions: keys, logins, and what is asked of Sys-E. With choosing.js and search.js it is one script of the page.
 */
"use strict";

const byId = (id) => document.getElementById(id);
const ATTEMPTS = 3;

/*
 * A login signs where the user has dialled and the pipeline of this page. The answers of
 * GET /session name both as well, but another service could relay them with its nonce.
 */
const SERVICE = `${location.hostname}:${location.port || (location.protocol === "https:" ? 443 : 80)}`;
const PIPELINE = document.querySelector("meta[name=pipeline]").content;

/* Who is logged in: {principal, key}. The key cannot be exported, and is gone with the tab. */
let login = null;

function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function unhex(digits) {
  return Uint8Array.from(digits.match(/../g), (pair) => parseInt(pair, 16));
}

function problem(text) {
  byId("problem").textContent = text;
  byId("problem").hidden = !text;
}

/* A seed becomes a key by the fixed beginning of its PKCS #8 form (RFC 8410). */
async function importKey(seed) {
  if (!globalThis.crypto || !crypto.subtle)
    throw new Error("This browser offers no cryptography here. Open Sys-E as https://… or as http://localhost.");
  const encoded = new Uint8Array([...unhex("302e020100300506032b657004220420"), ...unhex(seed)]);
  try {
    return await crypto.subtle.importKey("pkcs8", encoded, { name: "Ed25519" }, false, ["sign"]);
  } catch (error) {
    if (error.name !== "NotSupportedError" && !(error instanceof TypeError))
      throw error;
    throw new Error("This browser cannot sign with Ed25519. Firefox 129, Safari 17, Chrome or Edge 137 and later can.");
  }
}

/* Fetches, and turns an answer that is no success into an Error with its status. */
async function ask(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { ...options, headers: { Accept: "application/json", ...options.headers }, cache: "no-store" });
  } catch {
    throw new Error("Sys-E does not answer. Is it still running?");
  }
  if (response.status === 204)
    return null;
  const answer = await response.json().catch(() => ({ error: `Sys-E answered with status ${response.status}.` }));
  if (!response.ok) {
    const error = new Error(answer.error || `Sys-E answered with status ${response.status}.`);
    error.status = response.status;
    throw error;
  }
  return answer;
}

/*
 * A session is one connection. One that somebody is logged in on is ended first;
 * and should the browser send the signature over another one than the nonce came
 * from, it is refused and tried once more.
 */
async function authenticate() {
  for (let attempt = 1; ; attempt++) {
    const { nonce, principal, service, pipeline } = await ask("/session");
    if (principal !== null && attempt < ATTEMPTS) {
      await ask("/session", { method: "DELETE" });
      continue;
    }
    if (service !== SERVICE || pipeline !== PIPELINE)
      throw new Error(`This is pipeline ${pipeline} of service ${service}, and no login from ${SERVICE} is good there. `
        + `Open it where its service is, or change the field service of its manifest.`);
    const text = `shai-session-v2\n${SERVICE}\n${PIPELINE}\n${login.principal}\n${nonce}`;
    const signature = await crypto.subtle.sign({ name: "Ed25519" }, login.key, new TextEncoder().encode(text));
    try {
      showSession(await ask("/session", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ principal: login.principal, signature: hex(new Uint8Array(signature)) }),
      }));
      return;
    } catch (error) {
      if (error.status !== 403 && error.status !== 409 || attempt >= ATTEMPTS)
        throw error;
    }
  }
}

/* Asks on a connection that may be new: there, logs in again first. */
async function askAsUser(path, options) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask(path, options);
    } catch (error) {
      if (error.status !== 401 || attempt >= ATTEMPTS)
        throw error;
      if (login === null) {
        showView(false);
        throw new Error("Your session has ended. Please log in again.");
      }
      await authenticate();
    }
  }
}

function showSession({ principal, instance, mode, region }) {
  byId("who-text").textContent =
    [principal, instance !== principal && instance, region && `region ${region}`, `mode ${mode}`].filter(Boolean).join(" · ");
}

function showView(loggedIn) {
  byId("login-view").hidden = loggedIn;
  byId("search-view").hidden = byId("who").hidden = !loggedIn;
  byId(loggedIn ? "q" : "principal").focus();
}

function element(name, className, ...children) {
  const made = document.createElement(name);
  if (className)
    made.className = className;
  made.append(...children);
  return made;
}
