// Suggestions below the search field (WAI-ARIA combobox). Only the latest request counts. Without this
// file, the field is a plain form.

import { BASE } from "./base.js";

const field = document.querySelector("#find");
const box = field.form;
const KEPT = 50;

const list = Object.assign(document.createElement("ul"), { id: "found", hidden: true });
list.setAttribute("role", "listbox");
list.setAttribute("aria-label", "Names");
box.append(list);
for (const [name, value] of Object.entries({ role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": "found" })) {
  field.setAttribute(name, value);
}

const cache = new Map(); // Responses to the last queries, newest last.
let pending; // The pending request.

const options = () => [...list.children];
const chosen = () => list.querySelector("[aria-selected=true]");

async function ask(text) {
  pending?.abort();
  // A filter of the query bar is no name.
  if (!text || /^-|[:"]|\s/.test(text)) return close();
  if (cache.has(text)) return show(cache.get(text));
  const request = (pending = new AbortController());
  try {
    const response = await fetch(`${BASE}search?${new URLSearchParams({ q: text })}`, { headers: { "X-Fragment": "options" }, signal: request.signal });
    const html = response.ok ? await response.text() : undefined;
    if (request.signal.aborted) return;
    // The server may be overloaded. The next input tries again.
    if (html === undefined) return close();
    cache.set(text, html);
    if (cache.size > KEPT) cache.delete(cache.keys().next().value);
    show(html);
  } catch (error) {
    if (error.name !== "AbortError") close();
  }
}

function show(html) {
  const page = new DOMParser().parseFromString(html, "text/html");
  list.replaceChildren(...page.body.children);
  const open = list.children.length > 0 && document.activeElement === field;
  list.hidden = !open;
  field.setAttribute("aria-expanded", String(open));
  field.removeAttribute("aria-activedescendant");
}

function close() {
  list.hidden = true;
  field.setAttribute("aria-expanded", "false");
  field.removeAttribute("aria-activedescendant");
  chosen()?.removeAttribute("aria-selected");
}

function choose(option) {
  chosen()?.removeAttribute("aria-selected");
  if (!option) return field.removeAttribute("aria-activedescendant");
  option.setAttribute("aria-selected", "true");
  option.scrollIntoView({ block: "nearest" });
  field.setAttribute("aria-activedescendant", option.id);
}

function step(by) {
  const all = options();
  const at = all.indexOf(chosen());
  // Moving beyond either end returns to the field.
  const next = at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by;
  choose(all[next]);
}

const go = (option) => location.assign(option.dataset.href);

field.addEventListener("input", () => ask(field.value.trim()));
field.addEventListener("focus", () => { if (field.value.trim()) ask(field.value.trim()); });
// Keep the list open if the focus returns at once.
field.addEventListener("blur", () => setTimeout(() => { if (document.activeElement !== field) close(); }, 100));
field.addEventListener("keydown", (event) => {
  if (event.isComposing) return;
  const open = !list.hidden;
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    if (open) step(event.key === "ArrowDown" ? 1 : -1);
    else ask(field.value.trim());
  } else if (event.key === "Escape" && open) {
    event.preventDefault();
    close();
  } else if (event.key === "Enter" && open && chosen()) {
    event.preventDefault();
    go(chosen());
  }
});
// Keep the focus in the field while an option is clicked.
list.addEventListener("pointerdown", (event) => event.preventDefault());
list.addEventListener("click", (event) => {
  const option = event.target.closest("[role=option]");
  if (option) go(option);
});
