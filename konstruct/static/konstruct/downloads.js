/* A link with data-download is followed when it appears: the file of an export is ready. htmx:load
   is sent for the page, and for each part of it that is replaced. */

"use strict";

document.addEventListener("htmx:load", (event) => {
  const link = event.detail.elt.querySelector("a[data-download]");
  if (link) {
    location.assign(link.href);
  }
});
