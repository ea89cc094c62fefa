// Moments (RFC 3339, UTC) and how far apart they are.

import { element } from "./dom.js";

const UNITS = [["day", 86_400_000], ["hour", 3_600_000], ["minute", 60_000], ["second", 1_000]];

export const momentText = (moment) => `${moment.slice(0, 10)} ${moment.slice(11, 19)}Z`;

export const momentNode = (moment) =>
  moment ? element("time", { datetime: moment, title: moment }, momentText(moment)) : null;

// "3 days", from one moment to a later one; null when they are less than a second apart.
export function between(from, to) {
  if (!from || !to) return null;
  const apart = Date.parse(to) - Date.parse(from);
  const unit = UNITS.find(([, length]) => apart >= length);
  if (!unit) return null;
  const count = Math.floor(apart / unit[1]);
  return `${count} ${unit[0]}${count === 1 ? "" : "s"}`;
}
