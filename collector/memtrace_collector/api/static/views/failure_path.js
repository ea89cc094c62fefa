// The path of the information: each step that an operation took with it, the decisive one open.

import { element, excerpt, head } from "../lib/dom.js";
import { counted, spanText } from "../lib/format.js";
import { address, link, traceLink } from "../lib/links.js";
import { between, momentNode } from "../lib/moments.js";
import { figure, figureOf, sideBySide } from "../lib/values.js";
import { contextNodes, retrievalNodes } from "./failure_reads.js";

const KINDS = {
  evidence: "Message", extraction: "Extraction", decision: "Decision", write: "Record written",
  retrieval: "Retrieval", assembly: "Prompt", answer: "Answer",
};
const LEAVES_IT = ["NONE", "NOOP"];
const SIGNS = { kept: "✓", changed: "≠", lost: "✗", unknown: "?" };

export function pathList(failure) {
  if (!failure.path.length) return element("p", { class: "quiet" }, "No path is known.");
  const items = [];
  let earlier = null;
  for (const run of runs(failure.path)) {
    const pause = between(earlier, run[0].time);
    if (pause && /day|hour/.test(pause)) items.push(element("li", { class: "pause" }, `${pause} later`));
    items.push(isIdle(run[0]) ? folded(run, failure) : hopItem(run[0], failure));
    earlier = run.at(-1).time ?? earlier;
  }
  return element("ol", { class: "way" }, items);
}

// Decisions one after the other that left everything as it was are told as one.
function runs(path) {
  const found = [];
  for (const hop of path) {
    const last = found.at(-1);
    if (last && isIdle(hop) && isIdle(last[0])) last.push(hop);
    else found.push([hop]);
  }
  return found;
}

const isIdle = (hop) => hop.kind === "decision" && hop.outcome === "kept" && !hop.decisive &&
  hop.decisions.every(({ action }) => LEAVES_IT.includes(action.toUpperCase()));

function folded(run, failure) {
  return element("li", { class: "hop idle" },
    element("details", {},
      element("summary", { "data-row": true }, element("span", { class: "sign", "aria-hidden": "true" }, "·"),
        element("span", {}, `${counted(run.length, "decision")} that changed nothing of it`)),
      element("ol", { class: "way" }, run.map((hop) => hopItem(hop, failure)))));
}

function hopItem(hop, failure) {
  const where = [hop.operation, hop.service, hop.system].filter(Boolean).join(" · ");
  const name = hop.decisive ? "hop decisive" : "hop";
  return element("li", { class: name, "data-outcome": hop.outcome, "data-kind": hop.kind },
    element("details", { open: hop.decisive },
      element("summary", { "data-row": true },
        sign(hop.outcome),
        element("span", { class: "kind" }, KINDS[hop.kind] ?? hop.kind),
        outcome(hop.outcome),
        hop.decisive ? element("span", { class: "tag solid" }, "decisive") : null,
        element("span", { class: "gist" }, gist(hop)),
        element("span", { class: "where quiet" }, where, " ", momentNode(hop.time))),
      element("div", { class: "hop-body" }, body(hop, failure))));
}

const sign = (name) => element("span", { class: "sign", "aria-hidden": "true" }, SIGNS[name] ?? "?");
const outcome = (name) => element("span", { class: "tag" }, name);

// What the step came to, in a line.
function gist(hop) {
  if (hop.read) return readGist(hop);
  const change = hop.changes.at(-1);
  if (!change) return hop.because;
  if (!change.after) return hop.decisive ? "nothing that came out says it" : hop.because;
  if (change.after.state === "deleted") return "deleted";
  return change.after.text === null ? hop.because : ["“", excerpt(change.after.text), "”"];
}

function readGist(hop) {
  const { read } = hop;
  const right = read.candidates.find((item) => item.role === "right");
  if (right) return `the right value at ${place(right)}: ${right.outcome}${right.reason ? `, ${right.reason}` : ""}`;
  if (read.never_considered.length) return "the right value was never considered";
  const wrong = read.candidates.find((item) => item.role === "wrong");
  if (wrong) return `the wrong value at ${place(wrong)}: ${wrong.outcome}`;
  const count = counted(read.candidates.length + read.left_out, "candidate");
  return hop.outcome === "unknown" ? count : `${count}, none of them right`;
}

const place = ({ rank, score }) =>
  `${rank === null ? "an unknown rank" : `rank ${rank}`}${score === null ? "" : ` with ${score.toFixed(3)}`}`;

function body(hop, failure) {
  return [
    element("p", {}, hop.because, hop.says ? ` In the verdict's words: ${hop.says}.` : ""),
    hop.error ? element("p", { class: "error" }, `The operation failed: ${hop.error}.`) : null,
    hop.is_stored ? null : element("p", { class: "quiet" }, "The span is no longer in the store."),
    hop.changes.map((change) => changeNodes(hop, change, failure)),
    decisions(hop),
    hop.read ? retrievalNodes(hop) : null,
    hop.context ? contextNodes(hop, failure) : null,
    others(hop),
    foot(hop, failure),
  ];
}

function changeNodes(hop, change, { flag }) {
  if (hop.kind === "answer" && flag?.expected) {
    return element("div", { class: "compare two" },
      figure("Answered", change.after),
      figureOf("Expected", "right", element("div", { class: "captured" }, flag.expected)));
  }
  const wanted = flag?.expected ?? "";
  if (!change.before) return sideBySide(change, ["", LABELS[hop.kind]?.[1] ?? "After"], "", wanted);
  return sideBySide(change, labels(hop, change), whatWasLost(hop), wanted);
}

// In place of a second value, where there is none.
export function whatWasLost(hop) {
  if (!hop?.read) return "Lost: nothing that came out says it.";
  const { candidates, never_considered: never } = hop.read;
  const cut = candidates.find((item) => item.role === "right" && item.outcome === "cut");
  if (cut) return `Cut at ${place(cut)}${cut.reason ? ` (${cut.reason})` : ""}.`;
  return never.length ? "Never considered: it was not among the candidates." : "Not delivered.";
}

const LABELS = { evidence: ["", "Said"], extraction: ["From", "Extracted"], write: ["From", "Written"] };

function labels(hop, { before, after }) {
  if (after && before.record === after.record) return ["Before", "After"];
  return hop.decisive ? ["Last right", after ? "First wrong" : "Then"] : LABELS[hop.kind] ?? ["From", "Made"];
}

function decisions({ decisions: made, other_decisions: others }) {
  if (!made.length && !others) return null;
  const more = others ? `${others} ${made.length ? "more" : ""} about other values` : "";
  if (!made.length) return element("p", { class: "quiet" }, `It decided ${more.replace("  ", " ")}.`);
  const cell = (value) => element("td", {}, value ? valueText(value) : "–");
  return element("table", {},
    element("caption", {}, ["What was decided", more].filter(Boolean).join("; ")),
    head(["Fact", "Decision", "Record"]),
    element("tbody", {}, made.map((each) => element("tr", {},
      cell(each.fact),
      element("th", { scope: "row" }, each.action, each.status ? ` (${each.status})` : ""),
      cell(each.target)))));
}

const valueText = (value) => (value.text === null ? element("code", {}, value.ref) : excerpt(value.text, 400));

function others({ others: values, decisive, changes }) {
  if (!values.length) return null;
  const isInstead = decisive && changes.every(({ after }) => !after);
  return element("details", { class: "others", open: isInstead },
    element("summary", {}, isInstead ? `What it made (${values.length})` : `${values.length} more that it made`),
    element("ul", {}, values.map((value) => element("li", {}, valueText(value)))));
}

function foot(hop, failure) {
  if (!hop.span) return null;
  const span = spanText(hop.span);
  const said = hop.kind === "evidence" ? hop.versions[0] : "";
  const answer = spanText(failure.answer.span);
  return element("p", { class: "row foot" },
    traceLink(hop.span, "in Jaeger"),
    hop.is_stored ? link("the operation", "operation", span) : null,
    hop.record ? link("the record's life", "record", hop.record_graph_id, hop.record) : null,
    hop.record && hop.kind === "retrieval" ? element("a", { href: address("why", [answer], { about: hop.record }) },
      "why it was or was not recalled") : null,
    said || hop.record ? link("everything derived from it", "impact", said || hop.record) : null,
    element("code", {}, span));
}
