import { learn } from "./lib/about.js";
import { showSignOut } from "./lib/door.js";
import { startKeys } from "./lib/keys.js";
import { startRouter } from "./lib/router.js";
import { showAnswer } from "./views/answer.js";
import { showFailure } from "./views/failure.js";
import { showFailures } from "./views/failures.js";
import { showGraph } from "./views/graph.js";
import { showOperation } from "./views/operation.js";
import { showGraphs } from "./views/graphs.js";
import { showImpact } from "./views/impact.js";
import { showInvariants } from "./views/invariants.js";
import { showRecord } from "./views/record.js";
import { showWhy } from "./views/why.js";

// A view is given the parts and the parameters of its address, and { signal }, which is aborted
// when the view is left. It returns a list of nodes; the first heading is the view's name.
const VIEWS = {
  answer: showAnswer,
  failures: showFailures,
  failure: showFailure,
  graph: showGraph,
  operation: showOperation,
  graphs: showGraphs,
  impact: showImpact,
  invariants: showInvariants,
  record: showRecord,
  why: showWhy,
};

startKeys();
startRouter(VIEWS, "failures", async () => {
  const { tenant } = await learn();
  document.getElementById("tenant").textContent = tenant === "default" ? "" : `tenant ${tenant}`;
  showSignOut();
});
