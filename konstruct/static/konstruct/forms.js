/* Forms are sent once, and entries outlive the end of a session.

A form keeps its entries in the tab (sessionStorage) when it is sent. The next page deletes them, unless it is the login page or
an error page, or was reached by Back or by its address because no answer arrived: then they are kept, for the same person, until the
page of the form is opened again, which fills them in. The page of an answer has a referrer, one that is reached by its address has
none. Back leads to the page before it where the browser's error page has its place in the
history: Chromium does so for a form that is sent to its own address. Passwords, files and other hidden fields than those marked
data-kept are not kept. */

"use strict";

{
  const STORE = "k-entries";
  const KEPT_MS = 12 * 3600 * 1000;
  const BUTTONS = "button[type=submit], button:not([type]), input[type=submit]";
  const SECRET = "[type=password], [type=file], [autocomplete*=password], [data-secret]";
  const PLAIN_HIDDEN = "[type=hidden]:not([data-kept], [name^=initial-])";
  const STAY_SENT_MS = 30 * 1000;
  const STAY_SENT_SLOW_MS = 300 * 1000; // until a language model has answered
  const DOWNLOAD_MS = 2 * 1000;

  // Not form.id, which is a field of that name, if there is one.
  const idOf = (form) => form.getAttribute("id") ?? "";
  const formOf = (id, number) => document.getElementById(id) ?? document.forms[number];
  const here = () => location.pathname + location.search;
  const person = () => document.getElementById("k-texts")?.dataset.person ?? "";

  function fieldsOf(form) {
    return [...form.elements].filter(
      (field) =>
        field.name && field.matches("input, textarea, select") && !field.matches(`${SECRET}, ${PLAIN_HIDDEN}, ${BUTTONS}`),
    );
  }

  function read(field) {
    if (field.matches("[type=checkbox], [type=radio]")) return field.checked;
    return field.multiple ? [...field.selectedOptions].map((option) => option.value) : field.value;
  }

  function write(field, value) {
    if (field.matches("[type=checkbox], [type=radio]")) field.checked = value;
    else if (field.multiple) [...field.options].forEach((option) => { option.selected = value.includes(option.value); });
    else field.value = value;
    field.dispatchEvent(new Event("input", { bubbles: true }));
    field.dispatchEvent(new Event("change", { bubbles: true }));
  }

  function load() {
    try {
      return JSON.parse(sessionStorage.getItem(STORE));
    } catch {
      return null;
    }
  }

  function keep(entries) {
    try {
      entries ? sessionStorage.setItem(STORE, JSON.stringify(entries)) : sessionStorage.removeItem(STORE);
    } catch {
      sessionStorage.removeItem(STORE); // too large, or forbidden
    }
  }

  function entriesOf(form) {
    const fields = fieldsOf(form).map((field) => [field.name, read(field)]);
    return fields.length && {
      page: here(), person: person(), at: Date.now(), form: idOf(form), number: [...document.forms].indexOf(form), fields,
    };
  }

  function restore(entries) {
    const form = formOf(entries.form, entries.number);
    if (!form) return;
    const fields = fieldsOf(form);
    entries.fields.forEach(([name, value], place) => {
      // Fields of one name, such as checkboxes, are in the same places.
      const field = fields[place]?.name === name ? fields[place] : fields.find((candidate) => candidate.name === name);
      if (field) write(field, value);
    });
    const note = document.createElement("p");
    note.className = "k-restored";
    note.setAttribute("role", "status");
    note.textContent = translated("Your input is filled in again. It is not saved yet.");
    form.prepend(note);
    note.scrollIntoView({ block: "center" });
  }

  /* Delete, keep or fill in what the page before has sent. */
  function arrive() {
    const entries = load();
    if (!entries) return;
    const isKeeping = document.querySelector("[data-keeps-entries], #login-form");
    const isBack = performance.getEntriesByType("navigation")[0]?.type === "back_forward";
    const isUnanswered = isBack || !document.referrer;
    if (Date.now() - entries.at > KEPT_MS) keep(null);
    else if (isKeeping) {
      keep({ ...entries, isKept: true });
      // After the login: the page of the form, not the address that it is sent to.
      const login = document.getElementById("login-form");
      if (login) {
        const address = new URL(login.action);
        address.searchParams.set("next", entries.page);
        login.action = address;
      }
    } else if (isUnanswered && here() !== entries.page) keep({ ...entries, isKept: true });
    else if (person() !== entries.person) keep(null);
    else if (here() === entries.page && (entries.isKept || isUnanswered)) {
      keep(null);
      restore(entries);
    } else if (!entries.isKept) keep(null);
  }

  function buttonsOf(form) {
    return [...form.querySelectorAll(BUTTONS), ...document.querySelectorAll(`[form="${CSS.escape(idOf(form))}"]`)];
  }

  function reopen(form) {
    delete form.dataset.sent;
    buttonsOf(form).forEach((button) => {
      button.disabled = false;
      if (button.dataset.label !== undefined) {
        button.innerHTML = button.dataset.label;
        delete button.dataset.label;
      }
    });
  }

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "post" || event.defaultPrevented) return;
    if (form.dataset.sent) {
      event.preventDefault();
      return;
    }
    form.dataset.sent = "1";
    // The page stays here too if its button opens a new tab.
    const isDownload = form.matches("[data-download]") || event.submitter?.formTarget === "_blank";
    // Without a login there is no session that could have ended.
    if (!isDownload && person()) keep(entriesOf(form));
    // The request has the name of the pressed button, so it is disabled afterwards.
    setTimeout(() => {
      buttonsOf(form).forEach((button) => { button.disabled = true; });
      // The login page has no texts of scripts.
      if (event.submitter?.matches("button") && document.getElementById("k-texts")) {
        event.submitter.dataset.label = event.submitter.innerHTML;
        event.submitter.textContent = translated("Working…");
      }
    });
    const staySent = form.matches("[data-slow]") ? STAY_SENT_SLOW_MS : STAY_SENT_MS;
    setTimeout(reopen, isDownload ? DOWNLOAD_MS : staySent, form);
  });

  window.addEventListener("pageshow", (event) => {
    if (event.persisted) document.querySelectorAll("form[data-sent]").forEach(reopen);
  });

  document.addEventListener("DOMContentLoaded", arrive);
}
