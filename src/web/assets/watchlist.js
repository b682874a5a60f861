// The watchlist: how many names are chosen is said on the button, and one box chooses all of the page.

const form = document.querySelector("form#watched");

if (form) {
  const boxes = [...form.querySelectorAll("input[name=domain]")];
  const button = form.querySelector(".below button");
  const all = document.createElement("input");
  all.type = "checkbox";
  all.setAttribute("aria-label", "Choose all names of this page");

  const tell = () => {
    const chosen = boxes.filter((box) => box.checked).length;
    button.disabled = chosen === 0;
    button.textContent = chosen === 0 ? "Remove chosen names" : chosen === 1 ? "Remove 1 name" : `Remove ${chosen} names`;
    all.checked = chosen > 0 && chosen === boxes.length;
    all.indeterminate = chosen > 0 && chosen < boxes.length;
  };
  form.querySelector("th.check").replaceChildren(all);
  all.addEventListener("change", () => {
    boxes.forEach((box) => { box.checked = all.checked; });
    tell();
  });
  form.addEventListener("change", tell);
  tell();
}
