// Watchlist: the button shows the number of selected names, a checkbox selects the whole page, and a
// file is read into the field.

const form = document.querySelector("form#watched");

if (form?.querySelector(".bulk")) {
  const boxes = [...form.querySelectorAll("input[name=domain]")];
  const button = form.querySelector(".bulk .danger");
  const all = form.querySelector("#all");

  const update = () => {
    const selected = boxes.filter((box) => box.checked).length;
    button.disabled = save.disabled = selected === 0;
    button.textContent = selected === 0 ? "Remove selected" : selected === 1 ? "Remove 1 name" : `Remove ${selected} names`;
    all.checked = selected > 0 && selected === boxes.length;
    all.indeterminate = selected > 0 && selected < boxes.length;
  };
  const save = form.querySelector(".bulk [formaction]");
  all.addEventListener("change", () => {
    boxes.forEach((box) => { box.checked = all.checked; });
    update();
  });
  form.addEventListener("change", update);
  update();
}

document.querySelector("#file")?.addEventListener("change", async ({ target }) => {
  const [file] = target.files;
  if (file) document.querySelector("#names").value = await file.text();
});
