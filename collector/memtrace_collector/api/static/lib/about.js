// What the server says of itself: asked once, before the first view is shown.

import { ask } from "./ask.js";

let known = { version: "", tenant: "", trace_url: "" };

export const about = () => known;

export async function learn() {
  known = await ask("/about");
  return known;
}
