// The drawing: nodes and links in one SVG that is zoomed, moved and walked by pointer and keys.

import { element, svg } from "../lib/dom.js";
import { address, variableAddress } from "../lib/links.js";
import { graphOf, spoken, subtitle, title } from "./graph_model.js";
import { SIGNS, curve, fitted, isDashed, outline, rounded } from "./graph_shapes.js";

const MARGIN = 28;
const LEAST = 0.06, MOST = 3, READABLE = 0.62, FAR = 0.45;
const MOVE = 80;
const DENSE = 250;

export class Canvas {
  // `selected(node, byHand)` is called when a node comes into focus; all ends with `signal`.
  constructor(model, { signal, selected }) {
    this.model = model;
    this.selected = selected;
    this.current = null;
    this.scale = 1;
    this.x = this.y = 0;
    this.links = model.links.map((link) => svg("path", { class: `link ${link.relation}${isDashed(link) ? " unsure" : ""}`, d: curve(link.from, link.to) }));
    this.shapes = model.nodes.map((node) => this.drawn(node));
    this.world = svg("g", {}, svg("g", { class: "links" }, this.links), svg("g", { class: "nodes" }, this.shapes));
    this.image = svg("svg", { class: `graph-drawing${model.links.length > DENSE ? " dense" : ""}`, role: "group", "aria-label": `Drawing of ${model.nodes.length} nodes. Arrow keys walk along the edges; the same stands in tables below.` }, this.world);
    this.node = element("div", { class: "graph-canvas" }, this.image);
    this.listen(signal);
  }

  drawn(node) {
    const isOperation = node.kind === "operation";
    const shape = svg("g", {
      class: ["node", node.kind, node.marks.length ? "marked" : "", node.marks.includes("decisive") ? "decisive" : ""].filter(Boolean).join(" "),
      transform: `translate(${node.x} ${node.y})`,
      role: "button",
      tabindex: -1,
      "aria-label": spoken(node),
      "data-step": node.step,
      "data-place": node.place,
    },
    svg("path", { class: "shape", d: isOperation ? outline(node.step, node.width, node.height) : rounded(node.width, node.height, 4) }),
    isOperation
      ? [svg("text", { x: 16, y: 19, class: "title" }, fitted(title(node), 20)), svg("text", { x: 16, y: 35, class: "small" }, fitted(subtitle(node), 22))]
      : [svg("text", { x: 9, y: 19, class: "of-kind" }, fitted(title(node), 14)), svg("text", { x: 14 + 7 * title(node).length, y: 19, class: "small" }, fitted(subtitle(node), 25 - title(node).length))],
    node.outcome ? svg("text", { x: node.width - 24, y: 20, class: "outcome", "data-outcome": node.outcome }, SIGNS[node.outcome] ?? "?") : null,
    badge(node));
    return shape;
  }

  listen(signal) {
    const on = (type, act, options = {}) => this.node.addEventListener(type, act, { signal, ...options });
    on("wheel", (event) => this.wheel(event), { passive: false });
    on("pointerdown", (event) => this.press(event));
    on("pointermove", (event) => this.drag(event));
    on("pointerup", (event) => this.release(event));
    on("pointercancel", () => { this.held = null; });
    on("focusin", (event) => this.focused(event));
    on("keydown", (event) => this.key(event));
    on("dblclick", (event) => this.open(this.nodeAt(event)));
    this.resizing = new ResizeObserver(() => this.resized());
    this.resizing.observe(this.node);
    signal.addEventListener("abort", () => this.resizing.disconnect());
  }

  // Show the start when the size is known: everything if it can be read, else what is in focus.
  begin() {
    this.isNew = true;
  }

  resized() {
    if (!this.isNew || !this.node.clientWidth) return;
    this.isNew = false;
    this.fit();
    if (this.scale < READABLE && this.current) {
      this.scale = READABLE;
      this.centre(this.current);
    }
    this.node.dataset.drawn = "true";
  }

  // Coordinates

  apply() {
    this.world.setAttribute("transform", `translate(${this.x} ${this.y}) scale(${this.scale})`);
    this.image.classList.toggle("far", this.scale < FAR);
  }

  fit() {
    const { width, height } = this.model.found;
    const [w, h] = [this.node.clientWidth, this.node.clientHeight];
    this.scale = Math.max(LEAST, Math.min(1, (w - 2 * MARGIN) / Math.max(1, width), (h - 2 * MARGIN) / Math.max(1, height)));
    this.x = (w - width * this.scale) / 2;
    this.y = (h - height * this.scale) / 2;
    this.apply();
  }

  zoom(factor, x = this.node.clientWidth / 2, y = this.node.clientHeight / 2) {
    const scale = Math.min(MOST, Math.max(LEAST, this.scale * factor));
    this.x = x - (x - this.x) * (scale / this.scale);
    this.y = y - (y - this.y) * (scale / this.scale);
    this.scale = scale;
    this.apply();
  }

  move(x, y) {
    this.x += x;
    this.y += y;
    this.apply();
  }

  centre(node) {
    const { width, height } = this.model.found;
    const [w, h] = [this.node.clientWidth, this.node.clientHeight];
    this.x = within(w / 2 - (node.x + node.width / 2) * this.scale, w, width * this.scale);
    this.y = within(h / 2 - (node.y + node.height / 2) * this.scale, h, height * this.scale);
    this.apply();
  }

  reveal(node) {
    const left = this.x + node.x * this.scale, top = this.y + node.y * this.scale;
    const fits = left > MARGIN && top > MARGIN
      && left + node.width * this.scale < this.node.clientWidth - MARGIN
      && top + node.height * this.scale < this.node.clientHeight - MARGIN;
    if (this.scale < FAR) this.scale = READABLE;
    else if (fits) return;
    this.centre(node);
  }

  // What is in focus

  select(id, byHand) {
    const node = this.model.byId.get(id);
    if (!node) return;
    if (this.current) this.paint(this.current, false);
    this.current = node;
    this.paint(node, true);
    if (byHand) this.reveal(node);
    this.selected(node, byHand);
  }

  focus(node) {
    this.select(node.id, true);
    this.shapes[node.place].focus({ preventScroll: true });
  }

  paint(node, is) {
    const shape = this.shapes[node.place];
    shape.classList.toggle("current", is);
    shape.setAttribute("tabindex", is ? 0 : -1);
    for (const link of [...node.into, ...node.outof]) {
      const line = this.links[link.place];
      line.classList.toggle("near", is);
      if (is) line.parentNode.append(line);
      this.shapes[(link.from === node ? link.to : link.from).place].classList.toggle("near", is);
    }
  }

  // `matches`: a set of nodes, or null for no search; `isOut(node)`: hidden by the time filter.
  showMatches(matches) {
    this.image.classList.toggle("searching", matches !== null);
    this.model.nodes.forEach((node) => this.shapes[node.place].classList.toggle("match", matches?.has(node) ?? false));
  }

  hide(isOut) {
    this.model.nodes.forEach((node) => this.shapes[node.place].classList.toggle("away", isOut(node)));
    this.model.links.forEach((link) => this.links[link.place].classList.toggle("away", isOut(link.from) || isOut(link.to)));
  }

  // Pointer and keys

  nodeAt(event) {
    const shape = event.target.closest?.("[data-place]");
    return shape ? this.model.nodes[Number(shape.dataset.place)] : null;
  }

  wheel(event) {
    event.preventDefault();
    if (event.shiftKey) this.move(-event.deltaY - event.deltaX, 0);
    else {
      const box = this.node.getBoundingClientRect();
      this.zoom(Math.exp(-event.deltaY / 500), event.clientX - box.left, event.clientY - box.top);
    }
  }

  press(event) {
    if (event.button === 0) this.held = { x: event.clientX, y: event.clientY, moved: false, node: this.nodeAt(event) };
  }

  drag(event) {
    if (!this.held) return;
    const [x, y] = [event.clientX - this.held.x, event.clientY - this.held.y];
    if (!this.held.moved && Math.hypot(x, y) < 4) return;
    if (!this.held.moved) this.node.setPointerCapture(event.pointerId);
    this.held = { ...this.held, x: event.clientX, y: event.clientY, moved: true };
    this.node.classList.add("dragging");
    this.move(x, y);
  }

  release() {
    if (this.held && !this.held.moved && this.held.node) this.select(this.held.node.id, true);
    this.held = null;
    this.node.classList.remove("dragging");
  }

  focused(event) {
    const node = this.nodeAt(event);
    if (node && node !== this.current) this.select(node.id, true);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = (event.shiftKey ? this.moves() : this.steps())[event.key] ?? this.views()[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  moves() {
    return {
      ArrowLeft: () => this.move(MOVE, 0), ArrowRight: () => this.move(-MOVE, 0),
      ArrowUp: () => this.move(0, MOVE), ArrowDown: () => this.move(0, -MOVE),
    };
  }

  steps() {
    return {
      ArrowLeft: () => this.step(this.current?.into.map((link) => link.from)),
      ArrowRight: () => this.step(this.current?.outof.map((link) => link.to)),
      ArrowUp: () => this.beside(-1), ArrowDown: () => this.beside(1),
      Enter: () => this.open(this.current), " ": () => {},
    };
  }

  views() {
    return { "+": () => this.zoom(1.3), "=": () => this.zoom(1.3), "-": () => this.zoom(1 / 1.3), 0: () => this.fit() };
  }

  step(nodes = []) {
    const seen = nodes.filter((node) => !this.shapes[node.place].classList.contains("away"));
    const distance = (node) => Math.abs(node.y - this.current.y) + Math.abs(node.x - this.current.x) / 4;
    const next = seen.sort((a, b) => distance(a) - distance(b))[0];
    if (next) this.focus(next);
  }

  beside(by) {
    const column = (this.model.columns.get(this.current?.id) ?? [])
      .filter((node) => node === this.current || !this.shapes[node.place].classList.contains("away"));
    const next = column[column.indexOf(this.current) + by];
    if (next) this.focus(next);
  }

  open(node) {
    if (!node) return;
    const leads = node.kind === "operation" ? address("operation", [node.id]) : variableAddress(graphOf(node), node.id);
    if (leads) location.hash = leads;
  }
}

function badge(node) {
  if (!node.marks.length) return null;
  const words = node.marks.join(", ");
  const width = 12 + 6.2 * words.length;
  return svg("g", { class: `badge${node.marks.includes("decisive") ? " strong" : ""}`, transform: `translate(${node.width - width + 6} -9)` },
    svg("path", { d: rounded(width, 17, 4) }),
    svg("text", { x: 6, y: 12.5 }, words));
}

// Where a drawing of that size starts in a window, so that none of the window is empty in vain.
function within(start, window, size) {
  if (size + 2 * MARGIN <= window) return (window - size) / 2;
  return Math.min(MARGIN, Math.max(window - size - MARGIN, start));
}
