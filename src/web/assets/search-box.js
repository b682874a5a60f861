// The search field of every page: the best names stand below it as one types (a combobox of WAI-ARIA).
// One question is under way at a time and the latest wins. Without this file the field is a form.

const field = document.querySelector("#find");
const box = field.form;
const KEPT = 50;

const list = Object.assign(document.createElement("ul"), { id: "found", hidden: true });
list.setAttribute("role", "listbox");
list.setAttribute("aria-label", "Names");
box.append(list);
for (const [name, value] of Object.entries({ role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": "found" })) {
  field.setAttribute(name, value);
}

const answers = new Map(); // What was answered to the last texts, newest last.
let asking; // The question under way.

const options = () => [...list.children];
const chosen = () => list.querySelector("[aria-selected=true]");

async function ask(text) {
  asking?.abort();
  if (!text) return close();
  if (answers.has(text)) return show(answers.get(text));
  const question = (asking = new AbortController());
  try {
    const response = await fetch(`/search?${new URLSearchParams({ q: text })}`, { headers: { "X-Fragment": "options" }, signal: question.signal });
    const html = response.ok ? await response.text() : undefined;
    if (question.signal.aborted) return;
    // Too much to do at this moment, perhaps: the next key asks again.
    if (html === undefined) return close();
    answers.set(text, html);
    if (answers.size > KEPT) answers.delete(answers.keys().next().value);
    show(html);
  } catch (error) {
    if (error.name !== "AbortError") close();
  }
}

function show(html) {
  const page = new DOMParser().parseFromString(html, "text/html");
  list.replaceChildren(...page.body.children);
  const open = list.children.length > 0 && document.activeElement === field;
  list.hidden = !open;
  field.setAttribute("aria-expanded", String(open));
  field.removeAttribute("aria-activedescendant");
}

function close() {
  list.hidden = true;
  field.setAttribute("aria-expanded", "false");
  field.removeAttribute("aria-activedescendant");
  chosen()?.removeAttribute("aria-selected");
}

function choose(option) {
  chosen()?.removeAttribute("aria-selected");
  if (!option) return field.removeAttribute("aria-activedescendant");
  option.setAttribute("aria-selected", "true");
  option.scrollIntoView({ block: "nearest" });
  field.setAttribute("aria-activedescendant", option.id);
}

function step(by) {
  const all = options();
  const at = all.indexOf(chosen());
  // Beyond either end is the field itself.
  const next = at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by;
  choose(all[next]);
}

const go = (option) => location.assign(option.dataset.href);

field.addEventListener("input", () => ask(field.value.trim()));
field.addEventListener("focus", () => { if (field.value.trim()) ask(field.value.trim()); });
// Who comes back at once finds the list open.
field.addEventListener("blur", () => setTimeout(() => { if (document.activeElement !== field) close(); }, 100));
field.addEventListener("keydown", (event) => {
  if (event.isComposing) return;
  const open = !list.hidden;
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    if (open) step(event.key === "ArrowDown" ? 1 : -1);
    else ask(field.value.trim());
  } else if (event.key === "Escape" && open) {
    event.preventDefault();
    close();
  } else if (event.key === "Enter" && open && chosen()) {
    event.preventDefault();
    go(chosen());
  }
});
// The field keeps the focus while an option is pressed.
list.addEventListener("pointerdown", (event) => event.preventDefault());
list.addEventListener("click", (event) => {
  const option = event.target.closest("[role=option]");
  if (option) go(option);
});
