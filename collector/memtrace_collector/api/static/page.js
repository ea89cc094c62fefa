import { learn } from "./lib/about.js";
import { showSignOut } from "./lib/door.js";
import { startKeys } from "./lib/keys.js";
import { parsed } from "./lib/links.js";
import { startRouter } from "./lib/router.js";

// A view is given the parts and the parameters of its address, and { signal }, which is aborted
// when the view is left. It returns a list of nodes; the first heading is the view's name.
// Its scripts are loaded when it is first shown, the others' afterwards.
const LOADED = {
  answer: async () => (await import("./views/answer.js")).showAnswer,
  failures: async () => (await import("./views/failures.js")).showFailures,
  failure: async () => (await import("./views/failure.js")).showFailure,
  graph: async () => (await import("./views/graph.js")).showGraph,
  operation: async () => (await import("./views/operation.js")).showOperation,
  graphs: async () => (await import("./views/graphs.js")).showGraphs,
  impact: async () => (await import("./views/impact.js")).showImpact,
  invariants: async () => (await import("./views/invariants.js")).showInvariants,
  record: async () => (await import("./views/record.js")).showRecord,
  why: async () => (await import("./views/why.js")).showWhy,
};
const FIRST = "failures";
const SETTLED_MS = 1_000;

const views = Object.fromEntries(Object.entries(LOADED).map(([name, load]) =>
  [name, async (...given) => (await load())(...given)]));

LOADED[parsed(location.hash).view || FIRST]?.().catch(() => null); // it is waited for below
startKeys();
startRouter(views, FIRST, async () => {
  const { tenant } = await learn();
  document.getElementById("tenant").textContent = tenant === "default" ? "" : `tenant ${tenant}`;
  showSignOut();
});
setTimeout(() => Object.values(LOADED).forEach((load) => load().catch(() => null)), SETTLED_MS);
