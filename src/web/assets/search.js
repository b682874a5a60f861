// Search page: results update on input, the URL holds the query, and the arrow keys move between the
// field and the results.

import { BASE, below, onAddress, say, showsNow } from "./base.js";
import { watchInPlace } from "./names.js";

const field = document.querySelector("#q");
const results = () => document.querySelector("#results");
let loading;

/** Loads the results at `path`. Only the latest call counts. */
async function load(path, { push = false } = {}) {
  loading?.abort();
  const request = (loading = new AbortController());
  try {
    const response = await fetch(path, { headers: { "X-Fragment": "1" }, signal: request.signal });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    if (request.signal.aborted) return false;
    const fresh = page.getElementById("results");
    if (!fresh) return false;
    results().replaceWith(fresh);
    const shown = fresh.dataset.path ?? path;
    showsNow(shown, { push });
    document.querySelector("#watch [name=next]").value = below(shown);
    return true;
  } catch (error) {
    if (error.name !== "AbortError") say("The server is not responding. The results were not updated.");
    return false;
  }
}

const address = () => {
  const query = new URLSearchParams();
  for (const [name, value] of new FormData(field.form)) if (value.trim()) query.append(name, value.trim());
  return query.size ? `${BASE}search?${query}` : `${BASE}search`;
};

field.form.addEventListener("input", () => load(address()));
field.form.addEventListener("submit", (event) => {
  event.preventDefault();
  load(address());
});

document.addEventListener("click", async (event) => {
  const link = event.target.closest("a[data-load]");
  if (!link || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  const path = link.getAttribute("href");
  if (!(await load(path, { push: true }))) return;
  fill(path);
  if (link.rel && results().getBoundingClientRect().top < 0) results().scrollIntoView({ block: "start" });
  const again = results().querySelector(link.rel ? `a[rel=${link.rel}]` : "a[aria-current]");
  again?.focus({ preventScroll: true });
});

/** Fills the form from a URL. */
function fill(path) {
  const query = new URL(path, location.href).searchParams;
  for (const input of field.form.elements) if (input.name) input.value = query.get(input.name) ?? "";
  for (const name of ["stage", "view"]) {
    let hidden = field.form.querySelector(`input[name=${name}]`);
    if (!hidden) {
      hidden = Object.assign(document.createElement("input"), { type: "hidden", name });
      field.form.append(hidden);
    }
    hidden.value = query.get(name) ?? "";
  }
}

onAddress((path) => {
  fill(location.href);
  load(path);
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !["ArrowDown", "ArrowUp"].includes(event.key)) return;
  const names = [...results().querySelectorAll("th a")];
  const at = names.indexOf(document.activeElement);
  if (at < 0 && (document.activeElement !== field || event.key === "ArrowUp")) return;
  event.preventDefault();
  (names[at + (event.key === "ArrowDown" ? 1 : -1)] ?? (event.key === "ArrowUp" ? field : names.at(-1)))?.focus();
});

watchInPlace();
