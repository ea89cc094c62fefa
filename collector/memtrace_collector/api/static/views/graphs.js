// The graphs there are; or the answers of one of them.

import { view } from "../lib/ask.js";
import { element, excerpt, headedTable, quiet } from "../lib/dom.js";
import { spanText, timeText } from "../lib/format.js";
import { address, link } from "../lib/links.js";

const EXCERPT = 300;
const ONLY = { "": "All", faults: "Memory faults", flagged: "Flagged otherwise", others: "Others" };
const OUTCOMES = { failed: "lost", cleared: "kept", unexplained: "unknown", flagged: "unknown" };
const WORDS = { failed: "memory fault", cleared: "no memory fault", unexplained: "unexplained", flagged: "flagged, not judged yet", unflagged: "not flagged" };

export async function showGraphs(_, parameters) {
  return parameters.graph ? answers(parameters) : list(parameters);
}

async function list({ q = "", from = "" }) {
  const found = await view("graphs", { q, from });
  const field = element("input", { type: "search", id: "graphs-q", value: q, placeholder: "part of an id" });
  const form = element("form", { class: "filters", role: "search", onsubmit: (event) => {
    event.preventDefault();
    location.hash = address("graphs", [], { q: field.value.trim() });
  } }, element("label", { for: "graphs-q" }, "Graph", field), element("button", { type: "submit" }, "Filter"));
  return [
    element("h2", {}, "Graphs"),
    quiet("One graph holds the memory of one owner: what was written, read and answered from it."),
    form,
    found.total
      ? tableOf("Evolution graphs, the one written last first", ["Graph", "Memory faults", "Judged", "Operations", "First", "Last"], found.items.map(graphRow))
      : quiet(q ? "No graph has an id like that." : "No memory operation has arrived yet."),
    pager(found, (start) => address("graphs", [], { q, from: start || "" }), "graphs"),
  ];
}

function graphRow(graph) {
  const { graph_id: id } = graph;
  return [
    element("a", { href: address("graphs", [], { graph: id }), class: "id", dir: "auto" }, id),
    numbered(graph.faults ? element("a", { href: address("failures", [], { graph: id, memory: "yes" }) }, graph.faults) : "0"),
    numbered(graph.judged ? element("a", { href: address("failures", [], { graph: id }) }, graph.judged) : "0"),
    numbered(graph.operations), timeText(graph.first_ns), timeText(graph.last_ns),
  ];
}

async function answers({ graph, only = "", from = "" }) {
  const found = await view("graph-answers", { graph, only, from });
  return [
    element("h2", {}, "Answers of ", element("bdi", {}, graph)),
    element("p", { class: "row" },
      link("All graphs", "graphs"),
      element("a", { href: address("failures", [], { graph }) }, "Its failures"),
      element("a", { href: address("invariants", [], { graph }) }, "Its invariants")),
    choice(graph, only),
    found.is_whole ? null : element("p", { class: "notice" }, "This graph is large: only the answers that were judged are listed."),
    found.total
      ? tableOf("Failures first, then what else was flagged, then the others; newest first", ["Question and answer", "Judged", "Look at", "Service", "Time"], found.items.map(answerRow))
      : quiet(only ? "There are no such answers." : "No answer was given from this graph yet."),
    pager(found, (start) => address("graphs", [], { graph, only, from: start || "" }), "answers"),
  ];
}

function choice(graph, only) {
  return element("nav", { class: "switch", "aria-label": "Which answers" }, Object.entries(ONLY).map(([name, title]) =>
    element("a", { href: address("graphs", [], { graph, only: name }), "aria-current": name === only ? "true" : null }, title)));
}

function answerRow(answer) {
  const at = spanText(answer.span);
  const { verdict } = answer;
  const said = WORDS[answer.outcome] ?? "not looked up";
  return [
    element("div", {}, element("a", { href: address("answer", [at]), dir: "auto" }, answer.question?.text || "question not captured"),
      element("div", { class: "excerpt" }, excerpt(answer.text?.text ?? "answer not captured", EXCERPT))),
    element("div", {}, element("span", { class: "tag", "data-outcome": OUTCOMES[answer.outcome] ?? null }, said),
      verdict ? element("div", {}, link(`${verdict.stage} / ${verdict.error_type}`, "failure", verdict.id)) : null),
    element("div", {}, link("Graph", "graph", at), " · ", link("Why", "why", at), " · ", link("Operation", "operation", at)),
    answer.service, timeText(answer.time_ns),
  ];
}

const numbered = (value) => element("span", { class: "number" }, value);

const tableOf = (...given) => element("div", { class: "scrolls texts" }, headedTable(...given));

// { start, size, total } as links to the pages before and after.
export function pager({ start, size, total }, at, what) {
  if (total <= size) return null;
  const last = Math.min(start + size, total);
  return element("nav", { class: "pager", "aria-label": `Pages of ${what}` },
    start > 0 ? element("a", { href: at(Math.max(0, start - size)), rel: "prev" }, "Before") : null,
    element("span", { class: "quiet" }, `${start + 1}–${last} of ${total}`),
    last < total ? element("a", { href: at(last), rel: "next" }, "After") : null);
}
