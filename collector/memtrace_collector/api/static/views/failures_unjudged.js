// Flagged answers without a verdict: failed too often, waited for, or not yet arrived.

import { element, head } from "../lib/dom.js";
import { counted, spanText } from "../lib/format.js";
import { address } from "../lib/links.js";
import { momentNode } from "../lib/moments.js";

const STATES = {
  set_aside: ["set aside", "It failed too often. memtrace-otel attribute tries it again."],
  waiting: ["waiting", "It is judged when its lineage is settled, at the latest after five minutes."],
  unresolved: ["no answer yet", "The answer that the flag names has not arrived."],
};

export function unjudged({ cases, unjudged: listed }) {
  const counts = Object.keys(STATES).filter((state) => cases[state])
    .map((state) => `${cases[state]} ${STATES[state][0]}`);
  if (!counts.length) return [];
  const header = ["Answer", "State", "Why", "Graph", "Answered"];
  return [element("details", { class: "unjudged", open: cases.set_aside > 0 },
    element("summary", {}, element("h3", {}, `Not judged: ${counts.join(", ")}`)),
    element("div", { class: "scrolls" }, element("table", {},
      element("caption", { class: "hidden-text" }, "Flagged answers without a verdict"),
      head(header),
      element("tbody", {}, listed.map(row)))))];
}

function row(item) {
  const [state, meaning] = STATES[item.state];
  const span = item.answer.spanId ? spanText(item.answer) : item.answer.traceId;
  return element("tr", {},
    element("td", {}, answer(item, span)),
    element("td", {}, element("span", { class: "tag" }, state)),
    element("td", {}, item.reason ? [
      element("div", {}, item.reason),
      element("div", { class: "quiet" }, `${counted(item.attempts, "attempt")}. ${meaning}`),
    ] : meaning),
    element("td", {}, item.graph_id ? element("code", {}, item.graph_id) : "–"),
    element("td", { class: "when" }, item.answered ? momentNode(item.answered) : "–"));
}

function answer(item, span) {
  if (item.graph_id) return element("a", { href: address("why", [span]), class: "id" }, span);
  return element("code", {}, span || item.named);
}
