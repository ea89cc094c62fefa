// Shows the view that the address names. An older view that is still loading never overtakes a
// newer one; going back finds the place that was left.

import { element } from "./dom.js";
import { parsed } from "./links.js";

const SETTLE_MS = 150;

const main = document.getElementById("main");
const links = [...document.querySelectorAll("nav a[data-for]")];

let leaving = new AbortController();
let showing = "";

// `views`: functions by the first part of the address; `first`: where "#/" leads; `prepare`: done
// once before the first view, and tried again until it succeeds.
export function startRouter(views, first, prepare) {
  let prepared = false;
  const show = async (state) => {
    leaving.abort();
    leaving = new AbortController();
    const { signal } = leaving;
    const hash = showing = location.hash;
    busy(true);
    let nodes;
    try {
      if (!prepared) await prepare();
      prepared = true;
      nodes = await found(views, first)(signal);
    } catch (error) {
      nodes = failed(error, () => show(null));
    }
    if (signal.aborted) return;
    main.replaceChildren(...nodes.flat().filter(Boolean));
    main.dataset.shown = hash;
    busy(false);
    arrive(state);
  };
  history.scrollRestoration = "manual";
  addEventListener("popstate", (event) => show(event.state));
  addEventListener("hashchange", () => {
    if (location.hash !== showing) show(history.state);
  });
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
  rememberPlaces();
  show(history.state);
}

// The same view at another address, which is not a place to go back from: filters, selections.
export function amend(address) {
  history.replaceState(history.state, "", address);
  main.dataset.shown = showing = location.hash;
}

function found(views, first) {
  const { view, parts, parameters } = parsed(location.hash);
  const name = view || first;
  if (!Object.hasOwn(views, name)) throw new Error(`There is no view named ${name}.`);
  links.forEach((link) => {
    const here = link.dataset.for.split(" ").includes(name);
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  });
  return (signal) => views[name](parts, parameters, { signal });
}

function busy(is) {
  document.body.classList.toggle("busy", is);
  if (is) main.setAttribute("aria-busy", "true");
  else main.removeAttribute("aria-busy");
}

function arrive(state) {
  const heading = main.querySelector("h2");
  document.title = heading ? `${heading.textContent} · memtrace` : "memtrace";
  const followed = state?.followed &&
    [...main.querySelectorAll("a[href]")].find((link) => link.getAttribute("href") === state.followed);
  const target = followed || heading || main;
  if (target === heading) heading.setAttribute("tabindex", "-1");
  target.focus({ preventScroll: true });
  scrollTo(0, state?.scroll ?? 0);
}

function rememberPlaces() {
  let timer = 0;
  const keep = (more) => history.replaceState({ ...history.state, ...more }, "");
  addEventListener("scroll", () => {
    clearTimeout(timer);
    timer = setTimeout(() => keep({ scroll: scrollY }), SETTLE_MS);
  }, { passive: true });
  main.addEventListener("click", (event) => {
    const href = event.target.closest?.("a[href^='#']")?.getAttribute("href");
    if (!href) return;
    clearTimeout(timer);
    keep({ scroll: scrollY, followed: href });
  });
}

function failed(error, again) {
  const isGone = error.status === 0;
  return [
    element("h2", {}, error.status === 404 ? "Not found" : "This could not be shown"),
    element("p", { class: "error", role: "alert" }, error.message),
    isGone ? element("p", {}, "Is ", element("code", {}, "memtrace-otel up"), " still running?") : null,
    element("p", {},
      element("button", { type: "button", onclick: again }, "Try again"), " ",
      element("a", { href: "#/failures" }, "All failures")),
  ];
}
