// Buttons that show or hide a password.

for (const button of document.querySelectorAll("[data-reveal]")) {
  const field = document.getElementById(button.dataset.reveal);
  const label = document.querySelector(`label[for="${field.id}"]`).textContent.toLowerCase();
  button.setAttribute("aria-label", `Show the ${label}`);
  button.hidden = false;
  button.addEventListener("click", () => {
    const shown = field.type === "text";
    field.type = shown ? "password" : "text";
    button.setAttribute("aria-pressed", String(!shown));
    button.textContent = shown ? "Show" : "Hide";
  });
}
