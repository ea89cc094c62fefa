// A person says whether a verdict is right: `judgePanel(failure, onChange)`, of the view "failure".

import { tell, view } from "../lib/ask.js";
import { element, quiet } from "../lib/dom.js";
import { spanText } from "../lib/format.js";
import { momentNode } from "../lib/moments.js";

const NAME_KEY = "memtrace.judge";
const words = (name) => name.replaceAll("_", " ");

export function judgePanel(failure, onChange) {
  const { verdict } = failure;
  const body = element("div", {});
  const details = element("details", { class: "judge" },
    element("summary", {}, verdict.judgement ? "Judge it again" : "Confirm or correct it"), body);
  details.addEventListener("toggle", async () => {
    if (!details.open || body.childElementCount) return;
    body.replaceChildren(quiet("…"));
    try {
      const known = await view("judging", { id: verdict.id });
      body.replaceChildren(form(failure, known, onChange));
    } catch (error) {
      body.replaceChildren(element("p", { class: "error", role: "alert" }, error.message));
    }
  });
  return element("section", { class: "panel", "aria-labelledby": "judge-heading" },
    element("h3", { id: "judge-heading" }, "Judged by hand"),
    standing(failure, onChange), details);
}

function standing({ verdict }, onChange) {
  const said = verdict.judgement;
  if (!said) {
    const taken = verdict.withdrawn;
    return quiet(taken ? "A judgement was withdrawn." : "Nobody has judged this verdict yet.");
  }
  const { machine } = said;
  const says = element("p", { class: "error", role: "alert", hidden: true });
  const undo = element("button", { type: "button" }, "Withdraw this judgement");
  undo.addEventListener("click", () => send(verdict, { action: "withdraw", by: remembered() }, onChange, says, undo));
  return element("div", { class: "judged" },
    element("p", {}, element("strong", {}, said.action === "confirmed" ? "✓ Confirmed" : "✎ Corrected"),
      ` by ${said.by || "a person"}, `, momentNode(said.at)),
    said.note ? element("div", { class: "captured" }, said.note) : null,
    said.agreement === "confirmed" ? null
      : quiet(`The machine (${machine.method}) said ${words(machine.stage)} / ${words(machine.error_type)}.`),
    beside(verdict), undo, says);
}

function beside({ machine_now: now }) {
  if (!now) return null;
  const same = now.agreement === "confirmed";
  return element("p", { class: "notice" },
    `Since then more became known: ${now.method === "rules" ? "the rules now say" : `${now.method} now says`} `,
    element("strong", {}, `${words(now.stage)} / ${words(now.error_type)}`),
    same ? ", as was judged." : ". The judgement stands.");
}

function form(failure, known, onChange) {
  const { verdict } = failure;
  const correction = correctionFields(failure, known);
  const note = element("textarea", { id: "judge-note", rows: "3", maxlength: String(known.max_note) });
  const name = element("input", {
    id: "judge-name", type: "text", maxlength: String(known.max_name), autocomplete: "name",
  });
  name.value = remembered();
  const says = element("p", { class: "error", role: "alert", hidden: true });
  const save = element("button", { type: "submit", class: "primary" }, "Save the judgement");
  const confirm = radio("confirm", "It is right as it stands");
  const correct = radio("correct", "It is wrong: correct it");
  const isCorrection = () => correct.input.checked;
  const made = element("form", { class: "judge-form", novalidate: true },
    element("fieldset", {}, element("legend", {}, "This verdict"), confirm.label, correct.label),
    correction.node,
    element("label", { for: "judge-note" }, "Why (it may be quoted)"), note,
    element("label", { for: "judge-name" }, "Your name"), name,
    save, says);
  const choose = () => { correction.node.hidden = !isCorrection(); };
  made.addEventListener("change", choose);
  confirm.input.checked = true;
  choose();
  made.addEventListener("submit", (event) => {
    event.preventDefault();
    const wrong = isCorrection() ? correction.invalid() : null;
    if (wrong) {
      wrong.focus();
      return;
    }
    remember(name.value.trim());
    const common = { note: note.value.trim(), by: name.value.trim() };
    const said = isCorrection() ? { action: "correct", ...correction.said() } : { action: "confirm" };
    send(verdict, { ...said, ...common }, onChange, says, save);
  });
  return made;
}

function radio(value, text) {
  const input = element("input", { type: "radio", name: "judge-action", value });
  return { input, label: element("label", { class: "choice" }, input, " ", text) };
}

function correctionFields({ verdict, decisive }, known) {
  const types = new Map(known.stages.flatMap(({ stage, means, types: all }) =>
    all.map((each) => [each.type, { ...each, stage, stageMeans: means }])));
  const stage = element("select", { id: "judge-stage" },
    known.stages.map((each) => element("option", { value: each.stage }, words(each.stage))));
  const type = element("select", { id: "judge-type", "aria-describedby": "judge-means judge-type-says" });
  const means = element("p", { id: "judge-means", class: "quiet" });
  const typeSays = field("judge-type-says");
  const operations = operationFields(new Set(decisive.map(({ span }) => spanText(span))), known);
  const fill = (wanted) => {
    const of = known.stages.find((each) => each.stage === stage.value);
    type.replaceChildren(...of.types.map((each) => element("option", { value: each.type }, words(each.type))));
    if (wanted && types.get(wanted)?.stage === stage.value) type.value = wanted;
    tellMeaning();
  };
  const tellMeaning = () => {
    const chosen = types.get(type.value);
    means.textContent = `${chosen.stageMeans} ${chosen.means}`;
    operations.need(chosen.decisive);
  };
  stage.addEventListener("change", () => fill(""));
  type.addEventListener("change", tellMeaning);
  stage.value = verdict.stage;
  fill(verdict.error_type);
  const node = element("div", { class: "judge-correction" },
    element("label", { for: "judge-stage" }, "Stage"), stage,
    element("label", { for: "judge-type" }, "Type"), type, means, typeSays.node,
    operations.node);
  return {
    node,
    invalid: () => operations.invalid(),
    said: () => ({ stage: stage.value, type: type.value, decisive: operations.chosen() }),
  };
}

function operationFields(named, known) {
  const says = field("judge-decisive-says");
  const boxes = known.operations.map((operation) => operationBox(operation, named));
  const lists = [
    ["On the path", boxes.filter(({ operation }) => operation.is_on_path)],
    ["Other operations of the case", boxes.filter(({ operation }) => !operation.is_on_path)],
  ];
  const search = element("input", { type: "text", id: "judge-search", autocomplete: "off" });
  search.addEventListener("input", () => {
    const wanted = search.value.trim().toLowerCase();
    for (const { label, input } of boxes) {
      label.hidden = !input.checked && !label.textContent.toLowerCase().includes(wanted);
    }
  });
  const node = element("fieldset", { class: "judge-operations", "aria-describedby": says.node.id },
    element("legend", {}, "Decisive operation"),
    quiet("Where it was lost. Several, when only several repairs together would do."),
    element("label", { for: search.id }, "Find"), search,
    element("div", { class: "judge-list" }, lists.filter(([, found]) => found.length).map(([title, found]) =>
      element("div", { role: "group", "aria-label": title },
        element("p", { class: "quiet" }, title), found.map(({ label }) => label)))),
    known.left_out ? quiet(`${known.left_out} earlier operations are not listed; memtrace-otel judge takes them.`) : null,
    says.node);
  let need = "some";
  return {
    node,
    need: (wanted) => { need = wanted; node.hidden = wanted === "none"; says.tell(""); },
    chosen: () => (need === "none" ? [] : boxes.filter(({ input }) => input.checked).map(({ input }) => input.value)),
    invalid() {
      const missing = need === "some" && !boxes.some(({ input }) => input.checked);
      says.tell(missing ? "Choose the operation at which it happened." : "");
      return missing ? (boxes[0]?.input ?? search) : null;
    },
  };
}

function operationBox(operation, named) {
  const input = element("input", { type: "checkbox" });
  input.value = spanText(operation.span);
  const where = [operation.service, operation.system, operation.step].filter(Boolean).join(" · ");
  const label = element("label", { class: "choice" }, input, " ", element("strong", {}, operation.name),
    ` ${where} `, momentNode(operation.time), " ", element("span", { class: "id" }, operation.span.spanId),
    named.has(input.value) ? " (named by this verdict)" : "");
  return { operation, input, label };
}

function field(id) {
  const node = element("p", { id, class: "error", role: "alert", hidden: true });
  return { node, tell: (text) => { node.textContent = text; node.hidden = !text; } };
}

async function send(verdict, said, onChange, says, button) {
  button.disabled = true;
  says.hidden = true;
  try {
    await tell("/judge", { answer: spanText(verdict.answer), revision: verdict.revision, ...said });
    onChange();
  } catch (error) {
    says.textContent = error.message;
    if (error.status === 409) says.append(" ", again(onChange));
    says.hidden = false;
    button.disabled = false;
  }
}

const again = (onChange) => element("button", { type: "button", onclick: () => onChange() }, "Show what stands now");

function remembered() {
  try {
    return localStorage.getItem(NAME_KEY) ?? "";
  } catch {
    return ""; // a browser that keeps nothing for this page
  }
}

function remember(name) {
  try {
    localStorage.setItem(NAME_KEY, name);
  } catch {
    // asked for again next time
  }
}
