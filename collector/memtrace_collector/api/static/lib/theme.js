// The system's theme, or the one chosen by the button, which is remembered in this browser.

const CHOICES = ["system", "light", "dark"];
const KEY = "memtrace.theme";

const button = document.getElementById("theme");

function chosen() {
  try {
    const kept = localStorage.getItem(KEY);
    return CHOICES.includes(kept) ? kept : "system";
  } catch {
    return "system"; // a browser that keeps nothing for this page
  }
}

function apply(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  button.textContent = `Theme: ${theme}`;
}

button.addEventListener("click", () => {
  const next = CHOICES[(CHOICES.indexOf(chosen()) + 1) % CHOICES.length];
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // shown all the same, until the page is left
  }
  apply(next);
});

apply(chosen());
