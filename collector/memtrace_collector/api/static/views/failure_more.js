// What stands beside the path: other readings, the argument, replay, model calls, earlier verdicts.

import { element, excerpt, head, quiet } from "../lib/dom.js";
import { counted, spanText } from "../lib/format.js";
import { address, traceLink } from "../lib/links.js";
import { momentNode } from "../lib/moments.js";
import { sideBySide } from "../lib/values.js";

const words = (name) => name.replaceAll("_", " ");

function section(title, ...content) {
  return element("section", { class: "panel" }, element("h3", {}, title), content);
}

export function operationNode(item, name = "") {
  const text = item.operation || "an operation";
  if (!item.is_stored) return element("span", { class: name }, text);
  return element("a", { class: name, href: address("operation", [spanText(item.span)]) }, text);
}

function operation(item) {
  if (!item.span) return null;
  return [
    operationNode(item),
    [item.service, item.system].filter(Boolean).map((name) => ` · ${name}`).join(""), " ",
    traceLink(item.span, "in Jaeger"),
  ];
}

function rows(caption, header, cells) {
  return element("div", { class: "scrolls" }, element("table", {},
    element("caption", { class: "hidden-text" }, caption),
    head(header),
    element("tbody", {}, cells.map(([first, ...rest]) => element("tr", {},
      element("th", { scope: "row" }, first), rest.map((cell) => element("td", {}, cell)))))));
}

export function alternatives({ alternatives: others, also }) {
  if (!others.length && !also.length) return null;
  return section("Other readings",
    also.length ? quiet("Repairing one of these alone would have been enough too:") : null,
    also.length ? element("ul", {}, also.map((item) => element("li", {},
      `${words(item.error_type)}: `, operation(item),
      sideBySide(item.change, ["Last right", "First wrong"])))) : null,
    others.length ? rows("Less likely readings", ["Reading", "Decisive operation", "Score"],
      others.map((item) => [
        `${words(item.stage)} / ${words(item.error_type)}`,
        item.decisive.map((each) => element("div", {}, operation(each))),
        item.score.toFixed(2),
      ])) : null);
}

export function claims({ claims: made, verdict }) {
  return section("What the verdict rests on",
    element("p", { class: "explanation" }, verdict.explanation),
    made.length ? rows("Claims", ["Claim", "Value", "Operation"], made.map((claim) => [
      element("span", { class: "says" }, claim.says),
      claim.value ? claimed(claim.value) : "–",
      operation(claim) ?? "–"])) : quiet("No claim is recorded."));
}

const claimed = ({ text, ref }) => [
  text === null ? "" : excerpt(text, 300), element("div", {}, element("code", {}, ref)),
];

export function replay({ verdict: { replay: found } }) {
  if (!found) return null;
  const arms = [["with the right value put back", found.repaired], ["as it was", found.control]];
  return section("Replay",
    element("p", {}, element("strong", {}, words(found.result)), found.reason ? `: ${found.reason}` : ""),
    found.missing ? quiet(`It could not be replayed: ${words(found.missing)}.`) : null,
    found.steps?.length ? element("ul", {}, found.steps.map(step)) : null,
    arms.some(([, arm]) => arm) ? rows("Both prompts, asked again",
      ["Prompt", "Right", "Wrong", "Unclear", "Replies"],
      arms.filter(([, arm]) => arm).map(([name, arm]) => [name, arm.right, arm.wrong, arm.unclear,
        arm.replies.map((reply) => element("div", { class: "says" }, excerpt(reply, 300)))])) : null);
}

const step = ({ step: name, outcome, rank, assumed }) => element("li", {},
  `${words(name)}: ${words(outcome)}`, rank ? ` at rank ${rank}` : "", assumed ? " (assumed)" : "");

export function modelCalls({ verdict: { model } }) {
  if (!model) return null;
  const asked = model.asked ?? [];
  const tokens = (model.tokens?.prompt ?? 0) + (model.tokens?.completion ?? 0);
  const counts = [
    counted(model.calls, "call"), counted(tokens, "token"),
    model.cost ? `$${model.cost.toFixed(4)}` : "",
  ];
  return section("What a model was asked",
    element("p", {}, `${model.model}: ${counts.filter(Boolean).join(", ")}.`,
      model.stopped ? ` It was stopped: ${words(model.stopped)}.` : ""),
    asked.length < model.calls ? quiet(`The first ${asked.length} are kept.`) : null,
    asked.map(call));
}

function call(asked, place) {
  const says = { true: "yes", false: "no" }[asked.says] ?? asked.says ?? "nothing to build on";
  return element("details", { class: "others" },
    element("summary", {}, `${place + 1}. ${words(asked.kind ?? "question")}: ${says}`),
    asked.why ? element("p", { class: "says" }, asked.why) : null,
    asked.quote ? element("blockquote", { class: "says" }, asked.quote) : null,
    element("h4", {}, "Asked"), element("div", { class: "captured" }, asked.prompt),
    element("h4", {}, "Replied"), element("div", { class: "captured" }, asked.reply));
}

export function revisions({ revisions: all }) {
  if (all.length < 2) return null;
  const header = ["Revision", "Verdict", "What changed", "When", "Case trace"];
  return section("Revisions of this verdict", rows("Newest first", header, all.map((each) => [
    each.revision,
    `${words(each.stage)} / ${words(each.error_type)}, ${each.score.toFixed(2)} by ${each.method}`,
    each.says || "the first verdict",
    momentNode(each.created),
    each.case_trace ? traceLink({ traceId: each.case_trace, spanId: "" }, "in Jaeger") : "–",
  ])));
}
