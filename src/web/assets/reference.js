// Inserts the API key and the server URL into the examples, and copies them. The key is not sent or
// stored.
import { BASE, say } from "./base.js";

const field = document.getElementById("key");
const examples = [...document.querySelectorAll("[data-example]")].map((code) => ({ code, text: code.textContent }));

const filled = (text, key) => text.replaceAll("$DROPDEX_URL", location.origin + BASE.slice(0, -1)).replaceAll("$DROPDEX_KEY", key || "$DROPDEX_KEY");

function show() {
  const key = field.value.trim();
  const isKey = /^ddx_[0-9a-f]{48}$/.test(key);
  field.setAttribute("aria-invalid", String(key !== "" && !isKey));
  for (const { code, text } of examples) code.textContent = filled(text, isKey ? key : "");
}

if (field) {
  field.addEventListener("input", show);
  show();
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy-example]");
  if (!button) return;
  try {
    await navigator.clipboard.writeText(button.parentElement.querySelector("code").textContent);
    say("Copied");
  } catch {
    say("Copying is blocked by the browser. Select the text and copy it.");
  }
});
