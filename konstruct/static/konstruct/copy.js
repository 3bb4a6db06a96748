/* A button with data-copy="ID" copies the text of the element with this id, and one with
   data-text="TEXT" copies this text. */

"use strict";

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy], button[data-text]");
  if (!button) {
    return;
  }
  const source = document.getElementById(button.dataset.copy) || button;
  const label = button.textContent;
  try {
    // Browsers have a clipboard on HTTPS and localhost alone.
    await navigator.clipboard.writeText(button.dataset.text ?? source.value ?? source.textContent);
    button.textContent = translated("Copied");
  } catch {
    getSelection().selectAllChildren(source);
    button.textContent = translated("Selected: press Ctrl+C");
  }
  setTimeout(() => { button.textContent = label; }, 3000);
});
