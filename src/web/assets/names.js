// Watch buttons on every page that lists names.

import { BASE, below, say } from "./base.js";
import { offer } from "./undo.js";

/** Submits the buttons of `form#watch` without reloading the page. */
export function watchInPlace() {
  document.addEventListener("submit", async (event) => {
    if (!event.target.matches("form[data-watch]") || !event.submitter) return;
    event.preventDefault();
    const button = event.submitter;
    const stops = button.classList.contains("on");
    const body = new URLSearchParams(new FormData(event.target, button));
    button.setAttribute("aria-busy", "true");
    try {
      const response = await fetch(BASE + (stops ? "unwatch" : "watch"), { method: "POST", body, headers: { "X-Fragment": "1" } });
      if (response.redirected && new URL(response.url).pathname === `${BASE}login`) {
        location.assign(`${BASE}login?${new URLSearchParams({ next: below(location.pathname) + location.search })}`);
      } else if (response.ok) {
        turn(button, !stops);
        offer(response, `${stops ? "No longer watching" : "Watching"} ${button.value}`);
      } else {
        say((await problem(response)) ?? "Something went wrong. Nothing was changed.");
      }
    } catch {
      say("The server is not responding. Nothing was changed.");
    } finally {
      button.removeAttribute("aria-busy");
    }
  });
}

/** Updates a watch button. */
function turn(button, watched) {
  const name = button.value;
  button.classList.toggle("on", watched);
  // A star in a list, a word elsewhere.
  const words = button.closest(".sel") ? ["★", "☆"] : ["Watching", "Watch"];
  button.textContent = words[watched ? 0 : 1];
  button.setAttribute("aria-label", watched ? `Watching ${name}: stop` : `Watch ${name}`);
  if (watched) button.setAttribute("formaction", `${BASE}unwatch`);
  else button.removeAttribute("formaction");
}

/** Message of an error page. */
export async function problem(response) {
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  return page.querySelector(".problem, .error")?.textContent.trim();
}
