// Search and time filter of the drawing.

import { element } from "../lib/dom.js";
import { timeText } from "../lib/format.js";

export function searchBox(model, canvas) {
  let matches = [];
  let at = -1;
  const says = element("span", { class: "quiet", role: "status" });
  const field = element("input", { type: "search", id: "graph-search", placeholder: "text, id, step, system", spellcheck: "false", autocomplete: "off" });
  const say = () => {
    says.textContent = !field.value.trim() ? "" : matches.length ? `${Math.max(at, 0) + 1} of ${matches.length}` : "nothing found";
  };
  const go = (by) => {
    if (!matches.length) return;
    at = (at + by + matches.length) % matches.length;
    canvas.select(matches[at].id, true);
    say();
  };
  field.addEventListener("input", () => {
    const wanted = field.value.trim().toLowerCase();
    matches = wanted ? model.nodes.filter((node) => node.words.includes(wanted)) : [];
    at = -1;
    canvas.showMatches(wanted ? new Set(matches) : null);
    say();
    if (matches.length) go(1);
  });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      go(event.shiftKey ? -1 : 1);
    }
  });
  canvas.node.addEventListener("keydown", (event) => {
    if (event.key === "n" || event.key === "N") go(event.key === "n" ? 1 : -1);
  });
  const button = (text, label, by) => element("button", { type: "button", "aria-label": label, title: label, onclick: () => go(by) }, text);
  return element("div", { class: "graph-search", role: "search" },
    element("label", { for: "graph-search", class: "hidden-text" }, "Search in the drawing"),
    field, button("↑", "Previous match", -1), button("↓", "Next match", 1), says);
}

// Two ranges over the moments at which operations ran: one step is one moment.
export function timeFilter(model, canvas) {
  const times = [...new Set(model.nodes.map((node) => node.time_ns))].sort((a, b) => a - b);
  if (times.length < 2) return null;
  const last = times.length - 1;
  const range = (id, value) => element("input", { type: "range", id, min: 0, max: last, value, step: 1 });
  const since = range("graph-since", 0), until = range("graph-until", last);
  const says = element("output", { class: "quiet", for: "graph-since graph-until" });
  const apply = (changed) => {
    if (Number(since.value) > Number(until.value)) {
      if (changed === since) until.value = since.value;
      else since.value = until.value;
    }
    const [from, to] = [times[since.value], times[until.value]];
    for (const [field, time] of [[since, from], [until, to]]) field.setAttribute("aria-valuetext", timeText(time));
    says.textContent = span(timeText(from), timeText(to));
    model.chosen = from === times[0] && to === times[last] ? {} : { since: moment(from, Math.floor), until: moment(to, Math.ceil) };
    canvas.hide((node) => node.time_ns < from || node.time_ns > to);
  };
  for (const field of [since, until]) field.addEventListener("input", () => apply(field));
  apply(since);
  return element("fieldset", { class: "graph-time" },
    element("legend", {}, "Time"),
    element("label", { for: "graph-since" }, "from"), since,
    element("label", { for: "graph-until" }, "to"), until, says);
}

// The day is said once when it is the same.
function span(from, to) {
  const [day, time] = to.split(" ");
  return `${from} – ${from.startsWith(day) ? time : to}`;
}

const moment = (ns, rounded) => new Date(rounded(ns / 1e6)).toISOString();
