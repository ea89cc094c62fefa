// The system's theme, or the one chosen by the button, which is remembered in this browser.

import { forAlways } from "./kept.js";

const CHOICES = ["system", "light", "dark"];
const KEY = "memtrace.theme";

const button = document.getElementById("theme");

function chosen() {
  const known = forAlways().getItem(KEY);
  return CHOICES.includes(known) ? known : "system";
}

function apply(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  button.textContent = `Theme: ${theme}`;
}

button.addEventListener("click", () => {
  const next = CHOICES[(CHOICES.indexOf(chosen()) + 1) % CHOICES.length];
  forAlways().setItem(KEY, next);
  apply(next);
});

apply(chosen());
