import { view } from "../lib/ask.js";
import { code, element, head, quiet } from "../lib/dom.js";
import { rememberList } from "../lib/kept.js";
import { address, link } from "../lib/links.js";
import { momentNode } from "../lib/moments.js";
import { amend } from "../lib/router.js";
import { counted, spanText } from "../lib/format.js";
import { filterForm } from "./failures_filters.js";
import { unjudged } from "./failures_unjudged.js";

const PAGE = 50;
const MOST = 200;
const COLUMNS = ["Failure", "Why", "Decisive operation", "Graph", "Judged", "Score"];

export async function showFailures(_, parameters, { signal }) {
  const { rows: shownRows = "", ...asked } = parameters;
  rememberList(address("failures", [], parameters));
  const list = new List(asked, signal);
  await list.load(Math.max(PAGE, Number(shownRows) || 0));
  return list.nodes();
}

class List {
  constructor(asked, signal) {
    this.asked = asked;
    this.signal = signal;
    this.turn = 0;
    this.status = element("p", { role: "status", class: "quiet" });
    this.body = element("tbody");
    this.table = element("table", { class: "failures" },
      element("caption", { class: "hidden-text" }, "Failures, newest verdict first"),
      head(COLUMNS),
      this.body);
    this.none = element("div");
    this.more = element("button", { type: "button", onclick: () => this.showMore() }, "Show more");
    this.rest = element("div");
    this.form = filterForm(asked, (given) => this.filter(given));
  }

  nodes() {
    const refresh = element("button", { type: "button", onclick: () => this.refresh() }, "Refresh");
    return [
      element("h2", {}, "Failures"),
      this.form.node,
      element("div", { class: "row list-head" }, this.status, refresh),
      element("div", { class: "scrolls" }, this.table), this.none,
      element("div", { class: "pager" }, this.more),
      this.rest,
    ];
  }

  // As many rows as were shown; false: a newer question has overtaken this one.
  async load(rows) {
    const turn = ++this.turn;
    const found = await view("failures", { ...this.asked, limit: Math.min(rows, MOST) });
    while (found.next && found.failures.length < rows) {
      const limit = Math.min(rows - found.failures.length, MOST);
      const further = await view("failures", { ...this.asked, limit, after: found.next });
      found.failures.push(...further.failures);
      found.next = further.next;
    }
    if (turn !== this.turn || this.signal.aborted) return false;
    this.show(found);
    return true;
  }

  show(found) {
    this.rows = found.failures.length;
    this.next = found.next;
    this.body.replaceChildren(...found.failures.map(row));
    this.table.hidden = !found.failures.length;
    this.none.replaceChildren(...(found.failures.length ? [] : nothing(found, () => this.form.clear())));
    this.more.hidden = !found.next;
    this.status.textContent = summed(found);
    this.rest.replaceChildren(...unjudged(found));
    this.form.offer(found.facets);
  }

  async filter(given) {
    this.asked = given;
    this.isAt(given);
    await this.load(PAGE);
  }

  async showMore() {
    const last = this.body.lastElementChild;
    await this.load(this.rows + PAGE);
    this.isAt({ ...this.asked, rows: this.rows });
    if (this.more.hidden) this.row(last?.dataset.id)?.nextElementSibling?.querySelector("a")?.focus();
  }

  isAt(parameters) {
    amend(address("failures", [], parameters));
    rememberList(location.hash);
  }

  // The row that was looked at stays where it is, and keeps the focus if it had it.
  async refresh() {
    const rows = [...this.body.rows];
    const seen = rows.find((each) => each.getBoundingClientRect().top >= 0);
    const focused = rows.find((each) => each.contains(document.activeElement))?.dataset.id;
    const top = seen?.getBoundingClientRect().top;
    if (!(await this.load(Math.max(PAGE, this.rows)))) return;
    const again = seen && this.row(seen.dataset.id);
    if (again && scrollY > 0) scrollBy(0, again.getBoundingClientRect().top - top);
    if (focused) this.row(focused)?.querySelector("a")?.focus({ preventScroll: true });
  }

  row(id) {
    return [...this.body.rows].find((each) => each.dataset.id === id);
  }
}

function row(failure) {
  const about = failure.method === "human" ? element("span", { class: "tag" }, "by a person") : null;
  return element("tr", { "data-id": failure.id, "data-stage": failure.stage },
    element("th", { scope: "row" },
      link(failure.error_type.replaceAll("_", " "), "failure", failure.id),
      element("div", {}, element("span", { class: "tag" }, failure.stage.replaceAll("_", " ")), " ", about)),
    element("td", { class: "why" }, element("div", { class: "clamped" }, failure.explanation)),
    element("td", {}, place(failure)),
    element("td", {}, code(failure.graph_id)),
    element("td", { class: "when" }, momentNode(failure.created)),
    element("td", { class: "number" }, failure.score.toFixed(2)));
}

function place(failure) {
  if (!failure.decisive.length) return element("span", { class: "quiet" }, "none is named");
  const where = [failure.service, failure.system].filter(Boolean).join(" · ");
  return [
    element("a", { href: address("operation", [spanText(failure.decisive[0])]) }, failure.operation || "operation"),
    failure.decisive.length > 1 ? ` and ${failure.decisive.length - 1} more` : null,
    element("div", { class: "quiet" }, where),
  ];
}

function summed({ total, known, is_all: isAll }) {
  const all = `${counted(known, "verdict")}${isAll ? "" : " looked at, the latest"}`;
  return total === known ? all : `${total.toLocaleString("en")} of ${all}`;
}

function nothing(found, clear) {
  if (found.known) {
    return [element("div", { class: "notice" },
      element("p", {}, "No failure passes these filters."),
      element("button", { type: "button", onclick: clear }, "Clear all filters"))];
  }
  const waiting = found.cases.waiting;
  if (waiting) {
    return [element("div", { class: "notice" },
      element("p", {}, `${waiting} flagged ${waiting === 1 ? "answer waits" : "answers wait"} for a verdict.`),
      quiet("An answer is judged when its lineage is settled, at the latest after five minutes."))];
  }
  return [element("div", { class: "notice" },
    element("p", {}, "No answer has been flagged yet. ",
      "An answer is looked into when somebody says that it is wrong:"),
    element("ul", {},
      element("li", {}, "from the agent, with a thumbs-down: ", code('memtrace.flag(response_id=…, expected="Lisbon")')),
      element("li", {}, "by an evaluator: a ", code("gen_ai.evaluation.result"), " event that fails"),
      element("li", {}, "by hand: ", code('memtrace-otel flag TRACE:SPAN --expected "Lisbon"'))),
    element("p", {}, "Without any flag, memory's invariants are watched: ",
      element("a", { href: "#/invariants" }, "what they found"), ".")),
  ];
}
