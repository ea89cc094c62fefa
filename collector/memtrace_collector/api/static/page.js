import { learn } from "./lib/about.js";
import { element, quiet } from "./lib/dom.js";
import { parsed } from "./lib/links.js";
import { showFailure } from "./views/failure.js";
import { showFailures } from "./views/failures.js";
import { showRecord } from "./views/record.js";

// A view is given the parts and the parameters of its address and returns a list of nodes.
const VIEWS = {
  failures: showFailures,
  failure: showFailure,
  record: showRecord,
};

const main = document.getElementById("main");

async function route() {
  const { view, parts, parameters } = parsed(location.hash);
  main.replaceChildren(quiet("…"));
  try {
    const show = Object.hasOwn(VIEWS, view) ? VIEWS[view] : showFailures;
    main.replaceChildren(...(await show(parts, parameters)).filter(Boolean));
  } catch (error) {
    main.replaceChildren(element("p", { class: "error", role: "alert" }, error.message));
  }
  main.focus();
}

addEventListener("hashchange", route);
learn().finally(route);
