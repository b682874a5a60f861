// Dossier: votes and watch buttons without reloading the page, and shortcuts.

import { BASE, below, isShortcut, openedFrom, say } from "./base.js";
import { watchInPlace } from "./names.js";

document.addEventListener("submit", async (event) => {
  if (!event.target.matches("form[data-votes]") || !event.submitter) return;
  event.preventDefault();
  const body = new URLSearchParams(new FormData(event.target, event.submitter));
  const pressed = [...event.target.elements].indexOf(event.submitter);
  try {
    const response = await fetch(event.target.action, { method: "POST", body, headers: { "X-Fragment": "1" } });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const fresh = page.getElementById("votes");
    if (response.ok && fresh) {
      document.getElementById("votes").replaceWith(fresh);
      fresh.querySelector("form")?.elements[pressed]?.focus();
      say(body.get("vote") === "none" ? "Your vote was removed" : "Your vote was saved");
    } else if (new URL(response.url).pathname === `${BASE}login`) {
      location.assign(`${BASE}login?${new URLSearchParams({ next: below(location.pathname) })}`);
    } else {
      say(page.querySelector(".problem")?.textContent.trim() ?? "Something went wrong. Nothing was changed.");
    }
  } catch {
    say("The server is not responding. Nothing was changed.");
  }
});

// The names before and after this one in the list it was opened from.
const list = openedFrom();
if (list) {
  const link = (text, href, label) => {
    const made = document.createElement(href ? "a" : "span");
    if (href) Object.assign(made, { href, ariaLabel: label });
    made.textContent = text;
    return made;
  };
  const turns = Object.assign(document.createElement("nav"), { className: "turns", ariaLabel: "Names of the list" });
  turns.append(link("‹ Previous", list.before, "Previous name"), link(`${list.place} in the list`, list.from), link("Next ›", list.after, "Next name"));
  document.querySelector(".title").before(turns);
}
const go = (path) => () => path && location.assign(path);

// Shortcuts, as on the list of drops.
const focus = (what) => () => document.querySelector(what)?.focus();
const click = (what) => () => document.querySelector(what)?.click();
const actions = {
  j: go(list?.after),
  k: go(list?.before),
  w: click(".title .watch"),
  c: click(".title [data-copy]"),
  t: focus(".notes [name=tags]"),
  m: focus(".notes [name=bid]"),
  b: focus(".open .out.on, .open .out"),
  r: click(".check button"),
};
document.addEventListener("keydown", (event) => {
  if (!isShortcut(event) || !Object.hasOwn(actions, event.key)) return;
  event.preventDefault();
  actions[event.key]();
});

watchInPlace();
