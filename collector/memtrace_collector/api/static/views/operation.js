// One operation: everything it read, wrote and decided, with the texts as they were captured.

import { view } from "../lib/ask.js";
import { code, element, facts, headedTable, quiet, table } from "../lib/dom.js";
import { spanText } from "../lib/format.js";
import { address, link, traceLink, variableAddress } from "../lib/links.js";
import { momentNode } from "../lib/moments.js";
import { pager } from "./graphs.js";

const PARTS = [
  ["input", "Read", "what it used, as far as known"],
  ["shown", "Was shown", "offered; whether it was used is not known"],
  ["delivered", "Returned", "in the order of their rank"],
  ["dropped", "Dropped", "considered and cut"],
  ["output", "Wrote", "what it produced"],
  ["superseded", "Replaced", "no longer current since"],
];
const EXCERPT = 600;

export async function showOperation([span], parameters) {
  const found = await view("operation", { span, ...parameters });
  const here = (changes) => address("operation", [span], { ...parameters, ...changes });
  return [
    element("h2", {}, element("span", { "data-step": found.step, class: "step" }, found.step), ` at ${found.system || "an unnamed system"}`),
    head(found, span),
    ...PARTS.map((part) => section(found, part, here)).flat(),
    decisions(found),
    element("div", { class: "columns" }, beside("Came from", found.came_from), beside("Led to", found.led_to)),
    trace(found, span),
  ];
}

function head(found, span) {
  const { verdict } = found;
  const took = Date.parse(found.ended) - Date.parse(found.time);
  return element("div", { class: "panel" },
    element("p", { class: "row" },
      verdict ? element("a", { class: "tag", "data-stage": verdict.stage, href: address("failure", [verdict.id]) }, `${verdict.stage} / ${verdict.error_type}`) : null,
      decisiveFor(found.decisive_for),
      found.is_answer ? [link("Answer", "answer", span), link("Graph of this answer", "graph", span), link("Why", "why", span)] : null,
      traceLink(found), element("a", { href: address("graphs", [], { graph: found.graph_id }) }, "Answers of its graph")),
    facts([
      ["Span name", found.name],
      ["Service", found.service],
      ["Time", [momentNode(found.time), took >= 0 ? ` for ${took} ms` : ""]],
      ["Error", found.error ? element("span", { class: "error" }, found.error) : ""],
      ["Graph", code(found.graph_id)],
      ["Reads also", found.reads_graphs.join(", ")],
      ["Conversation", found.conversation],
      ["Span", code(span)],
      ["Inside", found.parent ? inside(found) : ""],
      ["Known by", found.capture === "observed" ? "" : found.capture],
      ["Limits", Object.entries(found.limits).map(([name, value]) => `${name} ${value}`).join(", ")],
      ["Scores are", found.score_kind],
      ["Not whole", [found.composite ? "composite: its children are the real stages" : "",
        ...Object.entries(found.truncated).map(([name, count]) => `${count} of ${name} left out by the sender`),
        found.cut.length ? `${found.cut.length} texts cut` : ""].filter(Boolean).join("; ")],
    ]));
}

// A span that encloses it may be none of the memory's: then only its id is known.
function inside({ parent, trace: { items } }) {
  const outer = items.find((item) => spanText(item) === spanText(parent));
  return outer ? link(`${outer.step} of ${outer.system || outer.service}`, "operation", spanText(parent)) : code(spanText(parent));
}

function decisiveFor({ items, total }) {
  if (!total) return null;
  return element("span", {}, element("span", { class: "tag solid" }, "decisive"), " for ",
    items.map((each, place) => [place ? ", " : "", link(`${each.stage} / ${each.error_type}`, "failure", each.id)]),
    total > items.length ? ` and ${total - items.length} more` : "");
}

function section(found, [name, title, says], here) {
  const page = found.parts[name];
  if (!page.total) return name === "output" ? [element("h3", {}, title), quiet("Nothing.")] : [];
  const isRanked = name === "delivered" || name === "dropped";
  const header = [...(isRanked ? ["Rank"] : []), "What", "Text", ...(isRanked ? ["Score"] : []), ...(name === "dropped" ? ["Reason"] : [])];
  const rows = page.items.map((item) => [
    ...(isRanked ? [item.rank ?? "–"] : []),
    reference(item),
    text(item),
    ...(isRanked ? [item.score === null ? "–" : Number(item.score.toPrecision(4))] : []),
    ...(name === "dropped" ? [item.reason] : []),
  ]);
  return [
    element("h3", {}, `${title} (${page.total})`),
    element("div", { class: "scrolls references" }, table(`${says[0].toUpperCase()}${says.slice(1)}`, header, rows)),
    pager(page, (start) => here({ [`from_${name}`]: start || "" }), title),
  ];
}

function reference({ ref, role, graph_id: graphId }) {
  const [kind] = ref.split(":", 1);
  const href = variableAddress(graphId, ref);
  const leads = href ? element("a", { href }, ["mem", "doc"].includes(kind) ? "record" : "impact") : null;
  return element("div", { class: "what" },
    element("div", { class: "row" }, element("strong", {}, kind), role ? element("span", { class: "quiet" }, role) : null, leads),
    element("div", { class: "id quiet", dir: "auto" }, ref));
}

function text({ text: found, ref }) {
  if (!found) return element("span", { class: "quiet" }, ref.endsWith("@deleted") ? "the record was deleted" : "not captured");
  const whole = found.text;
  const note = found.chars > whole.length ? quiet(`The first ${whole.length} of ${found.chars} characters.`) : null;
  if (whole.length <= EXCERPT) return element("div", {}, element("div", { class: "captured", dir: "auto" }, whole), note);
  const shown = element("div", { class: "captured", dir: "auto" }, `${whole.slice(0, EXCERPT)}…`);
  const more = element("button", { type: "button", onclick: () => { shown.textContent = whole; more.remove(); } }, "Show all of it");
  return element("div", {}, shown, more, note);
}

function decisions(found) {
  if (!found.decisions.length) return null;
  const id = (ref) => element("span", { class: "id" }, ref ?? "–");
  return [element("h3", {}, "Decided"), element("div", { class: "scrolls" }, headedTable(
    "What it decided to do with each candidate", ["Action", "Candidate", "Target", "Status"],
    found.decisions.map(({ action, fact, target, status }) => [action, id(fact), id(target), status ?? "–"])))];
}

function beside(title, { items, total }) {
  return element("section", {},
    element("h3", {}, title),
    total ? element("ul", { class: "operations" }, items.map((item) => operationItem(item))) : quiet("Nothing known."),
    total > items.length ? quiet(`and ${total - items.length} more`) : null);
}

function trace(found, span) {
  const { items, total } = found.trace;
  if (total < 2) return null;
  return element("section", {},
    element("h3", {}, "In the same trace"),
    element("ol", { class: "operations" }, items.map((item) =>
      operationItem(item, { "data-depth": Math.min(item.depth, 6), "aria-current": spanText(item) === span ? "true" : null }))),
    total > items.length ? quiet(`and ${total - items.length} more`) : null);
}

function operationItem(item, properties = {}) {
  return element("li", properties,
    element("a", { href: address("operation", [spanText(item)]), "data-step": item.step, class: "step" }, item.step), " ",
    element("span", { class: "quiet" }, [item.system, item.service, item.error].filter(Boolean).join(" · "), " ", momentNode(item.time)));
}
