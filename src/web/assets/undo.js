// An offer to undo what a script has just done, and the selection and place of a list, which survive the
// page that follows an action.

import { BASE, say } from "./base.js";

/** Shows a message with a button that undoes the action of `response`, for as long as people look for it. */
export function offer(response, message) {
  const id = response.headers.get("Undo");
  document.querySelector(".toast")?.remove();
  if (!id) return say(message);
  const toast = document.createElement("div");
  toast.className = "spoken toast";
  toast.setAttribute("role", "status");
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Undo" });
  toast.append(message, " ", button);
  document.body.append(toast);
  const gone = setTimeout(() => toast.remove(), 20_000);
  button.addEventListener("click", async () => {
    clearTimeout(gone);
    button.disabled = true;
    const body = new URLSearchParams({ id });
    const undone = await fetch(`${BASE}undo`, { method: "POST", body, headers: { "X-Fragment": "1" } }).catch(() => null);
    toast.remove();
    if (!undone?.ok) return say("Nothing was undone. An action can be undone for ten minutes.");
    keep();
    location.reload();
  });
}

const KEPT_MS = 600_000;
const key = () => `kept ${location.pathname}`;
const boxes = () => [...document.querySelectorAll("form#watched input[name=domain], #list tbody .sel input")];

/** Keeps the selected names and the place for the page that comes next. */
function keep() {
  const names = boxes().filter((box) => box.checked).map((box) => box.value);
  try { sessionStorage.setItem(key(), JSON.stringify({ at: Date.now(), y: scrollY, names })); } catch { /* not kept */ }
}

document.addEventListener("submit", ({ target, defaultPrevented }) => {
  if (!defaultPrevented && (target.matches("#bulk, #watched") || target.closest(".notice"))) keep();
});

/** Selects the kept names that are there. Further rows of a list arrive later. */
function restore() {
  let kept;
  try {
    kept = JSON.parse(sessionStorage.getItem(key()));
    sessionStorage.removeItem(key());
  } catch { /* nothing is kept */ }
  if (!kept || Date.now() - kept.at > KEPT_MS) return;
  const names = new Set(kept.names);
  const select = () => {
    for (const box of boxes()) if (names.delete(box.value) && !box.checked) box.click();
    scrollTo({ top: kept.y, behavior: "instant" });
    if (names.size === 0 && scrollY >= kept.y - 1) later.disconnect();
  };
  const later = new MutationObserver(select);
  const rows = document.querySelector("#list .drops");
  if (rows) later.observe(rows, { childList: true });
  select();
  setTimeout(() => later.disconnect(), 5_000);
}

restore();
