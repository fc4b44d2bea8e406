/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Searches, their results, and what the page does at first.
 */

/* Text with the query's words marked; never as markup. */
function marked(text, query) {
  const words = (query.match(/[\p{L}\p{N}_]+/gu) || []).sort((a, b) => b.length - a.length);
  const fragment = document.createDocumentFragment();
  if (!words.length) {
    fragment.append(text);
    return fragment;
  }
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}_])(${words.join("|")})(?![\\p{L}\\p{N}_])`, "giu");
  text.split(pattern).forEach((piece, i) => {
    if (i % 2 === 0) {
      fragment.append(piece);
      return;
    }
    const mark = document.createElement("mark");
    mark.textContent = piece;
    fragment.append(mark);
  });
  return fragment;
}

function badge(text, visibility) {
  return element("span", ["public", "friends", "private"].includes(visibility) ? `badge ${visibility}` : "badge", text);
}

/* Opens a result: its text from the beginning takes the place of the excerpt. Sys-E remembers what was opened. */
async function openResult(result, excerpt) {
  problem("");
  try {
    excerpt.replaceChildren((await askAsUser(`/click?id=${result.id}`, { method: "POST" })).snippet);
  } catch (error) {
    problem(error.message);
  }
}

function resultItem(result, query, user) {
  const excerpt = element("p", "", marked(result.snippet, query));
  const title = element("button", "title", marked(result.title || "(untitled)", query));
  title.type = "button";
  title.addEventListener("click", () => openResult(result, excerpt));
  const badges = element("p", "badges", badge(result.visibility || "unknown", result.visibility));
  if (result.owner && result.owner !== "-")
    badges.append(badge(`by ${result.owner}`));
  const item = element("li", "result", element("h2", "", title), badges, excerpt);
  if (result.owner === user)
    item.append(new Chooser(result).element);
  return item;
}

function showAnswer(answer) {
  const count = answer.results.length;
  byId("results").replaceChildren(...answer.results.map((result) => resultItem(result, answer.query, answer.user)));
  byId("summary").replaceChildren(`${count} ${count === 1 ? "result" : "results"} for ${answer.user}`);
  if (answer.withheld > 0)
    byId("summary").append("; ", element("strong", "", `${answer.withheld} withheld`), ", because this session may not open them");
  byId("note").textContent = answer.note || "";
  byId("note").hidden = !answer.note;
  byId("advertisement").textContent = answer.advertisement;
  byId("advertisement").hidden = !answer.advertisement;
}

function clearAnswer() {
  byId("results").replaceChildren();
  byId("summary").textContent = "";
  byId("note").hidden = byId("advertisement").hidden = true;
}

async function search(query) {
  byId("search-button").disabled = true;
  byId("summary").textContent = "Searching …";
  problem("");
  try {
    showAnswer(await askAsUser(`/search?q=${encodeURIComponent(query)}`));
    history.replaceState(null, "", `/?q=${encodeURIComponent(query)}`);
  } catch (error) {
    clearAnswer();
    problem(error.message);
  } finally {
    byId("search-button").disabled = false;
  }
}

/* Shows the search, and runs the one that the address asks for. */
async function enter() {
  showView(true);
  const query = new URLSearchParams(location.search).get("q");
  if (query) {
    byId("q").value = query;
    await search(query);
  }
}

byId("login").addEventListener("submit", async (event) => {
  event.preventDefault();
  byId("login-button").disabled = true;
  problem("");
  try {
    const key = await importKey(byId("key").value.trim().toLowerCase());
    login = { principal: byId("principal").value.trim(), key };
    await authenticate();
    byId("key").value = "";
    await enter();
  } catch (error) {
    login = null;
    problem(error.message);
  } finally {
    byId("login-button").disabled = false;
  }
});

byId("search").addEventListener("submit", (event) => {
  event.preventDefault();
  const query = byId("q").value.trim();
  if (query)
    search(query);
});

byId("logout").addEventListener("click", async () => {
  login = null;
  clearAnswer();
  problem("");
  byId("q").value = "";
  history.replaceState(null, "", "/");
  showView(false);
  await ask("/session", { method: "DELETE" }).catch(() => { /* then the connection was gone already */ });
});

/* After a reload the connection may still be logged in. */
ask("/session").then(async (session) => {
  if (session.principal !== null && login === null) {
    showSession(session);
    await enter();
  }
}).catch((error) => problem(error.message));
