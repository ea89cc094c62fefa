// What came of a message, an operation or a conversation: what a correction has to reach.

import { view } from "../lib/ask.js";
import { code, element, excerpt, quiet } from "../lib/dom.js";
import { counted, spanText } from "../lib/format.js";
import { address, link } from "../lib/links.js";
import {
  captured, graphField, graphName, judgement, kindOf, operation, saidIn, tag, timeNode, trace,
} from "../lib/told.js";

const KINDS = {
  fact: "Facts", doc: "Documents", query: "Questions", ctx: "Prompts", msg: "Messages",
  prompt: "Templates",
};

export async function showImpact([target], parameters) {
  return target ? impact(target) : choice(parameters);
}

async function impact(target) {
  const found = await view("impact", { target });
  const graphs = new Set([...found.starts, ...found.stored.items].map((item) => item.graph_id));
  const whose = graphs.size > 1 ? (item) => aside("in ", graphName(item.graph_id)) : () => null;
  return [
    element("h2", {}, "What came of ", code(found.target)),
    found.starts.map((item) => start(item, whose)),
    found.starts_left_out ? quiet(`and ${counted(found.starts_left_out, "more thing")} that it made`) : null,
    found.warnings.length
      ? element("div", { class: "notice", role: "note" }, found.warnings.map((text) => element("p", {}, tag("uncertain", "changed"), " ", text)))
      : null,
    element("p", { class: "totals" }, totals(found)),
    records(found, whose),
    answers(found.answers),
    found.kinds.map(kind),
  ];
}

function start(item, whose) {
  return element("section", { class: "panel", "aria-label": "What is asked about" },
    captured(item.text),
    element("div", { class: "row quiet" }, kindOf(item.ref), timeNode(item.time_ns), element("span", {}, "by ", operation(item)), trace(item.span), whose(item)));
}

function totals({ records: ids, stored, answers: given, kinds }) {
  const parts = [counted(stored.total, "record"), counted(given.total, "answer")];
  if (given.failed) parts[1] += ` (${given.failed} failed)`;
  kinds.forEach(({ kind: name, total }) => parts.push(counted(total, KINDS[name].slice(0, -1).toLowerCase())));
  return ids.length || given.total || kinds.length ? `${parts.join(" · ")} came of it.` : "Nothing came of it.";
}

function records({ records: ids, stored }, whose) {
  if (!ids.length) return null;
  return element("section", { "aria-labelledby": "records" },
    element("h3", { id: "records" }, `Records to correct or delete (${ids.length.toLocaleString("en")})`),
    copyable(ids),
    table("Each with its last version that came of it", ["Record", "What it says", "Came by", "State"], stored.items.map((item) => [
      [element("a", { class: "id", href: address("record", [item.graph_id, item.ref]) }, item.record), whose(item)],
      [text(item), item.versions > 1 ? aside(`${item.versions} versions`) : null],
      chain(item.chain),
      item.is_deleted ? tag("deleted already", "unknown") : tag("stored", "changed"),
    ])),
    left(stored));
}

// The ids, one per line or as JSON, to be taken into a program.
function copyable(ids) {
  const lines = ids.join("\n");
  const area = element("textarea", { id: "ids", readonly: true, rows: Math.min(8, Math.max(2, ids.length)), spellcheck: "false" });
  const says = element("span", { role: "status", class: "quiet" });
  const show = (json) => { area.value = json ? JSON.stringify(ids, null, 1) : lines; };
  show(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(area.value);
      says.textContent = `${counted(ids.length, "id")} copied`;
    } catch {
      area.select();
      says.textContent = "Selected: press Ctrl+C";
    }
  };
  const form = (name, json) => element("label", {},
    element("input", { type: "radio", name: "form", checked: !json, onchange: () => show(json) }), ` ${name}`);
  return element("div", { class: "copyable" },
    element("label", { for: "ids", class: "hidden-text" }, "Ids of the records"), area,
    element("div", { class: "row" },
      element("button", { type: "button", onclick: copy }, "Copy"),
      element("fieldset", { class: "row" }, element("legend", { class: "hidden-text" }, "Written as"), form("one per line", false), form("JSON", true)),
      says));
}

function answers(given) {
  if (!given.total) return null;
  return element("section", { "aria-labelledby": "answers" },
    element("h3", { id: "answers" }, `Answers given from it (${given.total.toLocaleString("en")})`),
    table("Newest first", ["Answer", "Verdict", "Came by", "When"], given.items.map((item) => [
      [link(saidIn(item), "answer", spanText(item.span)), item.question ? aside(["asked: ", excerpt(item.question.text, 140)]) : null],
      judgement(item),
      chain(item.chain),
      [timeNode(item.time_ns), " ", trace(item.span)],
    ])),
    left(given));
}

function kind({ kind: name, total, items }) {
  return element("details", { class: "kind-of", open: name === "fact" },
    element("summary", {}, element("h3", {}, `${KINDS[name]} (${total.toLocaleString("en")})`)),
    table(`${KINDS[name]}, oldest first`, ["What it says", "Made by", "Came by"], items.map((item) => [
      text(item), [operation(item), " ", trace(item.span), aside(timeNode(item.time_ns))], chain(item.chain),
    ])),
    left({ total, items }));
}

const aside = (...content) => element("div", { class: "quiet" }, content);

const text = (item) => item.text ? element("span", { class: "excerpt" }, excerpt(item.text.text, 240)) : element("span", { class: "quiet" }, "Text not captured.");

const left = ({ total, items }) =>
  total > items.length ? quiet(`${(total - items.length).toLocaleString("en")} more are not shown here.`) : null;

// message → fact → record, each a link to the operation that made it.
function chain(steps) {
  return element("ol", { class: "chain" }, steps.map((step) => element("li", {},
    element("a", { href: address("operation", [spanText(step.span)]), title: step.ref, "data-step": step.step }, kindOf(step.ref)))));
}

function table(caption, header, rows) {
  return element("div", { class: "scrolls derived" }, element("table", {},
    element("caption", {}, caption),
    element("thead", {}, element("tr", {}, header.map((each) => element("th", { scope: "col" }, each)))),
    element("tbody", {}, rows.map((cells) => element("tr", {}, cells.map((cell) => element("td", {}, cell)))))));
}

async function choice(parameters) {
  const found = await view("impact", parameters);
  const search = (event) => {
    event.preventDefault();
    const given = new FormData(event.target);
    location.hash = address("impact", [], { graph: given.get("graph"), text: given.get("text").trim() });
  };
  const open = (event) => {
    event.preventDefault();
    const target = new FormData(event.target).get("target").trim();
    if (target) location.hash = address("impact", [target]);
  };
  return [
    element("h2", {}, "What came of a message"),
    element("p", {}, "Choose a message: everything that was derived from it is shown, with the ids of the records to correct or delete."),
    element("form", { class: "filters", onsubmit: search, role: "search" },
      graphField(found.graphs, found.graph_id),
      element("label", {}, "Words of the message", element("input", { type: "search", name: "text", value: found.text, maxlength: 2000 })),
      element("button", { type: "submit", class: "primary" }, "Search")),
    element("form", { class: "filters", onsubmit: open },
      element("label", {}, "or a reference, TRACE:SPAN or conversation", element("input", { name: "target", size: 60, maxlength: 1000, class: "id" })),
      element("button", { type: "submit" }, "Open")),
    found.messages.length
      ? table(found.is_search ? `Best matches, at most ${found.bound}` : `The latest, at most ${found.bound}`, ["Message", "Said by", "Taken in"], found.messages.map((item) => [
        link(item.text ? excerpt(item.text.text, 240) : item.ref, "impact", item.ref),
        [item.role || "–", item.said_at ? element("div", { class: "quiet whole" }, item.said_at.slice(0, 10)) : null],
        [timeNode(item.time_ns), " ", item.span ? trace(item.span) : null],
      ]))
      : quiet(found.is_search ? "No message has these words." : "Search for words of the message."),
  ];
}
