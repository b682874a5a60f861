// Watchlist: the form for selected names says how many there are, a checkbox selects the whole page, and a
// file is read into the field.

const form = document.querySelector("form#watched");

if (form?.querySelector(".bulk")) {
  const boxes = [...form.querySelectorAll("input[name=domain]")];
  const picked = form.querySelector(".bulk .picked");
  const all = form.querySelector("#all");

  const update = () => {
    const selected = boxes.filter((box) => box.checked).length;
    picked.textContent = `${selected} selected`;
    all.checked = selected > 0 && selected === boxes.length;
    all.indeterminate = selected > 0 && selected < boxes.length;
  };
  const select = (isSelected) => {
    boxes.forEach((box) => { box.checked = isSelected; });
    update();
  };
  all.addEventListener("change", () => select(all.checked));
  form.querySelector("#clear").addEventListener("click", () => select(false));
  form.addEventListener("change", update);
  update();
}

document.querySelector("#file")?.addEventListener("change", async ({ target }) => {
  const [file] = target.files;
  if (file) document.querySelector("#names").value = await file.text();
});
