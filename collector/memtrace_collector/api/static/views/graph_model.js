// The drawing's nodes and links as the other parts read them.

import { timeText } from "../lib/format.js";

export function modelOf(found) {
  const nodes = found.nodes.map((node, place) => {
    const [x, y, width, height] = node.box;
    return { ...node, place, x, y, width, height, into: [], outof: [], words: nodeWords(node) };
  });
  const links = found.links.map(([from, to, relation, certainty, references], place) => {
    const made = { place, from: nodes[from], to: nodes[to], relation, certainty, references };
    nodes[from].outof.push(made);
    nodes[to].into.push(made);
    return made;
  });
  const byId = new Map(nodes.map((node) => [node.id, node]));
  return { found, nodes, links, byId, columns: columnsOf(nodes), start: startOf(nodes) };
}

// What a node is called, in one line.
export function title(node) {
  if (node.kind === "operation") return node.error ? `${node.step} (failed)` : node.step;
  return `${node.of_kind}${node.deleted ? " (deleted)" : ""}`;
}

export function subtitle(node) {
  if (node.kind === "operation") return [node.system, node.service].filter(Boolean).join(" · ");
  return node.text ?? (node.deleted ? "" : "text not captured");
}

// What is said of a node where it cannot be seen.
export function spoken(node) {
  const marks = [...node.marks, node.outcome ? `information ${node.outcome}` : ""].filter(Boolean);
  return [title(node), ...marks, subtitle(node).slice(0, 120), timeText(node.time_ns)].filter(Boolean).join(", ");
}

// Captured in which graph: a variable's is that of who made it, or else of who used it.
export function graphOf(node) {
  if (node.kind === "operation") return node.graph_id;
  const other = [...node.into.map((each) => each.from), ...node.outof.map((each) => each.to)];
  return other.find((each) => each.kind === "operation")?.graph_id ?? "";
}

function nodeWords(node) {
  return [node.id, node.step, node.system, node.service, node.name, node.error, node.of_kind, node.text, ...node.marks]
    .filter(Boolean).join("\n").toLowerCase();
}

function columnsOf(nodes) {
  const columns = new Map();
  for (const node of nodes) {
    const middle = node.x + node.width / 2;
    const column = [...columns.keys()].find((each) => Math.abs(each - middle) < 40) ?? middle;
    columns.set(column, [...(columns.get(column) ?? []), node]);
  }
  for (const column of columns.values()) column.sort((a, b) => a.y - b.y);
  return new Map([...columns.values()].flatMap((column) => column.map((node) => [node.id, column])));
}

function startOf(nodes) {
  return nodes.find((node) => node.marks.includes("decisive"))
    ?? nodes.find((node) => node.marks.includes("answer")) ?? nodes[0];
}
