// Writes, readings and answers of one record on one line of time, counted in columns.

import { element, svg } from "../lib/dom.js";
import { counted, timeText } from "../lib/format.js";

const LANES = [
  ["written", "Written", "write"],
  ["deleted", "Deleted", "deletion"],
  ["delivered", "Delivered", "delivery"],
  ["cut", "Cut", "candidate cut"],
  ["answered", "Answers", "answer"],
];
const MANY = { delivery: "deliveries", "candidate cut": "candidates cut" };
const LEFT = 90;
const WIDTH = 1000;
const LANE = 22;

export function timeLine(line) {
  if (!line) return null;
  const lanes = LANES.filter(([name]) => line.lanes[name].length);
  const words = lanes.map(([name, , one]) => {
    const total = line.lanes[name].reduce((sum, [, count]) => sum + count, 0);
    return counted(total, one, MANY[one]);
  });
  const height = LANE * lanes.length + 4;
  const drawing = svg("svg", {
    class: "time-line", viewBox: `0 0 ${LEFT + WIDTH} ${height}`, role: "img",
    "aria-label": `${words.join(", ")}, from ${timeText(line.first_ns)} to ${timeText(line.last_ns)}`,
  }, lanes.map((lane, row) => drawLane(line, lane, row)));
  return element("figure", { class: "life-line" }, drawing,
    element("figcaption", {},
      element("span", {}, timeText(line.first_ns)),
      element("span", { class: "quiet" }, words.join(" · ")),
      element("span", {}, timeText(line.last_ns))));
}

function drawLane(line, [name, title, one], row) {
  const middle = row * LANE + LANE / 2 + 2;
  const step = (WIDTH - 12) / line.columns;
  const most = Math.max(...line.lanes[name].map(([, count]) => count));
  return svg("g", { class: `lane ${name}` },
    svg("text", { x: 0, y: middle + 4 }, title),
    svg("line", { x1: LEFT, x2: LEFT + WIDTH, y1: middle, y2: middle }),
    line.lanes[name].map(([column, count]) => {
      const tall = most > 1 ? 6 + 12 * Math.log1p(count) / Math.log1p(most) : 12;
      const at = timeText(line.first_ns + (column / line.columns) * (line.last_ns - line.first_ns));
      return svg("rect", { x: LEFT + 4 + column * step, y: middle - tall / 2, width: Math.max(4, step - 2), height: tall, rx: 1.5 },
        svg("title", {}, `${counted(count, one, MANY[one])}, ${at}`));
    }));
}
