/* Keys of the review: a approves, r goes to the reason of a rejection (Enter rejects), e edits. */

"use strict";

document.addEventListener("keydown", (event) => {
  const review = document.querySelector("[data-review]");
  const isTyping = event.target.closest("input:not([type=hidden]), textarea, select");
  if (!review || isTyping || event.ctrlKey || event.metaKey || event.altKey || event.repeat) {
    return;
  }
  const target = ["a", "r", "e"].includes(event.key)
    ? review.querySelector(`[data-key="${event.key}"]`)
    : null;
  if (!target) {
    return;
  }
  event.preventDefault();
  if (event.key === "a") {
    target.requestSubmit();
  } else if (event.key === "r") {
    target.querySelector("input:not([type=hidden])").focus();
  } else {
    target.open = true;
    target.querySelector("textarea").focus();
  }
});
