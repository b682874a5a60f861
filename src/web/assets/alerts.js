// The editor of an alert rule shows what it would match while one types, and offers another line when
// the last one is filled. The page of a rule follows messages on their way.

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
    const answer = await fetch("/alerts/preview", {
      method: "POST",
      body: new URLSearchParams(new FormData(form)),
      headers: { "X-Fragment": "1" },
      signal: asked.signal,
      redirect: "error",
    });
    if (answer.headers.get("content-type")?.startsWith("text/html") && (answer.ok || answer.status === 400)) {
      preview.innerHTML = await answer.text();
    }
  } catch {
    // A newer question, or no network: what is shown stays.
  }
}

/** Another empty line of this kind, when the last one has been filled. */
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
  // It is shown as one types: the button is for those without scripts.
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
  // What somebody reads or has the focus in is not taken away.
  if (document.hidden || shown.contains(document.activeElement) || shown.querySelector("details[open]")) {
    setTimeout(follow, FOLLOW_MS);
    return;
  }
  try {
    const answer = await fetch(location.pathname, { headers: { "X-Fragment": "1" }, redirect: "error" });
    if (!answer.ok) return;
    const now = document.createRange().createContextualFragment(await answer.text());
    shown.replaceWith(now);
  } catch {
    // Tried again.
  }
  setTimeout(follow, FOLLOW_MS);
}

setTimeout(follow, FOLLOW_MS);
