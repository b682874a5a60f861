// The search page: results change as one types, the address holds what is searched for, and the arrow
// keys lead from the field into the results and back.

import { say } from "./base.js";
import { watchInPlace } from "./names.js";

const field = document.querySelector("#q");
const results = () => document.querySelector("#results");
let loading;

/** Shows what is at `path`; the latest call wins. */
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
    if (push) history.pushState(null, "", shown);
    else history.replaceState(null, "", shown);
    document.querySelector("#watch [name=next]").value = shown;
    return true;
  } catch (error) {
    if (error.name !== "AbortError") say("The server does not answer; the results are as they were");
    return false;
  }
}

const address = () => {
  const query = new URLSearchParams();
  for (const [name, value] of new FormData(field.form)) if (value.trim()) query.append(name, value.trim());
  return query.size ? `/search?${query}` : "/search";
};

field.addEventListener("input", () => load(address()));
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

/** Puts what an address asks for into the form. */
function fill(path) {
  const query = new URL(path, location.href).searchParams;
  field.value = query.get("q") ?? "";
  for (const name of ["stage", "view"]) {
    let hidden = field.form.querySelector(`input[name=${name}]`);
    if (!hidden) {
      hidden = Object.assign(document.createElement("input"), { type: "hidden", name });
      field.form.append(hidden);
    }
    hidden.value = query.get(name) ?? "";
  }
}

addEventListener("popstate", () => {
  fill(location.href);
  load(location.pathname + location.search);
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
