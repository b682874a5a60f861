// Drops page: filters apply on input, the URL holds the state, pages load in place, and shortcuts move
// through the rows. Without this file, the links and the form work as usual.

import { say } from "./base.js";
import { watchInPlace } from "./names.js";

const form = document.querySelector("#filters");
const list = () => document.querySelector("#list");

// ---- The list, in place

let loading; // The pending request. A newer request aborts it.

/** Loads the list at `path` and updates the URL. */
async function load(path, { push = false } = {}) {
  loading?.abort();
  const request = (loading = new AbortController());
  list().setAttribute("aria-busy", "true");
  try {
    const response = await fetch(path, { headers: { "X-Fragment": "1" }, signal: request.signal });
    const text = await response.text();
    if (request.signal.aborted) return false;
    show(new DOMParser().parseFromString(text, "text/html"));
    const shown = list().dataset.path ?? path;
    if (push) history.pushState(null, "", shown);
    else history.replaceState(null, "", shown);
    return true;
  } catch (error) {
    if (error.name === "AbortError") return false;
    list().removeAttribute("aria-busy");
    say("The server is not responding. The list was not updated.");
    return false;
  }
}

/** Replaces the parts of the page and keeps the focus. */
function show(page) {
  for (const id of ["chips", "list"]) {
    const [old, fresh] = [document.getElementById(id), page.getElementById(id)];
    if (!old || !fresh) continue;
    const focused = old.contains(document.activeElement) ? document.activeElement : null;
    const again = focused && sameAs(focused, fresh);
    const scrolled = old.scrollLeft;
    old.replaceWith(fresh);
    fresh.scrollLeft = scrolled;
    again?.focus({ preventScroll: true });
  }
  const next = document.querySelector("#watch [name=next]");
  if (next) next.value = list().dataset.path ?? "/";
}

function sameAs(element, within) {
  const { tagName, name, value, rel } = element;
  const href = element.getAttribute("href");
  return [...within.querySelectorAll(tagName)].find((other) =>
    rel ? other.rel === rel : href ? other.getAttribute("href") === href : name && other.name === name && other.value === value);
}

// ---- Filters

/** URL of the form values, as the server writes it. */
function address() {
  const sent = new FormData(form);
  const text = (name) => (sent.get(name) ?? "").toString().trim();
  const tlds = sent.getAll("tld").flatMap((value) => value.split(/[,\s]+/)).filter(Boolean);
  const query = new URLSearchParams();
  const add = (name, value, open) => { if (value && value !== open) query.append(name, value); };
  add("stage", text("stage"));
  if (!text("stage")) add("view", text("view"), "active");
  add("tld", [...new Set(tlds)].join(","));
  add("q", text("q"));
  add("min_dqs", text("min_dqs"), "0");
  add("max_len", text("max_len"), form.elements.max_len.max);
  return query.size ? `/?${query}` : "/";
}

/** Fills the form from a URL, after a link or a step back. */
function fill(path) {
  const query = new URL(path, location.href).searchParams;
  form.elements.q.value = query.get("q") ?? "";
  for (const name of ["min_dqs", "max_len"]) {
    form.elements[name].value = query.get(name) ?? "";
  }
  for (const name of ["stage", "view"]) {
    let field = form.querySelector(`input[type=hidden][name=${name}]`);
    if (!field) {
      field = Object.assign(document.createElement("input"), { type: "hidden", name });
      form.prepend(field);
    }
    field.value = query.get(name) ?? "";
  }
}

let soon;
const apply = (wait) => {
  clearTimeout(soon);
  soon = setTimeout(() => load(address()), wait);
};

form.addEventListener("input", (event) => {
  // The text field applies on change, because a partial TLD may be another TLD.
  if (event.target.id !== "other-tlds") apply(event.target.type === "checkbox" ? 0 : 120);
});

const takeOthers = async () => {
  const field = form.querySelector("#other-tlds");
  if (!field.value.trim()) return;
  clearTimeout(soon);
  if (await load(address())) field.value = "";
};
form.querySelector("#other-tlds").addEventListener("change", takeOthers);

// Suggestions, loaded when the field is used.
form.querySelector("#other-tlds").addEventListener("focus", async ({ target }) => {
  const response = await fetch(location.href, { headers: { "X-Fragment": "tlds" } }).catch(() => null);
  if (!response?.ok) return;
  target.insertAdjacentHTML("afterend", await response.text());
  target.setAttribute("list", "all-tlds");
}, { once: true });

form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (document.activeElement?.id === "other-tlds") takeOthers();
  else apply(0);
});

// Browsers restore form values on return; reset them if they differ from the list.
if (address() !== (list().dataset.path ?? "/").replace(/[?&]offset=\d+$/, "")) fill(location.href);

// ---- Links that change the list

document.addEventListener("click", async (event) => {
  const link = event.target.closest("a[data-load]");
  if (!link || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  await follow(link);
});

async function follow(link) {
  const path = link.getAttribute("href");
  const turns = Boolean(link.rel);
  if (!(await load(path, { push: true }))) return;
  fill(path);
  // Scroll to the top of a new page unless it is already in view.
  if (turns && list().getBoundingClientRect().top < 0) list().scrollIntoView({ block: "start" });
  if (turns) say(list().querySelector("[role=status]").textContent);
}

addEventListener("popstate", () => {
  fill(location.href);
  load(location.pathname + location.search);
});

// ---- Score details, loaded when they are opened

document.addEventListener("toggle", async (event) => {
  const why = event.target.open && event.target.querySelector(".why:not(.whole)");
  if (!why) return;
  why.classList.add("whole");
  const { name } = event.target.closest("tr").dataset;
  const response = await fetch(`/domain/${name}`, { headers: { "X-Fragment": "parts" } }).catch(() => null);
  if (response?.ok) why.insertAdjacentHTML("beforeend", await response.text());
  else why.classList.remove("whole"); // Opening it again tries again.
}, true);

// ---- Keyboard

const rows = () => [...list().querySelectorAll("tbody tr")];
const here = () => document.activeElement?.closest?.("#list tbody tr") ?? list().querySelector("tr.here");

function move(step) {
  const all = rows();
  const at = all.indexOf(here());
  const row = all[at < 0 ? (step > 0 ? 0 : all.length - 1) : at + step];
  if (!row) return;
  list().querySelector("tr.here")?.classList.remove("here");
  row.classList.add("here");
  row.tabIndex = -1;
  row.focus({ preventScroll: true });
  row.scrollIntoView({ block: "nearest" });
}

const turn = (rel) => {
  const link = list().querySelector(`.pager a[rel=${rel}]`);
  if (link) follow(link);
};

const keys = document.querySelector("#keys");
const switched = keys.querySelector("#keys-on");
const stored = () => { try { return localStorage.getItem("single-keys"); } catch { return null; } };
switched.checked = stored() !== "off";
switched.addEventListener("change", () => {
  try { localStorage.setItem("single-keys", switched.checked ? "on" : "off"); } catch { /* not stored */ }
});

const actions = {
  j: () => move(1),
  k: () => move(-1),
  n: () => turn("next"),
  p: () => turn("prev"),
  o: (row) => row?.querySelector("th a").click(),
  w: (row) => row?.querySelector(".watch").click(),
  c: (row) => row?.querySelector("[data-copy]").click(),
  "?": () => keys.showModal(),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || keys.open || !switched.checked) return;
  if (event.target.matches("input:not([type=checkbox]), textarea, select")) return;
  if (event.key === "Enter" && event.target.matches("#list tbody tr")) {
    const parts = event.target.querySelector("details");
    parts.open = !parts.open;
    event.target.scrollIntoView({ block: "nearest" });
  } else if (Object.hasOwn(actions, event.key)) {
    event.preventDefault();
    actions[event.key](here());
  }
});

document.addEventListener("click", (event) => { if (event.target.closest("#show-keys")) keys.showModal(); });

watchInPlace();
