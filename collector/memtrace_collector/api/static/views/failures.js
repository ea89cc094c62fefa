import { ask } from "../lib/ask.js";
import { element, quiet, table } from "../lib/dom.js";
import { timeText } from "../lib/format.js";
import { link } from "../lib/links.js";

export async function showFailures() {
  const [verdicts, graphs] = await Promise.all([ask("/verdicts"), ask("/graphs")]);
  const failures = verdicts.slice().reverse().map((verdict) => [
    link(`${verdict.stage} / ${verdict.error_type}`, "failure", verdict.id),
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
      ? table("Verdicts, newest first", ["Verdict", "Graph", "Score", "Why"], failures)
      : quiet("No answer has been flagged. memtrace-otel flag TRACE:SPAN flags one."),
    element("h2", {}, "Graphs"),
    owners.length
      ? table("Evolution graphs", ["Graph", "Operations", "First", "Last"], owners)
      : quiet("No memory operation has arrived yet."),
  ];
}
