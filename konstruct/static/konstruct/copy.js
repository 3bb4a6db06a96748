/* A button with data-copy="ID" copies the text of the element with this id. */

"use strict";

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  if (!button) {
    return;
  }
  const source = document.getElementById(button.dataset.copy);
  const label = button.textContent;
  try {
    // Browsers have a clipboard on HTTPS and localhost alone.
    await navigator.clipboard.writeText(source.value ?? source.textContent);
    button.textContent = translated("Copied");
  } catch {
    getSelection().selectAllChildren(source);
    button.textContent = translated("Selected: press Ctrl+C");
  }
  setTimeout(() => { button.textContent = label; }, 3000);
});
