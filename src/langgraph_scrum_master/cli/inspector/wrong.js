// "This was wrong": a step as a snapshot test, with what should have happened instead.
function wrongButton({step}) {
  if (!step.snapshot) return null;
  const button = make("button", {type: "button"}, "This was wrong …");
  button.addEventListener("click", () => askWhatWasRight(step));
  return make("p", {}, make("h3", {}), button);
}

function askWhatWasRight(step) {
  const result = step.recorded || step.result, known = new Map();
  for (const each of [...((result || {}).contexts_retrieved || []), ...((result || {}).dropped || []), ...(step.considered || []).map(each => each.context)]) if (!known.has(each.key)) known.set(each.key, each.title || (each.content || "").slice(0, 80) || each.key);
  const choice = (value, words) => make("label", {}, make("input", {type: "radio", name: "outcome", value, required: true}), words);
  const boxes = name => [...known].map(([key, title]) => make("label", {}, make("input", {type: "checkbox", name, value: key}), title));
  const form = make("form", {method: "dialog"},
    make("h2", {id: "wrong-title"}, "What should have happened here?"),
    make("div", {}, choice("silent", "Silence: nobody lacked context."), choice("abstained", "A gap, but nothing to inject."), choice("injected", "An injection.")),
    known.size ? make("fieldset", {}, make("legend", {}, "These must be injected"), boxes("keys")) : null,
    known.size ? make("fieldset", {}, make("legend", {}, "These must not be injected"), boxes("without")) : null,
    make("label", {}, "Note ", make("textarea", {name: "note", rows: 2})),
    make("p", {class: "hint"}, data.live ? `The step is written to the folder ${data.folder} as a snapshot test.` : "The step is downloaded as a snapshot test.", " Run it with the pytest plugin: mark a test with scrum_master_snapshots(folder)."),
    make("div", {class: "row"}, make("button", {type: "button", value: "cancel"}, "Cancel"), make("button", {type: "submit", class: "main"}, "Export test")));
  form.querySelector("[value=cancel]").addEventListener("click", () => el("wrong").close());
  form.addEventListener("submit", () => {
    const given = new FormData(form);
    exportTest(step, {outcome: given.get("outcome"), keys: given.getAll("keys"), without: given.getAll("without"), note: given.get("note")});
  });
  el("wrong").replaceChildren(form);
  el("wrong").showModal();
}

function snapshotOf(step, expected) {
  const {state, messages, config, ...rest} = step.snapshot, whole = Object.fromEntries(Object.entries(state).map(([key, index]) => [key, data.pool.values[index]]));
  if (messages) whole.messages = messages.flatMap(([start, end]) => data.pool.messages.slice(start, end));
  return {schema: data.schema, state: whole, at: step.at || "", thread: step.thread || "", step: step.step || 0, config: config === undefined ? null : data.configs[config], ran: Boolean(step.ran), result: step.recorded || null, ...rest, expected};
}

async function exportTest(step, expected) {
  const text = `${JSON.stringify(snapshotOf(step, expected), null, 1)}\n`, name = `${[step.thread, step.where, `step-${step.step || 0}`].filter(Boolean).join("-").replace(/[^\w.-]+/g, "_")}.snapshot.json`;
  let where = name;
  if (data.live) {
    const answer = await ask("wrong", text);
    if (answer.status !== 200) { tell(`Not exported: ${await answer.text()}`); return; }
    where = (await answer.json()).file;
  } else {
    const link = make("a", {href: URL.createObjectURL(new Blob([text], {type: "application/json"})), download: name});
    link.click();
    URL.revokeObjectURL(link.href);
  }
  el("status").textContent = `Exported ${where}`;
  el("shown").append(make("p", {class: "good"}, `Exported as a snapshot test: ${where}`));
}
