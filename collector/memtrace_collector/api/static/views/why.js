// The receipt of an answer: what was considered for it, and why something was recalled or was not.

import { view } from "../lib/ask.js";
import { code, element, excerpt, head, quiet } from "../lib/dom.js";
import { counted, spanText } from "../lib/format.js";
import { address, link } from "../lib/links.js";
import { amend } from "../lib/router.js";
import {
  bar, captured, graphField, graphName, judgement, kindOf, linked, operation, pagedSection, saidIn, tag, timeNode, trace,
} from "../lib/told.js";

const OUTCOMES = {
  injected: ["recalled", "kept"],
  returned: ["returned, left out of the prompt", "changed"],
  cut: ["considered and cut", "lost"],
  not_considered: ["stored, not considered", "lost"],
  replaced: ["stored once, replaced since", "lost"],
  deleted: ["deleted before", "lost"],
  later: ["written only later", "unknown"],
  foreign: ["another owner's", "lost"],
  unwritten: ["nobody wrote it", "unknown"],
  never_stored: ["said, never stored", "lost"],
  left_out: ["said, not stored in these words", "lost"],
  not_searched: ["stored, no search was made", "lost"],
};

// What the text shown is, where that is not plain.
const HELD = {
  replaced: "What the record held instead, when the answer was given:",
  never_stored: "What was said:",
  left_out: "What was said:",
  later: "What it said at first:",
};

export async function showWhy([answer], parameters) {
  return answer ? receipt(answer, parameters) : choice(parameters);
}

async function receipt(answer, { about = "" }) {
  const found = await view("why", { answer, about });
  const told = element("div", { "aria-live": "polite", id: "told" }, about ? drawAbout(found) : null);
  return [
    element("h2", {}, "Why this answer"),
    element("section", { class: "panel", "aria-label": "The answer" },
      found.answer.question ? element("p", {}, element("span", { class: "quiet" }, "Asked: "), excerpt(found.answer.question.text, 300)) : null,
      captured(found.answer.text, "The text of the reply was not captured."),
      element("div", { class: "row" }, judgement(found.answer), timeNode(found.answer.time_ns),
        element("span", { class: "quiet" }, found.answer.service), trace(found.answer.span),
        link("The graph behind it", "graph", spanText(found.answer.span)))),
    question(answer, about, told),
    told,
    element("h3", {}, found.reads.length ? `What was considered (${counted(found.reads.length, "read")})` : "What was considered"),
    found.reads.length ? null : quiet("No search was recorded for this answer."),
    found.lineage === "complete" ? null : quiet(`The lineage of this answer is ${found.lineage}.`),
    found.reads.map(read),
  ];
}

function question(answer, about, told) {
  const field = element("input", {
    type: "search", name: "about", id: "about", value: about, maxlength: 2000, autocomplete: "off",
    "aria-describedby": "about-says",
  });
  const ask = async (event) => {
    event.preventDefault();
    const what = field.value.trim();
    if (!what) return;
    told.setAttribute("aria-busy", "true");
    try {
      const found = await view("why", { answer, about: what });
      if (!told.isConnected) return;
      told.replaceChildren(...drawAbout(found));
      amend(address("why", [answer], { about: what }));
    } catch (error) {
      told.replaceChildren(element("p", { class: "error" }, error.message));
    }
    told.removeAttribute("aria-busy");
  };
  return element("form", { class: "filters ask", onsubmit: ask, role: "search" },
    element("label", { for: "about" }, "Why was this recalled, or not?", field),
    element("button", { type: "submit", class: "primary" }, "Ask"),
    element("p", { class: "quiet", id: "about-says" }, "A text, a record (mem:…) or any reference."));
}

function drawAbout({ about, answer }) {
  return [
    element("h3", {}, "About ", element("q", {}, excerpt(about.what, 120))),
    about.says ? element("p", {}, `${about.says[0].toUpperCase()}${about.says.slice(1)}`) : null,
    about.found.map((item) => told(item, answer)),
  ].flat(Infinity).filter(Boolean);
}

function told(item, answer) {
  const [words, outcome] = OUTCOMES[item.outcome];
  const home = item.graph_id || answer.graph_id;
  return element("article", { class: "panel told", "data-outcome": outcome, "data-row": true },
    element("p", { class: "row" }, tag(words, outcome, false),
      item.is_record && item.graph_id ? link(item.record, "record", home, item.ref || item.record) : code(item.record)),
    item.text ? [element("p", { class: "quiet" }, HELD[item.outcome] ?? "What it says:"), captured(item.text)] : null,
    element("ul", { class: "sentences" }, item.says.map(({ text, span }) =>
      element("li", {}, linked(text), span ? [" ", link("operation", "operation", spanText(span)), " ", trace(span)] : null))),
    item.beaten_by.length
      ? element("div", {}, element("h4", {}, "What was returned in its place"),
        element("ol", {}, item.beaten_by.map((other) => element("li", {},
          other.text ? excerpt(other.text.text, 200) : "Text not captured. ", " ", link(kindOf(other.ref), "record", home, other.ref)))))
      : null);
}

function read(item) {
  const limits = Object.entries(item.limits).map(([name, value]) => `${name} = ${value}`).join(", ");
  return element("section", { class: "read-of" },
    element("h4", {}, operation(item), " ", trace(item.span)),
    element("div", { class: "quiet" }, timeNode(item.time_ns), item.asked ? [" · searched for ", element("q", {}, excerpt(item.asked.text, 200))] : null,
      limits ? ` · ${limits}` : null, item.reads.length ? ` · also in ${item.reads.join(", ")}` : null),
    element("div", { class: "scrolls" }, element("table", { class: "considered" },
      element("caption", {}, `${item.returned} returned, ${item.cut} considered and cut`,
        item.truncated ? `; ${item.truncated} more were cut and not recorded` : null,
        item.left_out ? `; ${counted(item.left_out, "candidate")} left out here` : null),
      head(["Rank", item.score_kind ? `Score (${item.score_kind})` : "Score", "What became of it", "In the reply", "What it says"]),
      element("tbody", {}, item.candidates.map(candidate)))));
}

function candidate(item) {
  const [words, outcome] = { ...OUTCOMES, injected: ["in the prompt", "kept"], cut: [`cut: ${item.reason}`, "lost"] }[item.outcome];
  const used = { true: "has words of it", false: "no word of it", null: "unknown" }[item.used];
  const score = item.score;
  return element("tr", {},
    element("td", {}, item.rank ?? "–"),
    element("td", { class: "score" }, score === null ? "–" : [score.toFixed(3), score >= 0 && score <= 1 ? bar(score) : null]),
    element("td", {}, tag(words, outcome)),
    element("td", {}, item.outcome === "injected" ? used : "–"),
    element("td", {}, item.text ? excerpt(item.text.text, 280) : quiet("Text not captured."),
      element("div", {}, stored(item))));
}

const stored = (item) => ["mem", "doc"].includes(item.ref.split(":")[0])
  ? element("a", { class: "id", href: address("record", [item.graph_id, item.ref]) }, item.record)
  : code(item.record);

async function choice(parameters) {
  const found = await view("why", parameters);
  const place = { ...parameters };
  const filter = (event) => {
    event.preventDefault();
    location.hash = address("why", [], { graph: new FormData(event.target).get("graph") });
  };
  return [
    element("h2", {}, "Why was it recalled, or not?"),
    element("p", {}, "Choose an answer: its receipt shows everything that was considered for it, with rank and score, and you may ask why something was recalled or was not."),
    element("form", { class: "filters", onsubmit: filter },
      graphField(found.graphs, found.graph_id, { all: "the latest graphs" }),
      element("button", { type: "submit" }, "Show")),
    found.looked_at < found.known ? quiet(found.graph_id
      ? "This graph is too large to go through for its answers: only those flagged are listed."
      : `Gone through: ${counted(found.looked_at, "graph")} of ${found.known.toLocaleString("en")}, those written last. Choose another above.`) : null,
    pagedSection({
      id: "answers", title: "Answers", list: found.answers, draw: (list) => answers(list, found.flagged),
      load: async (start) => (await view("why", { ...place, start })).answers,
      place: (start) => {
        place.start = String(start);
        return address("why", [], place);
      },
    }),
  ];
}

function answers(list, flagged) {
  if (!list.total) return quiet("No answer has been recorded yet.");
  return element("table", {},
    element("caption", {}, flagged ? `${counted(flagged, "flagged answer")} first, then the newest` : "Newest first"),
    head(["Question", "Answer", "Verdict", "Graph", "When"]),
    element("tbody", {}, list.items.map((item) => element("tr", {},
      element("td", {}, link(item.question ? excerpt(item.question.text) : "question without its text", "why", spanText(item.span))),
      element("td", {}, saidIn(item)),
      element("td", {}, judgement(item)),
      element("td", {}, graphName(item.graph_id)),
      element("td", {}, timeNode(item.time_ns), " ", trace(item.span))))));
}
