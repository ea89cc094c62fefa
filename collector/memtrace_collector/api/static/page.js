// Everything shown was captured from agents and their users: it is only ever set as text.

const API = "/api/v1";
const main = document.getElementById("main");

function element(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") node.className = value;
    else if (name === "href") node.setAttribute("href", value);
  }
  for (const child of children) {
    if (child === null || child === undefined || child === "") continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

async function ask(path, parameters = {}) {
  const query = new URLSearchParams(parameters).toString();
  const response = await fetch(`${API}${path}${query ? `?${query}` : ""}`);
  const body = await response.json();
  if (!response.ok) throw new Error(body.message ?? response.statusText);
  return body;
}

function table(header, rows) {
  const head = element("tr", {}, ...header.map((text) => element("th", {}, text)));
  const body = rows.map((cells) => element("tr", {}, ...cells.map((cell) => element("td", {}, cell))));
  return element("table", {}, element("thead", {}, head), element("tbody", {}, ...body));
}

const link = (text, ...parts) => element("a", { href: `#/${parts.map(encodeURIComponent).join("/")}` }, text);
const code = (text) => element("code", {}, text);
const spanText = (span) => (span ? `${span.traceId}:${span.spanId}` : "–");
const timeText = (ns) => (ns > 0 ? new Date(ns / 1e6).toISOString().replace("T", " ").slice(0, 19) + "Z" : "–");

async function showFailures() {
  const [verdicts, graphs] = await Promise.all([ask("/verdicts"), ask("/graphs")]);
  const failures = verdicts.slice().reverse().map((verdict) => [
    link(`${verdict.stage} / ${verdict.error_type}`, "verdict", verdict.id),
    verdict.graph_id,
    verdict.score.toFixed(2),
    verdict.explanation,
  ]);
  const owners = graphs.map((graph) => [
    graph.graph_id, graph.operations, timeText(graph.first_ns), timeText(graph.last_ns),
  ]);
  return [
    element("h2", {}, "Failures"),
    failures.length
      ? table(["Verdict", "Graph", "Score", "Why"], failures)
      : element("p", { class: "quiet" }, "No answer has been flagged. memtrace-otel flag TRACE:SPAN flags one."),
    element("h2", {}, "Graphs"),
    owners.length
      ? table(["Graph", "Operations", "First", "Last"], owners)
      : element("p", { class: "quiet" }, "No memory operation has arrived yet."),
  ];
}

function hopItem(graphId, hop) {
  return element(
    "li",
    { class: hop.decisive ? `${hop.outcome} decisive` : hop.outcome },
    element("span", { class: "kind" }, `${hop.kind}: ${hop.outcome}`),
    element("div", {}, hop.says),
    element("div", { class: "quiet" }, [hop.service, hop.operation, timeText(hop.time_ns)].filter(Boolean).join(" · ")),
    hop.span ? element("div", { class: "id" }, spanText(hop.span)) : null,
    hop.record ? element("div", {}, "record ", link(hop.record, "history", graphId, hop.record)) : null,
    ...hop.versions.map((version) => element("div", { class: "id" }, version)),
  );
}

async function showVerdict(id) {
  const verdict = (await ask("/verdicts")).find((candidate) => candidate.id === id);
  if (!verdict) throw new Error("There is no such verdict.");
  return [
    element("h2", {}, `${verdict.stage} / ${verdict.error_type}`),
    element("p", {}, verdict.explanation),
    table(["", ""], [
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
    element("ol", { class: "path" }, ...(verdict.path ?? []).map((hop) => hopItem(verdict.graph_id, hop))),
    element("h3", {}, "Evidence"),
    element("ul", {}, ...verdict.evidence.map((claim) =>
      element("li", {}, claim.says, " ", element("span", { class: "id" }, claim.ref ?? spanText(claim.span))))),
  ];
}

async function showHistory(graphId, record) {
  const history = await ask("/history", { graph: graphId, record });
  return [
    element("h2", {}, "Record ", code(history.record)),
    element("p", { class: "quiet" }, history.graph_id),
    ...history.versions.flatMap((version) => [
      element("h3", {}, `v${version.number}`),
      element("div", { class: "id" }, version.ref),
      element("p", {}, `written ${version.time} by ${version.name} `, code(version.operation)),
      version.text === null ? null : element("pre", {}, version.text),
      version.diff.length ? element("pre", {}, version.diff.join("\n")) : null,
      ...version.readers.map((reader) =>
        element("p", { class: "quiet" }, `read ${reader.time} by ${reader.name} `, code(reader.operation))),
    ]),
  ];
}

async function route() {
  const [view, ...parts] = location.hash.replace(/^#\//, "").split("/").map(decodeURIComponent);
  const views = { verdict: showVerdict, history: showHistory };
  main.replaceChildren(element("p", { class: "quiet" }, "…"));
  try {
    const shown = await (Object.hasOwn(views, view) ? views[view](...parts) : showFailures());
    main.replaceChildren(...shown.filter(Boolean));
  } catch (error) {
    main.replaceChildren(element("p", { class: "error" }, error.message));
  }
  main.focus();
}

addEventListener("hashchange", route);
route();
