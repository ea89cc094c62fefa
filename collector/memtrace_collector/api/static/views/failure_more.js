// What stands beside the path: other readings, the argument, replay, model calls, earlier verdicts.

import { element, quiet } from "../lib/dom.js";
import { spanText } from "../lib/format.js";
import { address, traceLink } from "../lib/links.js";
import { momentNode } from "../lib/moments.js";
import { excerpt, sideBySide } from "../lib/values.js";

const words = (name) => name.replaceAll("_", " ");

function section(title, ...content) {
  return element("section", { class: "panel" }, element("h3", {}, title), content);
}

function operation(item) {
  if (!item.span) return null;
  return [
    element("a", { href: address("operation", [spanText(item.span)]) }, item.operation || "an operation"),
    [item.service, item.system].filter(Boolean).map((name) => ` · ${name}`).join(""), " ",
    traceLink(item.span, "in Jaeger"),
  ];
}

function rows(caption, header, cells) {
  return element("div", { class: "scrolls" }, element("table", {},
    element("caption", { class: "hidden-text" }, caption),
    element("thead", {}, element("tr", {}, header.map((name) => element("th", { scope: "col" }, name)))),
    element("tbody", {}, cells.map(([first, ...rest]) => element("tr", {},
      element("th", { scope: "row" }, first), rest.map((cell) => element("td", {}, cell)))))));
}

export function alternatives({ alternatives: others, also }) {
  if (!others.length && !also.length) return null;
  return section("Other readings",
    also.length ? [quiet("Repairing one of these alone would have been enough too:"), element("ul", {}, also.map((item) =>
      element("li", {}, `${words(item.error_type)}: `, operation(item), sideBySide(item.change, ["Last right", "First wrong"]))))] : null,
    others.length ? rows("Less likely readings", ["Reading", "Decisive operation", "Score"], others.map((item) => [
      `${words(item.stage)} / ${words(item.error_type)}`,
      item.decisive.map((each) => element("div", {}, operation(each))),
      item.score.toFixed(2)])) : null);
}

export function claims({ claims: made, verdict }) {
  return section("What the verdict rests on",
    element("p", { class: "explanation" }, verdict.explanation),
    made.length ? rows("Claims", ["Claim", "Value", "Operation"], made.map((claim) => [
      element("span", { class: "says" }, claim.says),
      claim.value ? [claim.value.text === null ? "" : excerpt(claim.value.text, 300), element("div", {}, element("code", {}, claim.value.ref))] : "–",
      operation(claim) ?? "–"])) : quiet("No claim is recorded."));
}

export function replay({ verdict: { replay: found } }) {
  if (!found) return null;
  return section("Replay",
    element("p", {}, element("strong", {}, words(found.result)), `: ${found.runs} runs, ${found.flips} disagreed with the rest.`),
    found.reason ? element("p", {}, found.reason) : null);
}

export function modelCalls({ verdict: { model } }) {
  if (!model) return null;
  const asked = model.asked ?? [];
  const tokens = Object.values(model.tokens ?? {}).reduce((sum, each) => sum + Number(each || 0), 0);
  const counts = [`${model.calls} ${model.calls === 1 ? "call" : "calls"}`, tokens && `${tokens} tokens`, model.cost && `$${Number(model.cost).toFixed(4)}`];
  return section("What a model was asked",
    element("p", {}, `${model.model}: ${counts.filter(Boolean).join(", ")}. `, model.stopped ? `It was stopped: ${model.stopped}.` : ""),
    asked.map((call, place) => element("details", {},
      element("summary", {}, `Question ${place + 1}`),
      element("h4", {}, "Asked"), element("div", { class: "captured" }, promptText(call.prompt)),
      element("h4", {}, "Replied"), element("div", { class: "captured" }, promptText(call.reply)))));
}

const promptText = (given) => (typeof given === "string" ? given : JSON.stringify(given, null, 1));

export function revisions({ revisions: all }) {
  if (all.length < 2) return null;
  return section("Revisions of this verdict", rows("Newest first", ["Revision", "Verdict", "What changed", "When", "Case trace"], all.map((each) => [
    each.revision,
    `${words(each.stage)} / ${words(each.error_type)}, ${each.score.toFixed(2)} by ${each.method}`,
    each.says || "the first verdict",
    momentNode(each.created),
    each.case_trace ? traceLink({ traceId: each.case_trace, spanId: "" }, "in Jaeger") : "–"])));
}
