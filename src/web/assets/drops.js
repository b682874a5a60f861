// Drops page: links change the list in place, the URL holds the state, names are selected, and shortcuts
// move through the rows. Without this file, the links and the forms work as usual.

import { BASE, below, copy, onAddress, say, showsNow } from "./base.js";
import { problem, watchInPlace } from "./names.js";
import { onRows } from "./touch.js";
import { offer } from "./undo.js";

const list = () => document.querySelector("#list");
const frame = () => document.querySelector("#frame");

// ---- The list, in place

let loading; // The pending request. A newer request aborts it.

/** Loads the list at `path` and updates the URL. */
async function load(path, { push = false } = {}) {
  loading?.abort();
  const request = (loading = new AbortController());
  part("rows").setAttribute("aria-busy", "true");
  try {
    const page = await fragment(path, "1", request.signal);
    if (request.signal.aborted) return false;
    show(page);
    showsNow(frame().dataset.path, { push });
    return true;
  } catch (error) {
    if (error.name === "AbortError") return false;
    part("rows").removeAttribute("aria-busy");
    say("The server is not responding. The list was not updated.");
    return false;
  }
}

async function fragment(path, name, signal) {
  const response = await fetch(path, { headers: { "X-Fragment": name }, signal });
  return new DOMParser().parseFromString(await response.text(), "text/html");
}

const PARTS = ["set", "filters", "places", "rows"];
const part = (id) => document.getElementById(id);

/** Replaces the rows, and changes in the other parts of the page what differs. The focus stays. */
function show(page) {
  const fresh = (id) => page.getElementById(id);
  const focused = document.activeElement;
  const within = PARTS.find((id) => part(id).contains(focused));
  const said = words(focused);
  const isOpen = document.querySelector(".side .more")?.open;
  part("rows").replaceWith(fresh("rows"));
  for (const id of PARTS.slice(0, -1)) patch(part(id), fresh(id));
  frame().dataset.path = fresh("frame").dataset.path;
  document.querySelector(".rest > .notice")?.remove();
  part("tools")?.hidePopover?.();
  if (within && (!focused.isConnected || words(focused) !== said)) sameAs(focused, said, part(within))?.focus({ preventScroll: true });
  const more = document.querySelector(".side .more");
  if (more && isOpen) more.open = true;
  const field = document.querySelector("#find");
  field.value = "";
  field.removeAttribute("aria-invalid");
  const next = document.querySelector("#watch [name=next]");
  if (next) next.value = below(frame().dataset.path);
  selected();
  whole = loadOthers();
}

/** Makes `old` equal to `fresh` with the fewest changes, so that little is laid out and painted again. */
function patch(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  for (const { name } of [...old.attributes]) if (name !== "open" && !fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  if (old.matches("input")) [old.value, old.checked] = [fresh.value, fresh.checked];
  const [nodes, after] = [[...old.childNodes], [...fresh.childNodes]];
  after.forEach((node, at) => {
    const was = nodes[at];
    if (!was) old.append(node);
    else if (was.nodeName !== node.nodeName) was.replaceWith(node);
    else if (was.nodeType === Node.ELEMENT_NODE) patch(was, node);
    else if (was.data !== node.data) was.data = node.data;
  });
  nodes.slice(after.length).forEach((node) => node.remove());
}

/** The words of a link or button, without a count. */
const words = (element) => element?.firstChild?.textContent.trim();

function sameAs(element, said, within) {
  return [...within.querySelectorAll(element.tagName)].find((other) => (element.rel ? other.rel === element.rel : words(other) === said));
}

const painted = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
let whole; // Resolves once all rows of the page are there.

/** Adds the rows that the page left out, once the first ones are painted. If that fails, the link to them stays. */
async function loadOthers() {
  const others = part("others");
  if (!others) return;
  await painted();
  const page = others.isConnected ? await fragment(others.querySelector("a").href, "rows").catch(() => null) : null;
  const bodies = [...(page?.querySelectorAll("tbody") ?? [])];
  if (!others.isConnected || bodies.length === 0) return;
  if (list().querySelector("#all").checked) bodies.forEach((body) => body.querySelectorAll(".sel input").forEach((box) => { box.checked = true; }));
  list().querySelector(".drops").append(...bodies);
  others.remove();
  selected();
}

/** The address that a form stands for. */
function address(form) {
  const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ""));
  return query.size ? `${BASE}?${query}` : BASE;
}

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (form.method !== "get" || new URL(form.action).pathname !== BASE) return;
  event.preventDefault();
  const filters = form.closest("#filters");
  if (!(await load(address(form), { push: true }))) return;
  // The fields are below the first rows on a wide screen, and cover them on a phone.
  if (filters) {
    filters.hidePopover?.();
    list().scrollIntoView({ block: "start" });
  }
  say(list().querySelector("[role=alert], [role=status]")?.textContent ?? "List updated");
});

document.addEventListener("change", (event) => event.target.form?.matches("[data-auto]") && event.target.form.requestSubmit());

// ---- Links that change the list

document.addEventListener("click", async (event) => {
  const link = event.target.closest("#set a, #frame a");
  if (link?.pathname !== BASE || link.getAttribute("href").startsWith("#") || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  await follow(link);
});

async function follow(link) {
  const turns = Boolean(link.rel);
  if (!(await load(link.getAttribute("href"), { push: true }))) return;
  // Scroll to the top of a new page unless it is already in view.
  if (turns && list().getBoundingClientRect().top < 0) list().scrollIntoView({ block: "start" });
  if (turns) say(list().querySelector("[role=status]").textContent);
}

onAddress(load);

// ---- Selected names

const boxes = () => [...list().querySelectorAll("tbody .sel input")];
let last; // The box that was changed last, from which a range begins.

document.addEventListener("click", (event) => {
  const box = event.target.closest("tbody .sel input");
  if (!box) return;
  const all = boxes();
  const [from, to] = [all.indexOf(last), all.indexOf(box)].sort((a, b) => a - b);
  if (event.shiftKey && from >= 0) all.slice(from, to + 1).forEach((other) => { other.checked = box.checked; });
  last = box;
  selected();
});

document.addEventListener("change", (event) => {
  if (event.target.id === "picking") part("tools").hidePopover?.();
  if (event.target.id !== "all" && event.target.id !== "every") return;
  boxes().forEach((box) => { box.checked = event.target.checked; });
  selected();
});

const every = () => list().querySelector("#every");

/** Tells how many names are selected. Those of other pages are as long as all of this one are. */
function selected() {
  const count = boxes().filter((box) => box.checked).length;
  // Classes and not `:has(:checked)`, which browsers check again for all rows that are added.
  list().classList.toggle("selecting", count > 0);
  boxes().forEach((box) => box.closest("tr").classList.toggle("on", box.checked));
  if (every() && count < boxes().length) every().checked = false;
  const told = list().querySelector(".picked");
  if (told) told.textContent = `${(every()?.checked ? Number(every().dataset.total) : count).toLocaleString("en")} selected`;
  const all = list().querySelector("#all");
  if (all) [all.checked, all.indeterminate] = [count > 0 && count === boxes().length, count > 0 && count < boxes().length];
}

document.addEventListener("reset", (event) => event.target.id === "bulk" && setTimeout(selected));

const copyNames = (names) => copy(names.join("\n"), names.length === 1 ? `Copied ${names[0]}` : `Copied ${names.length} names`);

const picked = () => boxes().filter((box) => box.checked).map((box) => box.value);

/** What the form of selected names would send; without a selection, the name of `row`. */
function sent(row) {
  const fields = new URLSearchParams(new FormData(list().querySelector("#bulk")));
  if (!fields.has("domain") && row) fields.append("domain", nameOf(row));
  return fields;
}

/** Copies the selected names, or that of `row`. Names of other pages and bids are asked for. */
async function copySelected(row, path = "selected.txt") {
  if (!every()?.checked && path === "selected.txt") {
    const names = picked();
    return copyNames(names.length || !row ? names : [nameOf(row)]);
  }
  const response = await fetch(BASE + path, { method: "POST", body: sent() }).catch(() => null);
  if (!response) return say("The server is not responding.");
  if (!response.ok) return say((await problem(response)) ?? "Nothing was copied.");
  copyNames((await response.text()).trim().split("\n"));
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("#copy, #bulk .copy");
  if (!button) return;
  event.preventDefault();
  copySelected(undefined, button.matches(".copy") ? "selected.txt?with=bid" : undefined);
});

/** Hides the selected names, or that of `row`, or shows them again. The next row stays where one is. */
async function hide(row) {
  const button = list().querySelector("#bulk [formaction$=hide]");
  const fields = sent(row);
  if (!button) return say("Log in to hide names.");
  if (!fields.has("domain")) return;
  const gone = fields.getAll("domain");
  const all = rows().map(nameOf);
  const stays = all.slice(all.indexOf(row ? nameOf(row) : gone.at(-1))).find((name) => !gone.includes(name));
  const response = await fetch(button.getAttribute("formaction"), { method: "POST", body: fields, headers: { "X-Fragment": "1" } }).catch(() => null);
  if (!response?.ok) return say((response && (await problem(response))) ?? "The server is not responding. Nothing was changed.");
  const count = every()?.checked ? "All names" : gone.length === 1 ? gone[0] : `${gone.length} names`;
  await load(location.pathname + location.search);
  await whole;
  stand(rows().find((it) => nameOf(it) === stays));
  offer(response, button.textContent === "Hide" ? `Hidden: ${count}` : `Shown again: ${count}`);
}

/** Goes to a field of the form of selected names; without a selection, `row` is selected. */
function fill(id, row) {
  const field = list().querySelector(`#bulk #${id}`);
  if (!field) return say("Log in to tag names and set bids.");
  if (picked().length === 0) row?.querySelector(".sel input").click();
  if (picked().length > 0) field.focus();
}

/** Selects the rows from the box that was changed last up to `row`. */
function selectTo(row) {
  const box = row?.querySelector(".sel input");
  const all = boxes();
  const [from, to] = [all.indexOf(last), all.indexOf(box)].sort((a, b) => a - b);
  if (!box) return;
  all.slice(Math.max(from, 0), to + 1).forEach((other) => { other.checked = true; });
  last = box;
  selected();
}

function selectEvery() {
  if (every()?.disabled) return say(every().closest("label").textContent);
  (every() ?? list().querySelector("#all"))?.click();
}

function saveSearch() {
  const form = document.querySelector(".side .save");
  if (!form) return say("Log in to save searches.");
  form.open = true;
  const field = form.querySelector("[name=name]");
  field.focus();
  field.select();
}

// ---- Keyboard

const ROW = "#list tbody tr:has(> .sel)";
const rows = () => [...document.querySelectorAll(ROW)];
const nameOf = (row) => row.querySelector(".sel input").value;
const here = () => document.activeElement?.closest?.(ROW) ?? list().querySelector("tr.here");

function move(step) {
  const all = rows();
  const at = all.indexOf(here());
  stand(all[at < 0 ? (step > 0 ? 0 : all.length - 1) : at + step]);
}

/** Makes a row the one that keys are about. */
function stand(row) {
  if (!row) return;
  list().querySelector("tr.here")?.classList.remove("here");
  row.classList.add("here");
  row.tabIndex = -1;
  row.focus({ preventScroll: true });
  row.scrollIntoView({ block: "nearest" });
}

/** Opens the parts of a score below their row, or closes them. */
async function explain(row) {
  if (!row) return;
  if (row.nextElementSibling?.matches(".parts-row")) return row.nextElementSibling.remove();
  const response = await fetch(`${BASE}domain/${nameOf(row)}`, { headers: { "X-Fragment": "parts" } }).catch(() => null);
  if (!response?.ok) return say("The server is not responding.");
  const parts = document.createElement("tr");
  parts.className = "parts-row";
  const cell = parts.insertCell();
  cell.colSpan = list().querySelector(".drops thead tr").cells.length;
  cell.append(Object.assign(document.createElement("p"), { textContent: row.querySelector(".why")?.textContent }));
  cell.insertAdjacentHTML("beforeend", await response.text());
  row.after(parts);
  row.scrollIntoView({ block: "nearest" });
}

document.addEventListener("click", (event) => {
  if (event.target.closest("td.why")) explain(event.target.closest("tr"));
});

// An explanation that is cut has a tooltip.
document.addEventListener("pointerover", (event) => {
  const cell = event.target.closest("td.why");
  if (cell && cell.scrollWidth > cell.clientWidth) cell.title = cell.textContent;
});

// ---- Touch

const watch = (row) => row?.querySelector(".sel :is(button, a)").click();

onRows(ROW, {
  isOff: () => list().querySelector("#picking").checked,
  left: hide,
  right: watch,
  hold(row) {
    list().querySelector("#picking").checked = true;
    row.querySelector(".sel input").click();
  },
});

const turn = (rel) => {
  const link = list().querySelector(`.pager a[rel=${rel}]`);
  if (link) follow(link);
};

const KEYS = [
  ["j  k", "Next and previous name, on the page of a name too"],
  ["x", "Select"],
  ["X", "Select up to here"],
  ["A", "Select all names of the search"],
  ["e", "Why this score"],
  ["Enter  o", "Open the name"],
  ["w", "Watch or stop watching"],
  ["t", "Tag the selected names, or this one"],
  ["m", "Set the maximum bid for them"],
  ["h", "Hide them"],
  ["c", "Copy them"],
  ["s", "Save this search"],
  ["a", "Alert me about these"],
  ["n  p", "Next and previous page"],
  ["g d  g w  g a  g p", "Drops, watchlist, alerts, portfolio"],
  ["w  c  t  m  b  r", "On the page of a name: watch, copy, tags, bid, backorder links, check now"],
  ["/", "Go to the query bar"],
  ["Esc", "Leave the query bar"],
  ["?", "Show this help"],
];
const keys = document.createElement("dialog");
keys.id = "keys";
keys.setAttribute("aria-labelledby", "keys-title");
keys.innerHTML = `<h2 id="keys-title">Keyboard shortcuts</h2>
  <dl class="facts">${KEYS.map(([all, what]) => `<dt>${all.split("  ").map((key) => `<kbd>${key}</kbd>`).join(" ")}</dt><dd>${what}</dd>`).join("")}</dl>
  <p><label><input id="keys-on" type="checkbox"> Enable single-key shortcuts</label></p>
  <form method="dialog"><button>Close</button></form>`;
document.querySelector("main").append(keys);
const switched = keys.querySelector("#keys-on");
const stored = () => { try { return localStorage.getItem("single-keys"); } catch { return null; } };
switched.checked = stored() !== "off";
switched.addEventListener("change", () => {
  try { localStorage.setItem("single-keys", switched.checked ? "on" : "off"); } catch { /* not stored */ }
});

const open = (row) => row?.querySelector("th a").click();
const actions = {
  j: () => move(1),
  k: () => move(-1),
  n: () => turn("next"),
  p: () => turn("prev"),
  o: open,
  e: explain,
  x: (row) => row?.querySelector(".sel input").click(),
  w: watch,
  X: selectTo,
  A: selectEvery,
  t: (row) => fill("tags", row),
  m: (row) => fill("bid", row),
  h: hide,
  c: copySelected,
  s: saveSearch,
  a: () => list().querySelector(`.tools a[href^='${BASE}alerts/new']`)?.click(),
  "?": () => keys.showModal(),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || keys.open) return;
  if (event.key === "Escape" && event.target.id === "find") return event.target.blur();
  if (!switched.checked || event.target.matches("input:not([type=checkbox]), textarea, select")) return;
  if (event.key === "Enter" && event.target.matches(ROW)) open(event.target);
  else if (Object.hasOwn(actions, event.key)) {
    event.preventDefault();
    actions[event.key](here());
  }
});

document.addEventListener("click", (event) => { if (event.target.closest("#show-keys")) keys.showModal(); });

// What the form before this page did is told once.
if (new URLSearchParams(location.search).has("done")) showsNow(frame().dataset.path);

watchInPlace();
selected();
whole = loadOthers();
