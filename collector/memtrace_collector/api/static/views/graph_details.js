// What is known of the node in focus, and where it leads.

import { element, excerpt, facts, quiet } from "../lib/dom.js";
import { timeText } from "../lib/format.js";
import { link, traceLink, variableAddress } from "../lib/links.js";
import { graphOf, title } from "./graph_model.js";

const SHOWN = 12;
const EXCERPT = 160;

export function details(model, node, { select, around }) {
  const isOperation = node.kind === "operation";
  return [
    element("h3", { "data-step": node.step ?? null }, isOperation ? node.step : title(node)),
    node.marks.length || node.outcome
      ? element("p", { class: "row" }, node.marks.map((mark) => element("span", { class: mark === "decisive" ? "tag solid" : "tag" }, mark)),
        node.outcome ? element("span", { class: "tag", "data-outcome": node.outcome }, `information ${node.outcome}`) : null)
      : null,
    ...(isOperation ? ofOperation(node) : ofVariable(model, node, select)),
    element("p", { class: "row" }, leads(node), element("a", { href: around(node.id) }, "Draw around this")),
    neighbours("Came from", node.into, (each) => each.from, select),
    neighbours("Led to", node.outof, (each) => each.to, select),
  ].filter(Boolean);
}

function leads(node) {
  if (node.kind === "operation") {
    const [traceId, spanId] = node.id.split(":");
    return [link("Operation", "operation", node.id), traceLink({ traceId, spanId })];
  }
  const own = variableAddress(graphOf(node), node.id);
  const isRecord = ["mem", "doc"].includes(node.of_kind);
  return [
    isRecord ? element("a", { href: own }, "Record") : null,
    own ? link("Impact", "impact", node.id) : null,
  ];
}

function ofOperation(node) {
  const milliseconds = (node.end_ns - node.time_ns) / 1e6;
  return [facts([
    ["Span name", node.name],
    ["System", node.system],
    ["Service", node.service],
    ["Time", timeText(node.time_ns)],
    ["Took", milliseconds >= 0 ? `${milliseconds.toFixed(milliseconds < 10 ? 1 : 0)} ms` : ""],
    ["Error", node.error],
    ["Graph", element("code", {}, node.graph_id)],
    ["Span", element("code", {}, node.id)],
  ])];
}

function ofVariable(model, node, select) {
  const versions = model.nodes.filter((each) => each.record === node.record && each !== node);
  return [
    node.text !== null ? element("div", { class: "captured", dir: "auto", tabindex: 0, role: "group", "aria-label": "Captured text" }, node.text) : quiet(node.deleted ? "The record was deleted." : "Its text was not captured."),
    node.chars > (node.text?.length ?? 0) ? quiet(`The first ${node.text.length} of ${node.chars} characters.`) : null,
    facts([["Made", timeText(node.time_ns)], ["Reference", element("code", {}, node.id)]]),
    versions.length ? [element("h4", {}, "Other versions here"), element("ul", { class: "graph-near" }, versions.slice(0, SHOWN).map((each) => item(each, "", select)))] : null,
  ].flat();
}

function neighbours(heading, links, other, select) {
  if (!links.length) return null;
  const more = links.length - SHOWN;
  return element("section", {},
    element("h4", {}, `${heading} (${links.length})`),
    element("ul", { class: "graph-near" }, links.slice(0, SHOWN).map((each) => item(other(each), relationText(each), select))),
    more > 0 ? quiet(`and ${more} more; the operation's page lists all`) : null);
}

function relationText({ relation, certainty, references }) {
  return [relation, references > 1 ? `${references} references` : "", certainty === "exact" ? "" : certainty].filter(Boolean).join(", ");
}

function item(node, relation, select) {
  const text = node.kind === "operation" ? [node.system, node.service].filter(Boolean).join(" · ") : node.text;
  return element("li", {},
    element("button", { type: "button", class: "plain", "data-step": node.step ?? null, onclick: () => select(node.id) }, title(node)),
    relation ? element("span", { class: "quiet" }, ` ${relation}`) : null,
    text ? element("div", { class: "excerpt" }, excerpt(text, EXCERPT)) : null);
}
