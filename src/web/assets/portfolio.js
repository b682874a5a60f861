// Applies the status filter at once, and shows the sale fields only for the status `sold`.

const filter = document.querySelector("form#filter");
filter?.addEventListener("change", (event) => {
  // Dates are typed digit by digit, so they wait for the button.
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
