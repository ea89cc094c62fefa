// What several views tell in the same words: captured texts, operations, answers, pages of lists.

import { element, excerpt, quiet, svg } from "./dom.js";
import { spanText, timeText } from "./format.js";
import { address, link, traceLink } from "./links.js";
import { amend } from "./router.js";
import { folded } from "./values.js";

export const timeNode = (ns) =>
  ns > 0 ? element("time", { datetime: new Date(ns / 1e6).toISOString() }, timeText(ns)) : "time unknown";

// { text, chars } as captured; long ones fold. None: the sender kept it.
export function captured(value, nothing = "Text not captured.") {
  return value ? folded(value.text || "(empty)", value.text.length, value.chars) : quiet(nothing);
}

// What changed, word by word: [{ text, kind }]. A screen reader is told where a change begins.
// Texts with nothing in common stand one below the other.
export function changes(segments, chars) {
  if (segments.length === 2 && !segments.some(({ kind }) => kind === "same")) {
    return segments.map((part) => marked([part], part.text.length));
  }
  return marked(segments, chars);
}

function marked(segments, stored) {
  const nodes = segments.map(({ text, kind }) => {
    if (kind === "same") return text;
    const said = element("span", { class: "hidden-text" }, kind === "added" ? " added: " : " removed: ");
    return element(kind === "added" ? "ins" : "del", {}, said, text);
  });
  const length = segments.reduce((sum, { text }) => sum + text.length, 0);
  return folded(nodes, length, Math.max(length, stored));
}

// The name of an operation, which opens it, and where it ran.
export const operation = (item) => [
  link(item.name || item.step || "operation", "operation", spanText(item.span)),
  item.service ? ` of ${item.service}` : null,
];

export const tag = (text, outcome, solid = false) =>
  element("span", { class: solid ? "tag solid" : "tag", "data-outcome": outcome }, text);

const WORDS = {
  failed: ["failed", "lost"],
  cleared: ["no memory fault", "kept"],
  unexplained: ["flagged, unexplained", "unknown"],
  flagged: ["flagged, not judged", "changed"],
  unflagged: ["no complaint", "unknown"],
};

// What is known against an answer; a verdict is a link to its failure.
export function judgement(answer) {
  if (!answer.outcome) return element("span", { class: "quiet" }, "not looked up");
  const [words, outcome] = WORDS[answer.outcome];
  if (!answer.verdict) return tag(words, outcome);
  const { id, stage, error_type: type } = answer.verdict;
  const said = answer.outcome === "failed" ? `${stage} / ${type}` : words;
  return element("a", { class: "tag", "data-outcome": outcome, href: address("failure", [id]) }, said);
}

export const saidIn = (answer) => answer.text ? ["“", excerpt(answer.text.text), "”"] : "answer without its text";

export const trace = (span) => traceLink(span, "trace");

// The id of a graph, shortened in the middle when it is a digest.
export const graphName = (id) =>
  id.length > 28 ? element("span", { class: "id whole", title: id }, `${id.slice(0, 16)}…${id.slice(-4)}`) : element("span", { class: "id whole" }, id);

// A sentence of ours: operations that it names are links, references stand in type of their own.
export const linked = (text) => text.split(/([0-9a-f]{32}:[0-9a-f]{16}|\b(?:mem|doc|msg|fact|query|ctx|ans):\S+@[^\s,;.]+)/).map((part, place) => {
  if (place % 2 === 0) return part;
  return part[32] === ":" ? link("this operation", "operation", part) : element("code", {}, part);
});

// One reference, as short as it can be read: its kind, and what tells it from others.
const KINDS = {
  msg: "message", fact: "fact", mem: "record", doc: "document", query: "question", ctx: "prompt",
  ans: "answer", prompt: "template",
};
export const kindOf = (ref) => KINDS[ref.slice(0, ref.indexOf(":"))] ?? "reference";

// A section whose list is read in pages without leaving the view. `list` has start, size, total;
// `draw(list)` gives nodes; `load(start)` the next list; `place(start)` the address it then has.
export function pagedSection({ id, title, list, draw, load, place }) {
  const heading = element("h3", { id, tabindex: "-1" });
  const section = element("section", { "aria-labelledby": id, class: "list" });
  const fill = (page) => {
    heading.textContent = `${title} (${page.total.toLocaleString("en")})`;
    section.replaceChildren(...[heading, draw(page), pager(page, go, title)].flat(Infinity).filter(Boolean));
  };
  let wanted = 0;
  const go = async (start) => {
    const asked = ++wanted;
    section.setAttribute("aria-busy", "true");
    try {
      const page = await load(start);
      if (asked !== wanted || !section.isConnected) return;
      fill(page);
      amend(place(start));
      heading.focus({ preventScroll: true });
      heading.scrollIntoView({ block: "nearest" });
    } catch (error) {
      section.append(element("p", { class: "error", role: "alert" }, error.message));
    }
    section.removeAttribute("aria-busy");
  };
  fill(list);
  return section;
}

function pager({ start, size, total }, go, title) {
  if (total <= size) return null;
  const last = Math.floor((total - 1) / size) * size;
  const step = (text, to, enabled) =>
    element("button", { type: "button", disabled: !enabled, onclick: () => go(to), "aria-label": `${text}: ${title}` }, text);
  return element("div", { class: "pager" },
    step("First", 0, start > 0),
    step("Previous", Math.max(0, start - size), start > 0),
    element("span", { class: "quiet" },
      `${(start + 1).toLocaleString("en")} to ${Math.min(total, start + size).toLocaleString("en")} of ${total.toLocaleString("en")}`),
    step("Next", start + size, start < last),
    step("Last", last, start < last));
}

// A field that names a graph: a choice of the latest, to be typed where there are very many.
export function graphField(graphs, value, { all = "", label = "Graph" } = {}) {
  if (graphs.total > graphs.items.length) {
    return element("label", {}, label,
      element("input", { name: "graph", value, list: "graphs-known", placeholder: all }),
      element("datalist", { id: "graphs-known" }, graphs.items.map((each) => element("option", { value: each.graph_id }))));
  }
  const options = graphs.items.map(({ graph_id: id }) => element("option", { value: id, selected: id === value }, id));
  return element("label", {}, label,
    element("select", { name: "graph" }, all ? element("option", { value: "" }, all) : null, options));
}

// A bar as wide as a share from 0 to 1.
export const bar = (share) => svg("svg", { class: "bar-of", viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true" },
  svg("rect", { x: 0, y: 0, width: Math.round(100 * Math.max(0, Math.min(1, share))), height: 6 }));
