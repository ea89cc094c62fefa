// What was found without any flag: rules that every memory has to keep, and where they were broken.

import { view } from "../lib/ask.js";
import { element, excerpt, head, quiet } from "../lib/dom.js";
import { counted, spanText } from "../lib/format.js";
import { address, link } from "../lib/links.js";
import { graphField, graphName, linked, pagedSection, tag, timeNode, trace } from "../lib/told.js";

const NAMES = {
  stale: "stale", zombie: "zombie", foreign: "foreign", lost_write: "lost write",
  flapping: "flapping", empty_retrieval: "empty retrieval",
};

export async function showInvariants(_, parameters) {
  const found = await view("invariants", parameters);
  const place = { ...parameters };
  const filter = (event) => {
    event.preventDefault();
    const graph = new FormData(event.target).get("graph");
    location.hash = address("invariants", [], { kind: found.kind, graph });
  };
  return [
    element("h2", {}, "Invariants"),
    element("p", {}, "Faults found from structure alone, without a flag, a model or content."),
    element("form", { class: "filters", onsubmit: filter },
      graphField(found.graphs, found.graph_id, { all: "the latest graphs" }),
      element("button", { type: "submit" }, "Show")),
    found.checked < found.known ? quiet(`Looked at: ${counted(found.checked, "graph")} of ${found.known.toLocaleString("en")}, those written last. Choose another above.`) : null,
    kinds(found),
    pagedSection({
      id: "findings", title: found.kind ? `Found: ${NAMES[found.kind]}` : "Found", list: found.findings,
      draw: (list) => findings(list, found),
      load: async (start) => (await view("invariants", { ...place, start })).findings,
      place: (start) => {
        place.start = String(start);
        return address("invariants", [], place);
      },
    }),
  ];
}

function kinds({ kind: chosen, graph_id: graph, kinds: known }) {
  const card = (name, title, meaning, count) => element("li", {},
    element("a", { href: address("invariants", [], { kind: name, graph }), "aria-current": name === chosen ? "true" : null },
      element("span", { class: "row" }, element("strong", {}, title), tag(String(count), count ? "lost" : "kept")),
      element("span", { class: "quiet" }, meaning)));
  const total = known.reduce((sum, { count }) => sum + count, 0);
  return element("nav", { "aria-label": "Kinds of findings" }, element("ul", { class: "cards" },
    card("", "everything", "All kinds together.", total),
    known.map(({ kind, meaning, count }) => card(kind, NAMES[kind], meaning, count))));
}

function findings(list, { kind, checked, known }) {
  if (!checked && known) return quiet("Every graph is too large to be checked with others: choose one above.");
  if (!list.total) return quiet(kind ? `Nothing of this kind was found in ${counted(checked, "graph")}.` : `Nothing was found in ${counted(checked, "graph")}: every delivery was current, every decision was carried out.`);
  return element("div", { class: "scrolls" }, element("table", {},
    element("caption", {}, "Newest first"),
    head(["Kind", "What was found", "Operation", "When", "Graph"]),
    element("tbody", {}, list.items.map((item) => element("tr", {},
      element("td", {}, tag(NAMES[item.kind], "lost")),
      element("td", {}, item.text ? element("q", {}, excerpt(item.text.text, 200)) : null,
        element("div", { class: "finding" }, linked(item.says)),
        item.record ? element("a", { class: "id", href: address("record", [item.record_graph_id, item.ref]) }, item.record) : null),
      element("td", {}, link(item.name || "operation", "operation", spanText(item.span)), item.service ? ` of ${item.service}` : null, " ", trace(item.span)),
      element("td", {}, timeNode(item.time_ns)),
      element("td", {}, graphName(item.graph_id)))))));
}
