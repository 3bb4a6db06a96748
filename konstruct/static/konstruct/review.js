/* Keys of reviews. A form, a button or a <details> names its key in data-key: a form or a button
   with data-now is sent, another form gets the focus in its first field (Enter sends it), and a
   <details> is opened. */

"use strict";

document.addEventListener("keydown", (event) => {
  const review = document.querySelector("[data-review]");
  const isTyping = event.target.closest("input:not([type=hidden]), textarea, select");
  if (!review || isTyping || event.ctrlKey || event.metaKey || event.altKey || event.repeat) {
    return;
  }
  const targets = [...review.querySelectorAll("[data-key]")];
  const target = targets.find((element) => element.dataset.key === event.key);
  if (!target) {
    return;
  }
  event.preventDefault();
  if (target.matches("[data-now]")) {
    target.matches("button") ? target.click() : target.requestSubmit();
  } else if (target.matches("form")) {
    target.querySelector("input:not([type=hidden])").focus();
  } else {
    target.open = true;
    target.querySelector("textarea").focus();
  }
});
