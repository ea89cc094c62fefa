import { ask } from "../lib/ask.js";
import { code, element, table } from "../lib/dom.js";
import { spanText, timeText } from "../lib/format.js";
import { link } from "../lib/links.js";

function hopItem(graphId, hop) {
  return element(
    "li",
    { class: hop.decisive ? `${hop.outcome} decisive` : hop.outcome },
    element("span", { class: "kind" }, `${hop.kind}: ${hop.outcome}`),
    element("div", {}, hop.says),
    element("div", { class: "quiet" }, [hop.service, hop.operation, timeText(hop.time_ns)].filter(Boolean).join(" · ")),
    hop.span ? element("div", { class: "id" }, spanText(hop.span)) : null,
    hop.record ? element("div", {}, "record ", link(hop.record, "record", graphId, hop.record)) : null,
    hop.versions.map((version) => element("div", { class: "id" }, version)),
  );
}

export async function showFailure([id]) {
  const verdict = (await ask("/verdicts")).find((candidate) => candidate.id === id);
  if (!verdict) throw new Error("There is no such verdict.");
  return [
    element("h2", {}, `${verdict.stage} / ${verdict.error_type}`),
    element("p", {}, verdict.explanation),
    table("The verdict", ["", ""], [
      ["Answer", code(spanText(verdict.answer))],
      ["Graph", verdict.graph_id],
      ["Decisive", code(verdict.decisive.map(spanText).join(", ") || "–")],
      ["Last right", code(verdict.last_right ?? "–")],
      ["First wrong", code(verdict.first_wrong ?? "–")],
      ["Basis", `${verdict.basis.join(", ")} (${verdict.method}); score ${verdict.score.toFixed(2)}, not a probability`],
      ["Lineage, absence", `${verdict.lineage}, ${verdict.absence}`],
      ["Missing", verdict.missing.join(", ") || "–"],
      ["Case trace", code(verdict.case_trace ?? "–")],
    ]),
    element("h3", {}, "The path of the information"),
    element("ol", { class: "path" }, (verdict.path ?? []).map((hop) => hopItem(verdict.graph_id, hop))),
    element("h3", {}, "Evidence"),
    element("ul", {}, verdict.evidence.map((claim) =>
      element("li", {}, claim.says, " ", element("span", { class: "id" }, claim.ref ?? spanText(claim.span))))),
  ];
}
