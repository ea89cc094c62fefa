// Shapes, lines and their legend. Pure, but for the nodes they make.

import { element, svg } from "../lib/dom.js";

// What became of the needed information at an operation, where the verdict says so.
export const SIGNS = { kept: "✓", changed: "≠", lost: "✗", unknown: "?" };

const READS = new Set(["retrieve", "rerank", "rewrite"]);
const CUT = 10;

// The outline of an operation says what it does, besides its colour and its word.
export function outline(step, w, h) {
  if (READS.has(step)) return `M${CUT} 0H${w - CUT}L${w} ${h / 2}L${w - CUT} ${h}H${CUT}L0 ${h / 2}Z`;
  if (step === "delete") return `M${CUT} 0H${w - CUT}L${w} ${CUT}V${h - CUT}L${w - CUT} ${h}H${CUT}L0 ${h - CUT}V${CUT}Z`;
  if (step === "ingest") return `M0 0H${w - CUT}L${w} ${h / 2}L${w - CUT} ${h}H0Z`;
  if (step === "answer") return rounded(w, h, h / 2);
  if (step === "decide") return `M${CUT} 0H${w}L${w - CUT} ${h}H0Z`;
  return rounded(w, h, 4);
}

export function rounded(w, h, r) {
  return `M${r} 0H${w - r}A${r} ${r} 0 0 1 ${w} ${r}V${h - r}A${r} ${r} 0 0 1 ${w - r} ${h}H${r}A${r} ${r} 0 0 1 0 ${h - r}V${r}A${r} ${r} 0 0 1 ${r} 0Z`;
}

export function curve(from, to) {
  const x1 = from.x + from.width, y1 = from.y + from.height / 2;
  const x2 = to.x, y2 = to.y + to.height / 2;
  const bend = x2 > x1 ? Math.max(28, Math.min(160, (x2 - x1) * 0.5)) : 120;
  return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
}

export const isDashed = (link) => link.certainty !== "exact";

// As much of a text as fits so many narrow letters; others count twice.
export function fitted(text, letters) {
  let room = letters;
  let kept = "";
  for (const letter of text.slice(0, letters * 4).replace(/\s+/g, " ").trim()) {
    room -= letter.codePointAt(0) > 0x10ff ? 2 : 1;
    if (room < 1) return `${kept}…`;
    kept += letter;
  }
  return kept;
}

const RELATIONS = ["used", "delivered", "produced", "superseded", "decided", "shown", "dropped"];

export function legend(model) {
  const steps = [...new Set(model.nodes.map((node) => node.step).filter(Boolean))].sort();
  const relations = RELATIONS.filter((relation) => model.links.some((link) => link.relation === relation));
  const unsure = [...new Set(model.links.filter(isDashed).map((link) => link.certainty))];
  return element("div", { class: "graph-legend", role: "group", "aria-label": "Legend" },
    steps.map((step) => element("span", { "data-step": step },
      svg("svg", { width: 26, height: 14, "aria-hidden": "true" }, svg("path", { class: "swatch", transform: "translate(1 1) scale(.4)", d: outline(step, 60, 30) })), step)),
    element("span", {}, svg("svg", { width: 26, height: 14, "aria-hidden": "true" }, svg("path", { class: "swatch variable", transform: "translate(1 2) scale(.4)", d: rounded(60, 25, 8) })), "variable"),
    relations.map((relation) => element("span", {}, line(`link ${relation}`), relation)),
    Object.keys(SIGNS).filter((outcome) => model.nodes.some((node) => node.outcome === outcome)).map((outcome) =>
      element("span", {}, element("strong", { class: "sign", "data-outcome": outcome, "aria-hidden": "true" }, SIGNS[outcome]), `information ${outcome}`)),
    unsure.length ? element("span", {}, line("link unsure"), unsure.join(", ")) : null);
}

function line(kind) {
  return svg("svg", { width: 26, height: 10, "aria-hidden": "true" }, svg("path", { class: kind, d: "M1 5H25" }));
}
