// The dossier: votes are counted without leaving the page, names are watched in place.

import { say } from "./base.js";
import { watchInPlace } from "./names.js";

document.addEventListener("submit", async (event) => {
  if (!event.target.matches("form[data-votes]") || !event.submitter) return;
  event.preventDefault();
  const body = new URLSearchParams(new FormData(event.target, event.submitter));
  const pressed = [...event.target.elements].indexOf(event.submitter);
  try {
    const response = await fetch(event.target.action, { method: "POST", body, headers: { "X-Fragment": "1" } });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const fresh = page.getElementById("votes");
    if (response.ok && fresh) {
      document.getElementById("votes").replaceWith(fresh);
      fresh.querySelector("form")?.elements[pressed]?.focus();
      say(body.get("vote") === "none" ? "Your vote is taken back" : "Your vote is counted");
    } else if (new URL(response.url).pathname === "/login") {
      location.assign(`/login?${new URLSearchParams({ next: location.pathname })}`);
    } else {
      say(page.querySelector(".problem")?.textContent.trim() ?? "That did not work; nothing has been changed");
    }
  } catch {
    say("The server does not answer; nothing has been changed");
  }
});

watchInPlace();
