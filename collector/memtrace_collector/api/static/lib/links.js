// Addresses of views: "#/failure/ID", each part encoded. Who knows a view links to it by this.

import { about } from "./about.js";
import { element } from "./dom.js";
import { spanText } from "./format.js";

export function address(view, parts = [], parameters = {}) {
  const given = Object.entries(parameters).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const query = new URLSearchParams(given).toString();
  return `#/${[view, ...parts].map(encodeURIComponent).join("/")}${query ? `?${query}` : ""}`;
}

export const link = (text, view, ...parts) => element("a", { href: address(view, parts) }, text);

// Where more is said of a variable: the life of a record, or what came of it; null: nowhere.
export function variableAddress(graphId, ref) {
  const [kind] = ref.split(":", 1);
  if (["mem", "doc"].includes(kind)) return address("record", [graphId, ref.slice(0, ref.lastIndexOf("@"))]);
  return ["query", "prompt"].includes(kind) ? null : address("impact", [ref]);
}

// traceLink({ traceId, spanId }): the span in the trace backend's own page; plain text without one.
export function traceLink(span, text = "trace") {
  if (!span) return null;
  const template = about().trace_url;
  if (!template) return element("code", { class: "id" }, spanText(span));
  const href = template
    .replaceAll("{trace_id}", encodeURIComponent(span.traceId))
    .replaceAll("{span_id}", encodeURIComponent(span.spanId ?? ""));
  return element("a", { href, rel: "noreferrer", target: "_blank", class: "out", title: spanText(span) }, text);
}

export function parsed(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [view, ...parts] = path.split("/").map(decoded);
  return { view, parts, parameters: Object.fromEntries(new URLSearchParams(query)) };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // an address typed by hand
  }
}
