/* Makes unfold's pages usable by keyboard and with a screen reader.

Unfold draws buttons as text that can be clicked, and icons as words of a font. Here the former become
buttons, the latter are hidden from screen readers, and the parts of a page become landmarks. */

"use strict";

/* What can be clicked and is no control of HTML. The backdrop of the filters closes by Escape. */
const CLICKED =
  ":is([x-on\\:click], [x-on\\:click\\.prevent]):not(a[href], button, input, label, #changelist-filter-close)";
/* Names of controls that show an icon alone, by a selector. */
const NAMES = {
  "span[x-on\\:click*='sidebarDesktopOpen ='], span[x-on\\:click*='sidebarMobileOpen =']":
    "Show or hide the menu",
  "#searchbar-submit, #command-submit": "Search",
  "#searchbar": "Search in this list",
  "#search-input-command": "Search everything",
  "[x-on\\:click*='opencommand']": "Search everything",
  ".action-checkbox input, .action-checkbox-column input": "Choose",
  "a[x-on\\:click*='showActions']": "Actions",
  "a[x-on\\:click*='openTheme']": "Light, dark, or as the system",
  "[x-on\\:click*='openRelatedWidgetWrapper']": "More for this field",
  "#nav-sidebar a[href='/admin/']:not(#site-name a)": "Home",
};
/* Roles, and levels of headings that skip one. */
const ATTRIBUTES = {
  "#main": { role: "main", tabindex: "-1" },
  "body.login #page": { role: "main" },
  "#main :is(input[type='text'], input[type='search'], input:not([type]), textarea):not([dir])": { dir: "auto" },
  "[x-data='searchCommand()'] > div": { role: "dialog", "aria-modal": "true", "aria-label": "Search everything" },
  "#nav-sidebar-inner": { "aria-label": "Menu" },
  "nav[x-show='openUserLinks']": { "aria-label": "Account" },
  "#changelist-filter": { role: "region", "aria-label": "Filters" },
  "#changelist-filter h3, #command-history h3": { role: "heading", "aria-level": "2" },
  "#command-results, #command-results-note": { role: "status" },
  ".help-tooltip[aria-label]": { role: "img" },
  /* Simplebar names each of its boxes alike. */
  "#nav-sidebar .simplebar-content-wrapper": { role: "none" },
  "#changelist-filter .simplebar-content-wrapper": { "aria-label": "Choices of the filters" },
};

/* A text of these scripts in the language of the page: konstruct/texts_of_scripts.html has them. */
function translated(english) {
  const texts = document.getElementById("k-texts")?.content.children ?? [];
  return [...texts].find((text) => text.dataset.en === english)?.textContent ?? english;
}

function forEachMatch(root, selector, change) {
  if (root.matches?.(selector)) change(root);
  root.querySelectorAll(selector).forEach(change);
}

function makeAccessible(root) {
  forEachMatch(root, CLICKED, (element) => {
    element.setAttribute("role", "button");
    element.setAttribute("tabindex", "0");
  });
  forEachMatch(root, ".material-symbols-outlined:not([role='button'])", (icon) => {
    icon.setAttribute("aria-hidden", "true");
  });
  for (const [selector, name] of Object.entries(NAMES)) {
    const text = translated(name);
    forEachMatch(root, selector, (element) => {
      if (!element.labels?.length) element.setAttribute("aria-label", text);
    });
  }
  for (const [selector, attributes] of Object.entries(ATTRIBUTES)) {
    forEachMatch(root, selector, (element) => {
      for (const [name, value] of Object.entries(attributes)) {
        element.setAttribute(name, name === "aria-label" ? translated(value) : value);
      }
    });
  }
}

document.addEventListener("keydown", (event) => {
  const isButton = event.target.matches?.("[role='button'][tabindex='0']:not(button, a[href])");
  if (isButton && (event.key === "Enter" || event.key === " ")) {
    event.preventDefault();
    event.target.click();
  }
});

/* Escape closes an open menu and gives the focus back; a list's filters close by themselves. */
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const opener of document.querySelectorAll("[aria-expanded='true']:is([role='button'], a)")) {
    const clicked = opener.getAttribute("x-on:click") ?? "";
    if (clicked.includes("sidebar")) continue;
    if (clicked.includes("!")) opener.click();
    opener.focus();
  }
});

/* The filters stand after the list in the page: the focus goes into them when they open. */
document.addEventListener("click", (event) => {
  if (!event.target.closest("[x-on\\:click='filterOpen = true']")) return;
  setTimeout(() => document.querySelector("#changelist-filter :is(a, input, select)")?.focus(), 50);
});

document.addEventListener("DOMContentLoaded", () => {
  makeAccessible(document.body);
  const observer = new MutationObserver((changes) => {
    for (const { addedNodes } of changes) {
      for (const node of addedNodes) if (node instanceof Element) makeAccessible(node);
    }
  });
  observer.observe(document.body, { childList: true, subtree: true });
});
