// Updates the preview of the rule editor on input, adds an empty line when the last one is filled, and
// refreshes pending deliveries.

import { BASE } from "./base.js";

const form = document.querySelector("form#rule");
const preview = document.querySelector("#preview");
const PAUSE_MS = 250;
const FOLLOW_MS = 3000;

let timer;
let asked;

async function look() {
  asked?.abort();
  asked = new AbortController();
  try {
    const response = await fetch(`${BASE}alerts/preview`, {
      method: "POST",
      body: new URLSearchParams(new FormData(form)),
      headers: { "X-Fragment": "1" },
      signal: asked.signal,
      redirect: "error",
    });
    if (response.headers.get("content-type")?.startsWith("text/html") && (response.ok || response.status === 400)) {
      preview.innerHTML = await response.text();
    }
  } catch {
    // Aborted by a newer request, or no network: the preview stays as it is.
  }
}

/** Adds an empty line of this kind once the last one is filled. */
function offerLine(input) {
  const lines = input.closest(".lines");
  const fields = lines ? [...lines.querySelectorAll(".field")] : [];
  const last = fields.at(-1)?.querySelector("input");
  if (last !== input || !input.value || fields.length >= 5) return;
  const field = fields.at(-1).cloneNode(true);
  field.querySelectorAll(".help, .error").forEach((part) => part.remove());
  const next = field.querySelector("input");
  const label = field.querySelector("label");
  const [kind] = input.id.split("-");
  next.id = `${kind}-${fields.length}`;
  next.value = "";
  next.removeAttribute("aria-describedby");
  next.removeAttribute("aria-invalid");
  label.htmlFor = next.id;
  label.textContent = `${label.textContent.replace(/ \d+$/, "")} ${fields.length + 1}`;
  lines.append(field);
}

if (form && preview) {
  // The preview updates on input, so the button is only needed without scripts.
  document.querySelector("#look").hidden = true;
  form.addEventListener("input", (event) => {
    if (event.target.name === "webhook" || event.target.name === "chat") offerLine(event.target);
    clearTimeout(timer);
    timer = setTimeout(look, PAUSE_MS);
  });
}

async function follow() {
  const shown = document.querySelector("#deliveries");
  if (!shown?.hasAttribute("data-pending")) return;
  // Do not replace content that has the focus or is expanded.
  if (document.hidden || shown.contains(document.activeElement) || shown.querySelector("details[open]")) {
    setTimeout(follow, FOLLOW_MS);
    return;
  }
  try {
    const response = await fetch(location.pathname, { headers: { "X-Fragment": "1" }, redirect: "error" });
    if (!response.ok) return;
    const now = document.createRange().createContextualFragment(await response.text());
    shown.replaceWith(now);
  } catch {
    // Retried below.
  }
  setTimeout(follow, FOLLOW_MS);
}

setTimeout(follow, FOLLOW_MS);
