/* Makes unfold's pages work with Alpine's build for a content security policy without 'unsafe-eval'.

That build reads an attribute as one expression over the data of its element: no statements, no
functions, no globals. Most of unfold's attributes are that. The others are rewritten here before
Alpine starts, and what they call is put into the data of the page. */

"use strict";

/* In this order: what unfold writes, and the same as one expression. */
const REPLACEMENTS = [
  [
    /\$watch\('sidebarDesktopOpen', value => .*?\)\)/,
    "$watch('sidebarDesktopOpen', rememberSidebar)",
  ],
  [
    /localStorage\.setItem\('sidebarDesktopOpen', .*?\)/,
    "rememberSidebar(sidebarDesktopOpen)",
  ],
  [
    /if \(\$refs\.searchInput\.value === ''\) \{.*?\} else \{.*?\}/,
    "clearSearch($refs.searchInput)",
  ],
  [/^if \((.*?)\) (selectItem\(.*\))$/, "$1 && $2"],
];

function rewriteExpression(text) {
  const rewrite = (expression, [pattern, replacement]) => expression.replace(pattern, replacement);
  const statements = REPLACEMENTS.reduce(rewrite, text)
    .split(";")
    .map((statement) => statement.trim())
    .filter(Boolean);
  return statements.length > 1 ? `[${statements.join(", ")}]` : statements[0] || "null";
}

/* What attributes call by a name that is a global of the page. */
const GLOBALS = {
  localStorage: { getItem: (name) => localStorage.getItem(name) },
  window: { location: { pathname: location.pathname, search: location.search } },
  getCurrentTab: () => getCurrentTab(),
  sortRecords: (event) => sortRecords(event),
  moveRecords: (event) => moveRecords(event),
  rememberSidebar: (open) => localStorage.setItem("sidebarDesktopOpen", open ? "1" : "0"),
  clearSearch: (input) => (input.value === "" ? input.blur() : (input.value = "")),
};

/* A control that opens something says whether it is open. */
function sayWhetherExpanded(element, clicked) {
  const [, state] = clicked.match(/(\w+) = (?:!\1|true)\b/) ?? [];
  if (state) element.setAttribute("x-bind:aria-expanded", state);
}

/* The palette: a modal dialog that gives the focus back, opened from fields too; Enter takes the first result. */
function modalCommand() {
  const command = searchCommand();
  return {
    ...command,
    init() {
      let opener = null;
      this.$watch("openCommandResults", (isOpen) => {
        if (isOpen) opener = document.activeElement;
        for (const beside of this.$root.parentElement.children) {
          if (beside !== this.$root) beside.inert = isOpen;
        }
        if (!isOpen) opener?.focus();
      });
    },
    handleShortcut(event) {
      if (event.key !== "k" || !(event.metaKey || event.ctrlKey)) return;
      event.preventDefault();
      if (!this.openCommandResults) this.handleOpen();
    },
    handleContentLoaded(event) {
      command.handleContentLoaded.call(this, event);
      if (this.hasResults) this.currentIndex ||= 1;
    },
    selectItem(...options) {
      if (this.items?.[this.currentIndex - 1]) command.selectItem.apply(this, options);
    },
  };
}

document.addEventListener("alpine:init", () => {
  for (const element of document.querySelectorAll("*")) {
    for (const { name, value } of [...element.attributes]) {
      if (name === "x-on:click") sayWhetherExpanded(element, value);
      if (name === "x-init" || name.startsWith("x-on:")) {
        element.setAttribute(name, rewriteExpression(value));
      }
    }
  }
  Alpine.data("theme", (...chosen) => ({ ...theme(...chosen), ...GLOBALS }));
  Alpine.data("searchForm", () => searchForm());
  Alpine.data("searchDropdown", () => searchDropdown());
  Alpine.data("searchCommand", modalCommand);
});
