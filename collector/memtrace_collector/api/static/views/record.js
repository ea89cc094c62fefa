// A record's life: every version as a change to the one before, who wrote it and from what, who
// read it, and which answers had it.

import { view } from "../lib/ask.js";
import { code, element, excerpt, head, quiet } from "../lib/dom.js";
import { counted } from "../lib/format.js";
import { address, link } from "../lib/links.js";
import {
  captured, changes, graphName, judgement, linked, operation, pagedSection, saidIn, tag, timeNode, trace,
} from "../lib/told.js";
import { timeLine } from "./record_timeline.js";

const CHANGES = {
  created: ["created", "kept"],
  changed: ["changed", "changed"],
  unchanged: ["written again, unchanged", "unknown"],
  state: ["state changed, same text", "changed"],
  deleted: ["deleted", "lost"],
  unseen: ["written, text not seen", "unknown"],
};
const ROLES = { wrong: "it carried what was wrong", needed: "it held what was needed" };
const SHOWN_MESSAGES = 1;

export async function showRecord([graph, record], parameters) {
  const asked = { graph, record, ...parameters };
  const found = await view("record", asked);
  const place = { ...parameters };
  const section = (name, id, title, draw) => pagedSection({
    id, title, draw, list: found[name],
    load: async (start) => (await view("record", { ...asked, ...place, [name]: start }))[name],
    place: (start) => {
      place[name] = String(start);
      return address("record", [graph, record], place);
    },
  });
  return [
    element("h2", {}, "Record ", code(found.record)),
    summary(found),
    timeLine(found.timeline),
    found.is_all ? null : quiet("Very many operations met it: of them the first and the last are told here."),
    invariants(found),
    element("div", { class: "life" },
      element("div", {}, section("versions", "versions", "Versions", (list) => versions(found, list))),
      element("div", {},
        section("answers", "answers", "Answers it bears on", answers),
        section("reads", "reads", "Who read it", reads))),
  ];
}

function summary({ current, graph_id: graph, record, system, versions, reads, answers }) {
  const state = current.is_deleted
    ? [tag("deleted", "lost"), " ", timeNode(current.time_ns)]
    : [`v${current.number} is current, written `, timeNode(current.time_ns)];
  return element("div", { class: "row" },
    element("span", {}, state),
    element("span", { class: "quiet" }, [
      counted(versions.total, "version"), counted(reads.total, "reading"), counted(answers.total, "answer"),
    ].join(" · ")),
    element("span", { class: "quiet" }, `${system || "unknown system"}, graph `, graphName(graph)),
    link("What came of it", "impact", record),
    element("a", { href: address("invariants", [], { graph }) }, "Invariants of this graph"));
}

function invariants(found) {
  if (!found.invariants.length) return null;
  return element("section", { class: "notice broken", "aria-labelledby": "broken" },
    element("h3", { id: "broken" }, `Invariants that it broke (${found.invariants.length + found.invariants_left_out})`),
    element("ul", { class: "bare" }, found.invariants.slice(-8).reverse().map((item) => element("li", {},
      tag(item.kind.replace("_", " "), "lost"), " ", linked(item.says), ", at ", operation(item), " ", trace(item.span)))),
    found.met > found.checked ? quiet(`Looked at the last ${counted(found.checked, "operation")} of ${found.met.toLocaleString("en")} that met it.`) : null);
}

function versions(found, list) {
  return list.items.map((version) => {
    const [words, outcome] = CHANGES[version.change];
    const id = `v${version.number}`;
    return element("article", { class: "version", "data-outcome": outcome, "data-row": true, "aria-labelledby": id },
      element("h4", { id },
        element("span", { class: "number-of" }, `v${version.number}`), " ", tag(words, outcome),
        version.is_current && version.change !== "deleted" ? tag("current", "kept") : null,
        version.number === found.asked ? tag("asked for", "unknown") : null,
        version.is_back ? tag("an earlier value is back", "changed") : null,
        version.is_tie ? tag("same moment as its neighbour", "changed") : null,
        version.broke.map((verdict) => element("a", { class: "tag solid", href: address("failure", [verdict.id]) },
          `broke an answer: ${verdict.stage} / ${verdict.error_type}`))),
      version.segments?.length ? changes(version.segments, version.text?.chars ?? 0) : captured(version.text, version.change === "deleted" ? "From here on the record says nothing." : undefined),
      version.state ? element("p", {}, "Its state (validity, tags and the like) went from ", digest(version.state.before), " to ", digest(version.state.after), ".") : null,
      origin(version));
  });
}

const digest = (state) => code(state || "none");

function origin(version) {
  const row = (name, ...content) => [element("dt", {}, name), element("dd", {}, content)];
  return element("dl", { class: "facts" },
    row(version.change === "deleted" ? "Deleted" : "Written", timeNode(version.time_ns), " by ", operation(version), version.error ? [" ", tag(`error: ${version.error}`, "lost")] : null, " ", trace(version.span)),
    version.decisions.length ? row("Decided", version.decisions.map(decision)) : null,
    version.messages.length ? row("From", messages(version)) : null,
    version.records.length ? row("And from", version.records.map((ref) => element("div", {}, link(ref, "record", version.graph_id, ref)))) : null,
    version.supersedes.length ? row("Replaced", version.supersedes.map((each) => each.number ? `v${each.number} ` : element("code", {}, each.ref))) : null,
    version.change === "deleted" && !version.reads ? null : row("Then", `${counted(version.reads, "delivery", "deliveries")}, in ${counted(version.answers, "answer")}`),
    version.lineage !== "complete" || !version.is_all
      ? row("Lineage", version.is_all ? version.lineage : `${version.lineage}, and more than is shown`) : null);
}

const decision = (item) => element("div", {},
  item.action ? [tag(item.action, "unknown"), item.status ? ` ${item.status}` : null, " by "] : "by ", operation(item), " ", trace(item.span));

function messages(version) {
  const drawn = version.messages.map((message) => element("blockquote", { class: "message-said" },
    element("div", { class: "quiet" },
      [message.role || "message", message.said_at.slice(0, 10)].filter(Boolean).join(", "), " · ",
      link(message.ref, "impact", message.ref), " ", trace(message.span)),
    message.text ? excerpt(message.text.text, 500) : "Text not captured."));
  const rest = drawn.slice(SHOWN_MESSAGES);
  const left = version.messages_left_out;
  return [
    drawn.slice(0, SHOWN_MESSAGES),
    rest.length
      ? element("details", {}, element("summary", {}, `${counted(rest.length, "more message")} of the same batch`), rest,
        left ? quiet(`and ${left.toLocaleString("en")} that are not shown`) : null)
      : null,
  ];
}

function answers(list) {
  if (!list.total) return quiet("No answer had it, as far as was recorded.");
  return [
    list.unlooked ? quiet(`Verdicts of the ${counted(list.total - list.unlooked, "newest answer")} were looked up.`) : null,
    element("div", { class: "scrolls" }, element("table", {},
      element("caption", {}, list.failed ? `${counted(list.failed, "failure")} first, then the newest` : "Newest first"),
      head(["Answer", "Verdict", "Had"]),
      element("tbody", {}, list.items.map((item) => element("tr", {},
        element("td", {},
          link(saidIn(item), "answer", `${item.span.traceId}:${item.span.spanId}`),
          item.question ? element("div", { class: "quiet" }, "asked: ", excerpt(item.question.text, 120)) : null,
          element("div", { class: "quiet" }, timeNode(item.time_ns), " ", trace(item.span))),
        element("td", {}, judgement(item), item.role ? element("div", { class: "quiet" }, ROLES[item.role]) : null),
        element("td", {}, item.is_without ? element("span", { class: "quiet" }, "not in its prompt") : item.had.map((number) => `v${number}`).join(", ") || "another version")))))),
  ];
}

function reads(list) {
  if (!list.total) return quiet("No search considered it, as far as was recorded.");
  const kinds = [...new Set(list.items.map((item) => item.score_kind).filter(Boolean))];
  return element("div", { class: "scrolls" }, element("table", {},
    element("caption", {}, kinds.length === 1 ? `Newest first; the score is a ${kinds[0]}` : "Newest first"),
    head(["Read", "Rank", "Score", "Version"]),
    element("tbody", {}, list.items.map((item) => element("tr", {},
      element("td", {}, operation(item),
        element("div", { class: "quiet" }, timeNode(item.time_ns), item.is_for_writing ? ", to write" : null, " ", trace(item.span))),
      element("td", { class: "whole" }, rank(item)),
      element("td", { class: "score" }, item.score === null ? "–" : item.score.toFixed(3),
        kinds.length > 1 ? element("div", { class: "quiet" }, item.score_kind) : null),
      element("td", {}, item.number ? `v${item.number}` : code(item.ref.slice(item.ref.lastIndexOf("@")))))))));
}

function rank(item) {
  const place = item.rank === null ? "unknown" : item.reason ? `${item.rank}` : `${item.rank} of ${item.of}`;
  return [place, item.reason ? element("div", {}, tag(`cut: ${item.reason}`, "lost")) : null];
}
