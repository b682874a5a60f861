// Gestures on the rows of a list: a swipe to a side, and a long press. Each of them has a button too.

const FAR = 80; // Pixels of a swipe.
const STILL = 10; // Pixels that a finger may move while it presses.
const HELD_MS = 500;

/** Calls `left`, `right` or `hold` with a row that a finger swiped or held, unless `isOff`. */
export function onRows(selector, { isOff, left, right, hold }) {
  let grip; // The row below the finger, and how far it was moved.
  let held = false; // After a long press, the click of the lifted finger is ignored.

  const letGo = () => {
    clearTimeout(grip?.timer);
    grip?.row.classList.remove("swiped", "left", "far");
    grip?.row.style.removeProperty("--swipe");
    grip = undefined;
  };
  document.addEventListener("pointerdown", (event) => {
    letGo();
    held = false;
    const row = event.pointerType === "touch" && event.isPrimary && !isOff() && event.target.closest(selector);
    if (!row) return;
    const timer = setTimeout(() => {
      letGo();
      hold(row);
      held = true;
    }, HELD_MS);
    grip = { row, timer, from: [event.clientX, event.clientY], by: 0 };
  });
  document.addEventListener("pointermove", (event) => {
    if (!grip || !event.isPrimary) return;
    const [x, y] = [event.clientX - grip.from[0], event.clientY - grip.from[1]];
    if (Math.hypot(x, y) > STILL) clearTimeout(grip.timer);
    if (!grip.by && Math.abs(x) <= STILL) return;
    grip.by = x;
    grip.row.style.setProperty("--swipe", `${x}px`);
    grip.row.classList.add("swiped");
    grip.row.classList.toggle("left", x < 0);
    grip.row.classList.toggle("far", Math.abs(x) >= FAR);
  });
  document.addEventListener("pointerup", () => {
    if (!grip) return;
    const { row, by } = grip;
    letGo();
    if (by <= -FAR) left(row);
    else if (by >= FAR) right(row);
  });
  // The browser scrolls.
  document.addEventListener("pointercancel", letGo);
  document.addEventListener("contextmenu", (event) => { if (grip || held) event.preventDefault(); });
  document.addEventListener("click", (event) => {
    if (!held) return;
    held = false;
    event.preventDefault();
    event.stopPropagation();
  }, { capture: true });
}
