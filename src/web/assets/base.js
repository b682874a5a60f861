// Enhancements of every page: `/` focuses the search field, `data-copy` buttons copy, and `data-confirm`
// forms ask for confirmation.

/** The path of the server on its host, with a slash at its end: scripts are at `assets/VERSION/`. */
export const BASE = new URL("../../", import.meta.url).pathname;
/** A path of this page or of a link as the server knows it, which is reached below `BASE`. */
export const below = (path) => path.slice(BASE.length - 1);

const here = () => location.pathname + location.search;
let address = here(); // Of what the page shows.

/** Sets the address of the page to `path`, which it shows now. */
export function showsNow(path, { push = false } = {}) {
  if (push) history.pushState(null, "", path);
  else history.replaceState(null, "", path);
  address = here();
}

/** Calls `load` when the history leads to another address. Links to a part of the page fire `popstate` too. */
export function onAddress(load) {
  addEventListener("popstate", () => {
    if (here() === address) return;
    address = here();
    load(address);
  });
}

const isTyping = (element) => element.matches?.("input:not([type=checkbox]):not([type=radio]):not([type=range]), textarea, select, [contenteditable]");

document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  const field = document.querySelector("[data-main-search]") ?? document.querySelector("#find");
  if (!field) return;
  event.preventDefault();
  field.focus();
  field.select();
});

// `g`, then the letter of a page. Single keys can be turned off in the list of shortcuts.
const PAGES = { d: "", w: "watchlist", a: "alerts", p: "portfolio" };
const singleKeys = () => { try { return localStorage.getItem("single-keys") !== "off"; } catch { return true; } };
/** Whether a key is a shortcut and not part of a text. */
export const isShortcut = (event) => !event.ctrlKey && !event.metaKey && !event.altKey && !isTyping(event.target) && singleKeys();
let goes = 0;
document.addEventListener("keydown", (event) => {
  if (!isShortcut(event)) return;
  const page = event.timeStamp < goes ? PAGES[event.key] : undefined;
  goes = event.key === "g" ? event.timeStamp + 2000 : 0;
  if (page === undefined) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  location.assign(BASE + page);
});

/** Copies a text and says so. */
export async function copy(text, said) {
  try {
    await navigator.clipboard.writeText(text);
    say(said);
  } catch {
    say("Copying is blocked by the browser. Select the text and copy it.");
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const text = button.dataset.copy || document.getElementById(button.dataset.copyFrom)?.textContent || "";
  copy(text, `Copied ${text.length > 60 ? "to the clipboard" : text}`);
});

// Shares the address of the page, or copies it where the browser cannot share.
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-share]");
  if (!button) return;
  if (!navigator.share) return copy(location.href, "Copied the address of this page");
  navigator.share({ title: button.dataset.share, url: location.href }).catch((error) => {
    if (error.name !== "AbortError") copy(location.href, "Copied the address of this page");
  });
});

// Menus close on Escape and on a click elsewhere.
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
});
document.addEventListener("keydown", (event) => {
  const menu = event.key === "Escape" && document.querySelector("details.menu[open]");
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
});

document.addEventListener("submit", (event) => {
  const question = event.target.dataset?.confirm;
  if (question && !window.confirm(question)) event.preventDefault();
});

// A menu closes when one looks elsewhere.
const menus = (but = null) => [...document.querySelectorAll("details.menu[open]")].filter((menu) => !menu.contains(but));
document.addEventListener("click", ({ target }) => menus(target).forEach((menu) => { menu.open = false; }));
document.addEventListener("keydown", ({ key }) => {
  if (key !== "Escape") return;
  for (const menu of menus()) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});

// Scrolls the current entry of a wide navigation into view.
for (const here of document.querySelectorAll("header.site nav [aria-current], .tabs [aria-current]")) {
  const list = here.closest("ul");
  if (list.scrollWidth > list.clientWidth) list.scrollLeft = here.offsetLeft - list.offsetLeft - (list.clientWidth - here.offsetWidth) / 2;
}

let spoken;
/** Shows a message for a few seconds and announces it to screen readers. */
export function say(text) {
  if (!spoken) {
    spoken = document.createElement("p");
    spoken.className = "spoken";
    spoken.setAttribute("role", "status");
    document.body.append(spoken);
  }
  spoken.textContent = text;
  spoken.hidden = false;
  clearTimeout(say.timer);
  say.timer = setTimeout(() => { spoken.hidden = true; }, 4000);
}

const LIST = "list";

// Keeps the names of a table when one of them is opened: the page of a name leads on to the next.
document.addEventListener("click", (event) => {
  const table = event.target.closest(`a[href^='${BASE}domain/']`)?.closest("table");
  if (!table) return;
  const links = [...table.querySelectorAll(`a[href^='${BASE}domain/']`)];
  const paths = [...new Set(links.map((link) => link.pathname))];
  try {
    sessionStorage.setItem(LIST, JSON.stringify({ paths, from: location.pathname + location.search }));
  } catch { /* not stored */ }
});

/** The list that this page was opened from: its address, and the pages before and after this one. */
export function openedFrom() {
  try {
    const { paths, from } = JSON.parse(sessionStorage.getItem(LIST));
    const at = paths.indexOf(location.pathname);
    return at < 0 ? null : { from, before: paths[at - 1], after: paths[at + 1], place: `${at + 1} of ${paths.length}` };
  } catch {
    return null;
  }
}
