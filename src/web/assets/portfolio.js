// The filter of claims applies as it is chosen, and the form of a claim has a sale only where its status
// is `sold`.

const filter = document.querySelector("form#filter");
filter?.addEventListener("change", (event) => {
  // A day is typed digit by digit: it waits for the button.
  if (event.target.type === "checkbox") filter.requestSubmit();
});

const claim = document.querySelector("form#claim");
const sale = document.querySelector("#sale");
if (claim && sale) {
  const status = claim.querySelector("#status");
  const show = () => {
    const isSold = status.value === "sold";
    sale.hidden = !isSold;
    sale.disabled = !isSold;
  };
  status.addEventListener("change", show);
  show();
}
