// Where links from Jaeger and Grafana arrive: to the failure of an answer, else to its receipt.

import { view } from "../lib/ask.js";
import { element } from "../lib/dom.js";
import { address } from "../lib/links.js";

export async function showAnswer([answer = ""], _, { signal }) {
  const found = await view("answer", { answer });
  const there = found.failure ? address("failure", [found.failure]) : address("why", [found.answer]);
  if (!signal.aborted) location.replace(there);
  return [element("h2", {}, "What is known of this answer"), element("p", {}, element("a", { href: there }, "Go on"))];
}
