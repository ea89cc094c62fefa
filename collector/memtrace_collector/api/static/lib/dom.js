// Everything shown was captured from agents and their users: it is only ever set as text.

// element("a", { class: "id", href: "#/…", onclick: f, "aria-label": "…" }, "text", node, null)
export function element(tag, properties = {}, ...children) {
  return filled(document.createElement(tag), properties, children);
}

const SVG = "http:" + "//www.w3.org/2000/svg";

export function svg(tag, properties = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), properties, children);
}

function filled(node, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === "") continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

export const head = (names) =>
  element("thead", {}, element("tr", {}, names.map((name) => element("th", { scope: "col" }, name))));

export function table(caption, header, rows) {
  const cell = (value) => element("td", {}, value);
  return element("table", {},
    element("caption", {}, caption),
    head(header),
    element("tbody", {}, rows.map((cells) => element("tr", {}, cells.map(cell)))),
  );
}

// As `table`, with the first cell of each row as its heading.
export function headedTable(caption, header, rows) {
  const made = table(caption, header, rows);
  for (const { cells: [first] } of made.tBodies[0].rows) {
    first.replaceWith(element("th", { scope: "row" }, ...first.childNodes));
  }
  return made;
}

// [name, value] as a list of terms; what has no value is left out.
export const facts = (rows) => element("dl", { class: "facts" },
  rows.filter(([, value]) => value && value.length !== 0)
    .map(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));

export const code = (text) => element("code", {}, text);
export const quiet = (...children) => element("p", { class: "quiet" }, ...children);

// The beginning of a captured text: what it does to the direction of letters ends with it.
export function excerpt(text, letters = 160) {
  const flat = text.replace(/\s+/g, " ").trim();
  return element("bdi", {}, flat.length > letters ? `${flat.slice(0, letters - 1)}…` : flat);
}
