// Keys that work in every view.

import { element } from "./dom.js";

const KEYS = [
  ["/", "search in this view"],
  ["j, k", "next, previous row"],
  ["Enter", "open the row"],
  ["?", "these keys"],
  ["Esc", "close, or leave the field"],
];
const IN_THE_GRAPH = [
  ["Tab", "into the drawing"],
  ["← →", "along an edge: what it came from, what came of it"],
  ["↑ ↓", "the neighbour in the same column"],
  ["Enter", "open the operation or record"],
  ["+ −", "zoom"],
  ["0", "fit the drawing"],
  ["Shift with arrows", "move the drawing"],
  ["n, N", "next, previous match of the search"],
];

export function startKeys() {
  document.getElementById("keys-open").addEventListener("click", showKeys);
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") document.activeElement?.blur();
    else if (!isField(event.target) && ACTIONS[event.key]) {
      event.preventDefault();
      ACTIONS[event.key]();
    }
  });
}

const ACTIONS = { "/": search, "?": showKeys, j: () => step(1), k: () => step(-1) };

function isField(node) {
  return node.isContentEditable || ["INPUT", "SELECT", "TEXTAREA"].includes(node.tagName);
}

function search() {
  const field = document.querySelector("main input[type=search], main [data-search]");
  field?.focus();
  field?.select?.();
}

function step(by) {
  const rows = [...document.querySelectorAll("main tbody tr, main [data-row]")]
    .filter((row) => row.getClientRects().length && row.querySelector("a[href], button"));
  if (!rows.length) return;
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  const next = at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(Math.max(at + by, 0), rows.length - 1);
  rows[next].querySelector("a[href], button").focus();
}

function showKeys() {
  const listed = (keys) => element("dl", { class: "keys" },
    keys.map(([key, does]) => [element("dt", {}, element("kbd", {}, key)), element("dd", {}, does)]));
  const dialog = element("dialog", { "aria-labelledby": "keys-title" },
    element("form", { method: "dialog" },
      element("h2", { id: "keys-title" }, "Keys"),
      listed(KEYS),
      element("h3", {}, "In the graph"),
      listed(IN_THE_GRAPH),
      element("button", { type: "submit", autofocus: true }, "Close")));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
