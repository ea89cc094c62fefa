// One answer's ancestry or case as a drawing, with the same in tables.

import { view } from "../lib/ask.js";
import { element, quiet } from "../lib/dom.js";
import { spanText, timeText } from "../lib/format.js";
import { address, link, traceLink } from "../lib/links.js";
import { amend } from "../lib/router.js";
import { Canvas } from "./graph_canvas.js";
import { details } from "./graph_details.js";
import { searchBox, timeFilter } from "./graph_filters.js";
import { modelOf } from "./graph_model.js";
import { legend } from "./graph_shapes.js";
import { tables } from "./graph_table.js";

const OF = { ancestry: "Ancestry", case: "Case" };

export async function showGraph([answer], parameters, { signal }) {
  const { of = "ancestry", around = "", since = "", until = "", at = "" } = parameters;
  const found = await view("graph", { answer, of, around, since, until });
  const model = modelOf(found);
  const here = (changes) => address("graph", [answer], { of, around, since, until, ...changes });
  const panel = element("aside", { class: "graph-details", "aria-label": "Details of the node in focus" });
  const canvas = new Canvas(model, {
    signal,
    selected: (node, byHand) => {
      panel.replaceChildren(...details(model, node, { select: (id) => canvas.select(id, true), around: (id) => here({ around: id, at: id }) }));
      if (byHand) amend(here({ at: node.id }));
    },
  });
  canvas.select(model.byId.has(at) ? at : model.start?.id, false);
  canvas.begin();
  return [
    element("h2", {}, "Graph of an answer"),
    about(found),
    element("div", { class: "graph-bar" }, switches(of, here), searchBox(model, canvas), timeFilter(model, canvas), zoom(canvas)),
    leftOut(model, here, around),
    legend(model),
    element("div", { class: "graph-stage" }, canvas.node, panel),
    tables(model),
  ];
}

function about(found) {
  const verdict = found.verdict;
  return element("div", { class: "graph-about" },
    found.question ? element("p", {}, element("span", { class: "quiet" }, "Asked "), element("bdi", {}, found.question.text)) : null,
    found.text ? element("p", {}, element("span", { class: "quiet" }, "Answered "), element("bdi", {}, found.text.text)) : null,
    element("p", { class: "row" },
      verdict ? element("a", { class: "tag", "data-stage": verdict.stage, href: address("failure", [verdict.id]) }, `${verdict.stage} / ${verdict.error_type}`) : null,
      link("Answer", "answer", spanText(found.span)),
      link("Why", "why", spanText(found.span)),
      traceLink(found.span),
      element("span", { class: "quiet" }, `${timeText(found.time_ns)} · lineage ${found.lineage}`)));
}

function switches(of, here) {
  return element("nav", { class: "switch", "aria-label": "What is drawn" },
    Object.entries(OF).map(([name, title]) =>
      element("a", { href: here({ of: name, around: "", at: "" }), "aria-current": name === of ? "true" : null }, title)));
}

function zoom(canvas) {
  const button = (text, label, act) => element("button", { type: "button", "aria-label": label, title: label, onclick: act }, text);
  return element("div", { class: "zoom", role: "group", "aria-label": "Zoom" },
    button("−", "Zoom out (−)", () => canvas.zoom(1 / 1.3)),
    button("+", "Zoom in (+)", () => canvas.zoom(1.3)),
    button("Fit", "Fit the whole drawing (0)", () => canvas.fit()));
}

function leftOut(model, here, around) {
  const { left_out: left, of, nodes, missing } = model.found;
  const notes = [];
  if (left.operations + left.variables > 0) {
    notes.push(element("p", {},
      `Shown are ${nodes.length} of ${nodes.length + left.operations + left.variables} nodes, those closest to ${around ? "the one chosen" : "what is marked"} `
      + `(${left.operations} operations and ${left.variables} variables are left out). To narrow: `,
      of === "case" ? [element("a", { href: here({ of: "ancestry" }) }, "only the ancestry"), ", or "] : null,
      element("button", { type: "button", class: "plain", onclick: () => { location.hash = here(model.chosen ?? {}); } }, "only the time chosen above"),
      ", or focus a node and draw around it. ",
      element("a", { href: here({ around: "", since: "", until: "" }) }, "Draw all that fits")));
  }
  if (left.outside_the_time > 0) notes.push(element("p", {}, `${left.outside_the_time} operations lie outside the time asked for. `, element("a", { href: here({ since: "", until: "" }) }, "Draw all times")));
  if (missing.length) notes.push(element("p", {}, `Nobody was seen to produce ${missing.length} of the references: `, element("code", {}, missing.slice(0, 5).join(", "))));
  if (!nodes.length) notes.push(quiet("Nothing is left to draw."));
  return notes.length ? element("div", { class: "notice" }, notes) : null;
}
