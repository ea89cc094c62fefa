// Who is asking: a token, kept for as long as this tab is open, and sent to this server only.

import { element } from "./dom.js";
import { forgetList, forThisTab } from "./kept.js";

const KEY = "memtrace.token";
const signOut = document.getElementById("sign-out");

let asking = null;

// Headers of every request; the first one keeps the browser from asking for a password by itself.
export function admission() {
  const token = forThisTab().getItem(KEY);
  const asked = { "x-requested-by": "page" };
  return token ? { ...asked, authorization: `Bearer ${token}` } : asked;
}

// Resolves when somebody has entered a token that the server knows. Asks once at a time.
export function askForToken() {
  asking ??= entered().finally(() => { asking = null; });
  return asking;
}

export function showSignOut() {
  signOut.hidden = !forThisTab().getItem(KEY);
}

function leave() {
  forThisTab().removeItem(KEY);
  forgetList();
  location.reload();
}

async function entered() {
  const wasDenied = forThisTab().getItem(KEY) !== null;
  forThisTab().removeItem(KEY);
  const input = element("input", {
    type: "password", id: "token", autocomplete: "off", required: true, spellcheck: "false",
    "aria-describedby": "token-says",
  });
  const says = element("p", { id: "token-says", role: "alert", class: "error" },
    wasDenied ? "That token is no longer accepted." : "");
  const form = element("form", { method: "dialog" },
    element("h2", {}, "Sign in"),
    element("p", {}, "This server asks who is calling. Enter the token that its operator gave you."),
    element("label", { for: "token" }, "Token"), input, says,
    element("p", { class: "quiet" }, "It is kept until this tab is closed."),
    element("button", { type: "submit", class: "primary" }, "Sign in"));
  const dialog = element("dialog", { class: "door", "aria-label": "Sign in" }, form);
  dialog.addEventListener("cancel", (event) => event.preventDefault());
  document.body.append(dialog);
  dialog.showModal();
  try {
    await accepted(form, input, says);
  } finally {
    dialog.close();
    dialog.remove();
  }
  showSignOut();
}

function accepted(form, input, says) {
  return new Promise((resolve) => {
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      says.textContent = "";
      const refusal = await refused(input.value.trim());
      if (refusal) {
        says.textContent = refusal;
        input.select();
      } else resolve();
    });
  });
}

async function refused(token) {
  let headers;
  try {
    headers = new Headers({ "x-requested-by": "page", authorization: `Bearer ${token}` });
  } catch {
    return "A token has no such characters.";
  }
  const response = await fetch("/api/v1/about", { headers }).catch(() => null);
  if (!response) return "The server does not answer.";
  if (response.status === 403) return "That token reads metrics only.";
  if (!response.ok) return "That token is not known here, or has expired.";
  forThisTab().setItem(KEY, token);
  return "";
}

signOut.addEventListener("click", leave);
showSignOut();
