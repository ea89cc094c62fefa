// What can be taken along from a failure: its ids, and the case as a file.

import { ask } from "../lib/ask.js";
import { element } from "../lib/dom.js";
import { spanText } from "../lib/format.js";

export function actions(failure) {
  const said = element("span", { role: "status", class: "quiet" });
  const doing = (work, done) => async (event) => {
    event.currentTarget.disabled = true;
    const button = event.currentTarget;
    said.textContent = "";
    try {
      await work();
      said.textContent = done;
    } catch (error) {
      said.textContent = error.message;
    } finally {
      button.disabled = false;
      button.focus();
    }
  };
  const button = (label, work, done) => element("button", { type: "button", onclick: doing(work, done) }, label);
  return element("div", { class: "panel actions" },
    element("h3", {}, "Take along"),
    element("div", { class: "row" },
      button("Copy ids", () => copy(ids(failure)), "Copied."),
      button("Download case", () => download(failure, ""), "The case is in your downloads."),
      button("Download without texts", () => download(failure, "true"), "The case without texts is in your downloads.")),
    said);
}

function ids({ verdict, answer, decisive }) {
  return [
    `case ${verdict.id}`,
    `graph ${verdict.graph_id}`,
    `answer ${spanText(answer.span)}`,
    ...decisive.map(({ span }) => `decisive ${spanText(span)}`),
    verdict.case_trace ? `case trace ${verdict.case_trace}` : "",
  ].filter(Boolean).join("\n");
}

async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = element("textarea", { class: "hidden-text", "aria-label": "The ids" });
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy"); // the only way over plain HTTP from another machine
  field.remove();
  if (!done) throw new Error("The browser does not let this page copy.");
}

async function download({ answer, verdict }, redact) {
  const found = await ask("/case", { answer: spanText(answer.span), redact });
  const blob = new Blob([JSON.stringify(found, null, 1)], { type: "application/json" });
  const href = URL.createObjectURL(blob);
  const name = `case-${verdict.id.slice(0, 8)}${redact ? "-without-texts" : ""}.otlp.json`;
  element("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 10_000);
}
