import { ask } from "../lib/ask.js";
import { code, element, quiet } from "../lib/dom.js";

export async function showRecord([graphId, record]) {
  const history = await ask("/history", { graph: graphId, record });
  return [
    element("h2", {}, "Record ", code(history.record)),
    quiet(history.graph_id),
    ...history.versions.flatMap((version) => [
      element("h3", {}, `v${version.number}`),
      element("div", { class: "id" }, version.ref),
      element("p", {}, `written ${version.time} by ${version.name} `, code(version.operation)),
      version.text === null ? null : element("pre", {}, version.text),
      version.diff.length ? element("pre", {}, version.diff.join("\n")) : null,
      ...version.readers.map((reader) => quiet(`read ${reader.time} by ${reader.name} `, code(reader.operation))),
    ]),
  ];
}
