// Suggestions below the search field (WAI-ARIA combobox): names, and filters in the query bar. Only the latest request counts. Without this
// file, the field is a plain form.

import { BASE } from "./base.js";

const field = document.querySelector("#find");
const box = field.form;
const KEPT = 50;

const list = Object.assign(document.createElement("ul"), { id: "found", hidden: true });
list.setAttribute("role", "listbox");
list.setAttribute("aria-label", "Suggestions");
box.append(list);
for (const [name, value] of Object.entries({ role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": "found" })) {
  field.setAttribute(name, value);
}

const cache = new Map(); // Responses to the last queries, newest last.
let pending; // The pending request.

const options = () => [...list.children];
const chosen = () => list.querySelector("[aria-selected=true]");

/** Addresses of what is offered for a text: filters in the query bar, then names. A filter is no name. */
function sources(text) {
  const filters = field.name === "add" ? [`${BASE}?${new URLSearchParams(new FormData(box))}`] : [];
  const names = /^-|[:"]|\s/.test(text.trim()) ? [] : [`${BASE}search?${new URLSearchParams({ q: text.trim() })}`];
  return [...filters, ...names];
}

async function ask(text) {
  pending?.abort();
  const paths = text.trim() ? sources(text) : [];
  if (paths.length === 0) return close();
  const key = paths.join(" ");
  if (cache.has(key)) return show(cache.get(key));
  const request = (pending = new AbortController());
  const part = async (path) => {
    const response = await fetch(path, { headers: { "X-Fragment": "options" }, signal: request.signal });
    return response.ok ? response.text() : undefined;
  };
  try {
    const parts = await Promise.all(paths.map(part));
    if (request.signal.aborted) return;
    // The server may be overloaded. The next input tries again.
    if (parts.includes(undefined)) return close();
    cache.set(key, parts.join(""));
    if (cache.size > KEPT) cache.delete(cache.keys().next().value);
    show(parts.join(""));
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

/** Opens a name, sends a filter, or asks for the values of one. */
function go(option) {
  if (option.dataset.href) return location.assign(option.dataset.href);
  field.value = option.dataset.text;
  if (field.value.endsWith(":")) return ask(field.value);
  close();
  box.requestSubmit();
}

field.addEventListener("input", () => ask(field.value));
field.addEventListener("focus", () => { if (field.value.trim()) ask(field.value); });
// Keep the list open if the focus returns at once.
field.addEventListener("blur", () => setTimeout(() => { if (document.activeElement !== field) close(); }, 100));
field.addEventListener("keydown", (event) => {
  if (event.isComposing) return;
  const open = !list.hidden;
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    if (open) step(event.key === "ArrowDown" ? 1 : -1);
    else ask(field.value);
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
