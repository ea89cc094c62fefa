import { view } from "../lib/ask.js";
import { code, element, quiet } from "../lib/dom.js";
import { counted, spanText } from "../lib/format.js";
import { lastList } from "../lib/kept.js";
import { address, traceLink } from "../lib/links.js";
import { between, momentNode } from "../lib/moments.js";
import { figure, figureOf, sideBySide } from "../lib/values.js";
import { actions } from "./failure_actions.js";
import { alternatives, claims, modelCalls, operationNode, replay, revisions } from "./failure_more.js";
import { pathList, whatWasLost } from "./failure_path.js";
import { judgePanel } from "./judge.js";

const CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY";

export async function showFailure([id = ""]) {
  const failure = await view("failure", { id });
  return [
    element("p", {}, element("a", { href: lastList() }, "All failures")),
    element("h2", {}, failure.headline),
    tags(failure),
    withoutTexts(failure),
    asked(failure),
    decisive(failure),
    element("div", { class: "failure-columns" },
      element("div", {},
        element("h3", {}, "The path of the information"),
        pathList(failure)),
      element("aside", { "aria-label": "About this verdict" },
        actions(failure), facts(failure), judgePanel(failure, shownAgain), links(failure))),
    alternatives(failure), claims(failure), replay(failure), modelCalls(failure), revisions(failure),
  ];
}

// As after going back: the router shows the view anew, at the place where it was.
const shownAgain = () => dispatchEvent(new PopStateEvent("popstate", { state: history.state }));

function tags({ verdict, is_memory_fault: isMemory }) {
  const details = [verdict.aspect && `its ${verdict.aspect}`, verdict.mechanism].filter(Boolean).join(", ");
  return element("p", { class: "row failure-tags", "data-stage": verdict.stage },
    element("span", { class: "tag" }, verdict.stage.replaceAll("_", " ")),
    element("strong", {}, verdict.error_type.replaceAll("_", " ")),
    details ? element("span", {}, `(${details.replaceAll("_", " ")})`) : null,
    element("span", { class: "quiet" }, isMemory ? "a fault of memory" : "not a fault of memory"),
    element("span", {}, "graph ",
      element("a", { href: address("failures", [], { graph: verdict.graph_id }) }, verdict.graph_id)));
}

function withoutTexts({ texts, answer }) {
  if (!answer.is_stored) {
    return element("p", { class: "notice" },
      "The spans of this failure are no longer in the store. ",
      "What the verdict says of them is shown; the texts are gone.");
  }
  if (!texts.unknown) return null;
  const all = texts.known + texts.unknown;
  return element("div", { class: "notice" },
    element("p", {}, texts.known
      ? `Of ${all} values on this page, ${texts.unknown} were not captured; digests stand in their place.`
      : "Texts were not captured: the path is told by digests, ids and outcomes."),
    element("p", {}, "To capture texts, set ", code(CAPTURE), " where the agent runs."));
}

function asked({ question, answer, flag, is_memory_fault: isMemory }) {
  const expected = flag?.expected;
  return element("section", { class: "asked", "aria-label": "The question and its answer" },
    question.map((value, place) => figure(place ? "Asked, as rewritten" : "Asked", { ...value, role: "plain" })),
    answer.given.map((value) => figure("Answered", { ...value, role: isMemory ? "wrong" : "plain" })),
    expected === null || expected === undefined ? null
      : figureOf("Expected", "right", expected === ""
        ? element("p", { class: "no-text" }, "That it declines: there was nothing to know.")
        : element("div", { class: "captured" }, expected)),
    flag ? flagged(flag) : null);
}

function flagged({ reason, source, time }) {
  return figureOf("Flagged", "plain",
    element("div", { class: "captured" }, reason || "(no reason given)"),
    quiet(`by ${source || "an unnamed source"}, `, momentNode(time)));
}

function decisive(failure) {
  if (!failure.decisive.length) return noDecisive(failure);
  return element("section", { class: "culprits", "aria-label": "Decisive operation" },
    failure.decisive.map((loss) => culprit(loss, failure)));
}

function culprit(loss, { path, answer, flag }) {
  const hop = path.find((each) => each.span && spanText(each.span) === spanText(loss.span));
  const before = between(loss.time, answer.time);
  return element("div", { class: "culprit", "data-outcome": "lost" },
    element("p", { class: "row" },
      element("span", { class: "tag solid" }, "decisive"),
      operationNode(loss, "operation-name"),
      element("span", {}, [loss.service, loss.system].filter(Boolean).join(" · ")),
      momentNode(loss.time),
      before ? element("span", {}, `${before} before the answer`) : null,
      traceLink(loss.span, "in Jaeger")),
    sideBySide(loss.change, ["Last right", loss.change.after ? "First wrong" : "Then"],
      whatWasLost(hop), flag?.expected));
}

function noDecisive({ verdict }) {
  const missing = verdict.missing.join(", ").replaceAll("_", " ");
  return element("div", { class: "notice" },
    element("p", {}, "No operation is named as decisive. ", missing && `Missing: ${missing}.`),
    element("p", {}, verdict.explanation));
}

function facts({ verdict, evidence, flag }) {
  const origin = flag?.evidence_given ? "given" : "searched for";
  const rows = [
    ["Basis", verdict.basis.join(", ") || "a person's word"],
    ["Found by", verdict.method],
    ["Score", `${verdict.score.toFixed(2)}, not a probability`],
    ["Lineage", verdict.lineage],
    ["Absence", verdict.absence],
    ["Missing", verdict.missing.join(", ") || "nothing"],
    ["Evidence", evidence.length ? `${counted(evidence.length, "message")}, ${origin}` : "none"],
    ["Judged", momentNode(verdict.created)],
    ["Revision", verdict.revision],
  ];
  return element("div", { class: "panel" },
    element("h3", {}, "The verdict"),
    element("dl", { class: "facts" },
      rows.map(([name, value]) => [element("dt", {}, name), element("dd", {}, value)])));
}

function links({ verdict, answer }) {
  const span = spanText(answer.span);
  const graph = (of, text) => element("a", { href: address("graph", [span], { of }) }, text);
  const trace = verdict.case_trace ? { traceId: verdict.case_trace, spanId: "" } : null;
  return element("div", { class: "panel" },
    element("h3", {}, "Look further"),
    element("ul", { class: "plain-list" },
      element("li", {}, traceLink(answer.span, "the answer in Jaeger")),
      trace ? element("li", {}, traceLink(trace, "the case trace in Jaeger")) : null,
      answer.is_stored ? [
        element("li", {}, graph("ancestry", "what the answer rests on, as a graph")),
        element("li", {}, graph("case", "the whole case, as a graph")),
        element("li", {}, element("a", { href: address("why", [span]) }, "what was considered for the answer")),
      ] : null));
}
