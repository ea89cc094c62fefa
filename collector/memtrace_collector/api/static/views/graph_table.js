// The drawing in tables, for who cannot see it; made when they are opened.

import { element, excerpt, headedTable } from "../lib/dom.js";
import { timeText } from "../lib/format.js";
import { link, variableAddress } from "../lib/links.js";
import { graphOf, title } from "./graph_model.js";

const EXCERPT = 140;
const NAMED = 6;

export function tables(model) {
  const body = element("div", { class: "scrolls" });
  const fill = () => {
    if (!body.childElementCount) body.append(operations(model), variables(model));
  };
  return element("details", { class: "graph-tables", id: "graph-tables", ontoggle: fill },
    element("summary", {}, `The same in tables (${model.nodes.length} nodes, ${model.links.length} edges)`), body);
}

function operations(model) {
  const rows = model.nodes.filter((node) => node.kind === "operation").map((node) => [
    link(node.step, "operation", node.id), said(node), node.system, node.service, timeText(node.time_ns),
    named(node.into, (each) => each.from), named(node.outof, (each) => each.to),
  ]);
  return headedTable("Operations, oldest first", ["Step", "Marks", "System", "Service", "Time", "Came from", "Led to"], rows);
}

function variables(model) {
  const rows = model.nodes.filter((node) => node.kind === "variable").map((node) => [
    linked(node),
    said(node), excerpt(node.text ?? "not captured", EXCERPT), timeText(node.time_ns),
    named(node.into, (each) => each.from), named(node.outof, (each) => each.to),
  ]);
  return headedTable("Variables, oldest first", ["Kind", "Marks", "Text", "Time", "Made by", "Used by"], rows);
}

function linked(node) {
  const href = variableAddress(graphOf(node), node.id);
  return href ? element("a", { href }, title(node)) : title(node);
}

const said = (node) => [...node.marks, node.outcome].filter(Boolean).join(", ");

function named(links, other) {
  const words = links.slice(0, NAMED).map((each) => `${title(other(each))} (${each.relation})`);
  return [...new Set(words)].join(", ") + (links.length > NAMED ? ` and ${links.length - NAMED} more` : "");
}
