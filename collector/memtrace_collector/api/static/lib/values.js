// Captured texts; values side by side, with the words that differ marked, given by `shown.py`.

import { element, quiet } from "./dom.js";
import { counted } from "./format.js";

const FOLDED = 900;
const CLIPPED = 1_200;
const AROUND = 160;
const ROLES = { right: "right", wrong: "wrong" };

// One value: its text, with the first place where it says `wanted` marked; or why there is none.
export function valueNodes(value, wanted = "") {
  if (value.state === "deleted") return [noText("Deleted: from here on the record says nothing.")];
  if (value.parts?.length) return [element("div", { class: "captured" }, partNodes(value.parts, AROUND))];
  if (value.text === null) return [notCaptured(value)];
  return folded(found(value.text, wanted) || "(empty)", value.text.length, value.length);
}

// A captured text, or nodes that are made of it; a long one folds. `length`: its characters here,
// `stored`: in the store.
export function folded(content, length, stored = length) {
  const box = element("div", { class: "captured" }, content);
  const more = stored > length
    ? quiet(`${counted(stored, "character")} are stored; the first ${length.toLocaleString("en")} are shown.`) : null;
  if (length <= FOLDED) return [box, more];
  box.classList.add("folded");
  const all = `Show all ${counted(length, "character")}`;
  const button = element("button", {
    type: "button",
    "aria-expanded": "false",
    onclick: () => {
      const isOpen = !box.classList.toggle("folded");
      button.setAttribute("aria-expanded", String(isOpen));
      button.textContent = isOpen ? "Show less" : all;
    },
  }, all);
  return [box, button, more];
}

// { before, after, segments } as two figures; `labels` name them. `nothing`: what is said
// where there is no second value. `wanted`: what is looked for where words are not compared.
export function sideBySide(change, labels = ["Before", "After"], nothing = "", wanted = "") {
  const { before, after, segments } = change;
  const sides = [];
  const marked = (kinds) => segments && words(segments, kinds);
  if (before) sides.push(figure(labels[0], before, marked(["same", "removed", "outside"]), wanted));
  if (after) sides.push(figure(labels[1], after, marked(["same", "added"]), wanted));
  else if (before && nothing) sides.push(figureOf(labels[1], "gone", noText(nothing)));
  if (!sides.length) return null;
  return element("div", { class: sides.length > 1 ? "compare two" : "compare" }, sides);
}

// A prompt with the right and wrong values in it marked; `around`: characters kept beside them.
export function partNodes(parts, around = Infinity) {
  const isMarked = parts.some(({ role }) => ROLES[role]);
  return parts.map(({ text, role }, place) => {
    if (ROLES[role]) {
      return element("mark", { "data-role": role }, hidden(`[${ROLES[role]}: `), text, hidden("]"));
    }
    if (!isMarked) return text.length > CLIPPED && around < CLIPPED ? `${text.slice(0, CLIPPED)}…` : text;
    return shortened(text, place > 0 ? around : 0, place < parts.length - 1 ? around : 0);
  });
}

const hidden = (text) => element("span", { class: "hidden-text" }, text);

function shortened(text, head, tail) {
  if (text.length <= head + tail + 1) return text;
  return `${head ? text.slice(0, head) : ""}…${tail ? text.slice(-tail) : ""}`;
}

export function figure(label, value, marked = null, wanted = "") {
  const content = marked ? element("div", { class: "captured" }, marked) : valueNodes(value, wanted);
  return figureOf(label, value.role || "plain", content);
}

export function figureOf(label, role, ...content) {
  return element("figure", { class: "value", "data-role": role }, element("figcaption", {}, label), content);
}

export const digestOf = (value) => value.ref.slice(value.ref.lastIndexOf("@") + 1);

function words(segments, kinds) {
  const tags = { removed: "del", added: "ins" };
  return segments.filter(({ kind }) => kinds.includes(kind)).map(({ kind, text }) =>
    tags[kind] ? element(tags[kind], {}, text) : document.createTextNode(text));
}

const noText = (...why) => element("p", { class: "no-text" }, why);

const notCaptured = (value) => noText("Text not captured. Digest ", element("code", {}, digestOf(value)));

function found(text, wanted) {
  const at = wanted ? text.toLowerCase().indexOf(wanted.toLowerCase()) : -1;
  if (at < 0 || text.toLowerCase().length !== text.length) return text;
  const end = at + wanted.length;
  return [text.slice(0, at), element("mark", {}, text.slice(at, end)), text.slice(end)];
}
