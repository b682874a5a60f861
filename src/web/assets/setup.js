// Buttons that tick all public lists, or none.

const lists = document.querySelector(".lists");
const quick = document.createElement("p");
quick.className = "quick";
for (const [word, ticked] of [["All public", true], ["None, I upload my own", false]]) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "quiet";
  button.textContent = word;
  button.addEventListener("click", () => {
    for (const box of lists.querySelectorAll(":scope > label [name=source]")) box.checked = ticked;
  });
  quick.append(button);
}
lists.querySelector("legend").after(quick);
