export const spanText = (span) => (span ? `${span.traceId}:${span.spanId}` : "–");

export const timeText = (ns) =>
  ns > 0 ? `${new Date(ns / 1e6).toISOString().replace("T", " ").slice(0, 19)}Z` : "–";

export const counted = (number, one, many = `${one}s`) =>
  `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
