// Addresses of views: "#/failure/ID", each part encoded. Who knows a view links to it by this.

import { element } from "./dom.js";

export function address(view, parts = [], parameters = {}) {
  const given = Object.entries(parameters).filter(([, value]) => value !== "" && value !== undefined);
  const query = new URLSearchParams(given).toString();
  return `#/${[view, ...parts].map(encodeURIComponent).join("/")}${query ? `?${query}` : ""}`;
}

export const link = (text, view, ...parts) => element("a", { href: address(view, parts) }, text);

export function parsed(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [view, ...parts] = path.split("/").map(decodeURIComponent);
  return { view, parts, parameters: Object.fromEntries(new URLSearchParams(query)) };
}
