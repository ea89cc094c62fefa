// The filters of the list: real controls, whose values are those of the address.

import { element } from "../lib/dom.js";

const SETTLE_MS = 250;
const SELECTS = [
  ["stage", "Stage"], ["type", "Type"], ["system", "Memory system"], ["service", "Service"],
  ["graph", "Graph"], ["method", "Found by"],
];

export function filterForm(asked, changed) {
  const selects = SELECTS.map(([name, label]) => [name, element("select", { name }), label]);
  const text = element("input", {
    type: "search", name: "q", autocomplete: "off", value: asked.q ?? "",
    placeholder: "explanation, graph, trace or span id",
  });
  const memory = element("input", {
    type: "checkbox", name: "memory", value: "yes", checked: asked.memory === "yes",
  });
  const human = element("select", { name: "human" },
    [["", "All"], ["yes", "By a person"], ["no", "Not by a person"]].map(([value, label]) =>
      element("option", { value, selected: value === (asked.human ?? "") }, label)));
  const clearing = element("button", { type: "button", onclick: () => clear() }, "Clear");
  const node = element("form", { class: "filters", role: "search", "aria-label": "Filters" },
    field("Search", text),
    selects.map(([, select, label]) => field(label, select)),
    field("Judged", human),
    element("label", { class: "check" }, memory, "Memory faults only"),
    clearing);
  let timer = 0;

  const given = () => Object.fromEntries([...new FormData(node)].filter(([, value]) => value !== ""));
  const tell = () => {
    clearTimeout(timer);
    clearing.disabled = !Object.keys(given()).length;
    changed(given());
  };
  const clear = () => {
    text.value = "";
    memory.checked = false;
    for (const select of node.querySelectorAll("select")) select.value = "";
    tell();
    text.focus();
  };
  text.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(tell, SETTLE_MS);
  });
  node.addEventListener("change", (event) => { if (event.target !== text) tell(); });
  node.addEventListener("submit", (event) => {
    event.preventDefault();
    tell();
  });

  // The values there are, with how many failures each would leave.
  const offer = (facets) => {
    for (const [name, select] of selects) {
      const value = select.value || (select.options.length ? "" : asked[name] ?? "");
      const options = facets[name].map((each) => option(each.value, `${each.value} (${each.count})`));
      const isOffered = facets[name].some((each) => each.value === value);
      if (value && !isOffered) options.push(option(value, `${value} (0)`));
      select.replaceChildren(option("", "All"), ...options);
      select.value = value;
    }
    clearing.disabled = !Object.keys(given()).length;
  };
  return { node, offer, clear };
}

const option = (value, label) => element("option", { value }, label);

const field = (label, control) => element("label", {}, label, control);
