/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The part of a result in which its owner chooses who may read it.
 */

/*
 * What the policies of Sys-E mean, by their whole text; the page shows every other one as it is. Of one that
 * the user may not choose, Sys-E tells nothing.
 */
function meaning(policy, user) {
  if (policy === "")
    return { who: "it is under a policy that you cannot choose" };
  const known = new Map([
    [`private(owner: ${quoted(user)})`, { label: "Make private", who: "only you may read it" }],
    [`friends(owner: ${quoted(user)})`, { label: "Give back to friends", who: "you and your friends may read it" }],
    [`friends-of-friends(owner: ${quoted(user)})`,
      { label: "Give back to friends and theirs", who: "you, your friends and their friends may read it" }],
  ]);
  return known.get(policy) || { label: `Choose ${policy}`, who: `it is under the policy ${policy}` };
}

/* What has no shape of its own, or may have none: a text with it looks like one without. */
const UNSEEN = /(?! )[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800\u{13441}\u{13442}\u{16fe4}\u{1d159}\ufffc]/u;

/* Quotes a text as Go does; the monitor verifies the signature of exactly this. */
function quoted(text) {
  if (UNSEEN.test(text) || text !== text.normalize("NFC"))
    throw new Error("A name here has characters that this page does not sign. Use shai policy set.");
  return `"${text.replace(/["\\]/g, "\\$&")}"`;
}

/* Signs that the user chooses a policy for a document: what the button says and the page shows, and nothing else. */
async function signChoice(path, policy, nonce) {
  if (!/^[0-9a-f]{64}$/.test(nonce))
    throw new Error("Sys-E has sent no number to sign.");
  const texts = [PIPELINE, login.principal, path, policy].map(quoted);
  const text = ["shai-policy-v1", ...texts, nonce].join("\n");
  return hex(new Uint8Array(await crypto.subtle.sign({ name: "Ed25519" }, login.key, new TextEncoder().encode(text))));
}

async function sendChoice(id, policy, signature) {
  const answer = await askAsUser(`/policy?id=${id}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ policy, signature }),
  });
  if (answer.policy !== policy)
    throw new Error(`Sys-E says that ${answer.policy} was chosen. You have chosen ${policy}.`);
}

/* Asks which policies the user may choose for a document. What is another's is not offered to sign. */
async function askChoices(id) {
  if (login === null)
    throw new Error("Log out and in again to choose: since it was reloaded, this tab has no key to sign with.");
  const offer = await askAsUser(`/policy?id=${id}`);
  if (!offer.conduit.split("/").includes(login.principal))
    throw new Error(`${offer.conduit} is no document of yours, so this page signs nothing for it.`);
  quoted(offer.conduit); // what could not be signed is not offered
  return offer;
}

/* The part of a result in which its owner chooses who may read it. */
class Chooser {
  constructor(result) {
    this.id = result.id;
    this.about = element("p", "");
    this.answers = element("p", "answers");
    this.told = element("p", "told");
    this.told.setAttribute("role", "status");
    this.panel = element("div", "policy", this.about, this.answers, this.told);
    this.panel.id = `policy-${result.id}`;
    this.panel.hidden = true;
    this.opener = element("button", "quiet", "Who may read it");
    this.opener.type = "button";
    this.opener.setAttribute("aria-label", `Who may read it: ${result.title || "(untitled)"}`);
    this.opener.setAttribute("aria-expanded", "false");
    this.opener.setAttribute("aria-controls", this.panel.id);
    this.opener.addEventListener("click", () => this.toggle());
    this.element = element("div", "choosing", this.opener, this.panel);
  }

  tell(text, wrong = false) {
    this.told.textContent = text;
    this.told.classList.toggle("problem", wrong);
  }

  async toggle() {
    this.panel.hidden = !this.panel.hidden;
    this.opener.setAttribute("aria-expanded", String(!this.panel.hidden));
    this.about.replaceChildren();
    this.answers.replaceChildren();
    this.tell("");
    if (!this.panel.hidden)
      await this.step(() => this.load());
    this.opener.focus();
  }

  /* Runs a step with everything disabled, and says in words if it fails. Returns whether it has not. */
  async step(run) {
    const pending = (is) => [this.opener, ...this.answers.children].forEach((button) => { button.disabled = is; });
    pending(true);
    try {
      await run();
      return true;
    } catch (error) {
      this.tell(error.message, true);
      return false;
    } finally {
      pending(false);
    }
  }

  /* Shows what is in force, and a button for each other policy that may be chosen. */
  async load() {
    const offer = await askChoices(this.id);
    const others = offer.choices.filter((policy) => policy !== offer.policy);
    this.about.replaceChildren("Your document ", element("code", "", offer.conduit),
      `: ${meaning(offer.policy, login.principal).who}.`);
    this.answers.replaceChildren(...others.map((policy) => {
      const answer = element("button", "", meaning(policy, login.principal).label);
      answer.type = "button";
      answer.addEventListener("click", () => this.choose(offer, policy));
      return answer;
    }));
  }

  async choose({ conduit, nonce }, policy) {
    this.tell("Signing …");
    const chosen = await this.step(async () => {
      await sendChoice(this.id, policy, await signChoice(conduit, policy, nonce));
      this.tell(`Done: ${meaning(policy, login.principal).who}.`);
    });
    /* A nonce is of use once, so what can be chosen next is asked for, and also after a refusal. */
    const loaded = await this.step(() => this.load());
    (chosen && loaded && this.answers.firstElementChild || this.opener).focus();
  }
}
