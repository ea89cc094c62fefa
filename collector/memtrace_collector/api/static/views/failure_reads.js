// What a retrieval considered, and what a prompt held.

import { element, head } from "../lib/dom.js";
import { digestOf, figureOf, partNodes, valueNodes } from "../lib/values.js";

const ROLES = { right: ["✓", "right"], wrong: ["✗", "wrong"] };

export function retrievalNodes({ read, operation }) {
  return [
    read.queries.length ? figureOf("Searched for", "plain", read.queries.map(valueNodes)) : null,
    read.candidates.length ? candidates(read, operation) : element("p", { class: "notice" }, "It found nothing."),
  ];
}

function candidates(read, operation) {
  const limits = Object.entries(read.limits).map(([name, value]) => `${name} ${value}`).join(", ");
  const caption = [
    `What ${operation} considered, best first`, limits && `limit ${limits}`,
    read.score_kind && `score: ${read.score_kind}`, read.left_out ? `${read.left_out} more are not shown` : "",
  ].filter(Boolean).join("; ");
  return element("div", { class: "scrolls" }, element("table", { class: "candidates" },
    element("caption", {}, caption),
    head(["Rank", "Score", "What became of it", "Value"]),
    element("tbody", {}, read.candidates.map(candidate))));
}

function candidate(item) {
  return element("tr", { "data-role": item.role || "plain" },
    element("th", { scope: "row", class: "number" }, item.rank ?? "–"),
    element("td", { class: "number" }, item.score === null ? "–" : item.score.toFixed(3)),
    element("td", {}, roleTag(item.role), item.outcome, item.reason ? `: ${item.reason}` : "",
      item.beat ? element("div", {}, element("span", { class: "tag" }, "beat the right one")) : null,
      item.used ? element("div", { class: "quiet" }, "its words stand in the reply") : null),
    element("td", { class: "captured-cell" }, item.text ?? element("code", {}, digestOf(item))));
}

function roleTag(role) {
  if (!ROLES[role]) return null;
  const [sign, word] = ROLES[role];
  return [element("span", { class: "tag", "data-outcome": role === "right" ? "kept" : "lost" }, `${sign} ${word}`), " "];
}

function promptNodes(prompt, isOnly) {
  const isTelling = prompt.parts.some(({ role }) => role);
  return element("details", { class: "prompt", open: isTelling },
    element("summary", {}, isOnly || isTelling ? "The prompt" : "Another part of the prompt"),
    prompt.parts.length ? element("div", { class: "captured" }, partNodes(prompt.parts)) : valueNodes(prompt));
}

export function contextNodes(hop) {
  const { prompts, holds, cut, left_out: leftOut } = hop.context;
  return [
    prompts.map((prompt) => promptNodes(prompt, prompts.length === 1)),
    values(`What the model was given${leftOut ? `; ${leftOut} more are not shown` : ""}`, holds),
    values("Left out of the prompt", cut),
  ];
}

function values(label, items) {
  if (!items.length) return null;
  return element("details", { class: "others", open: items.some(({ role }) => role) },
    element("summary", {}, `${label} (${items.length})`),
    element("ul", {}, items.map((item) => element("li", { "data-role": item.role || "plain" },
      roleTag(item.role), item.reason ? `${item.reason}: ` : "", item.text ?? element("code", {}, item.ref)))));
}
