// What the reader does: choosing, searching, trying settings; and following a source that grows.
const SLIDERS = [["min_relevance_score", "Bar: least relevance", 0, 1, .05], ["max_context_items", "Most items", 1, 20, 1], ["max_context_tokens", "Most tokens", 100, 8000, 100], ["max_attempts", "Most attempts per need", 1, 10, 1]];
let tried = {}, busy = false, again = false;

function choose(index, focus = true) {
  if (!rows[index]) return;
  chosen = index;
  if (rows[index].place >= 0) scrollToPlace(rows[index].place);
  drawRows();
  if (focus) {
    el("turns").focus({preventScroll: true});
    const turn = document.getElementById(`turn-${index}`);
    // The window may be lower than the timeline.
    if (turn) turn.scrollIntoView({block: "nearest"});
  }
  drawDetail(rows[index]);
}
function toDetail() { el("detail").focus({preventScroll: true}); el("detail").scrollIntoView(); }
function move(by) {
  const place = rows[chosen] ? rows[chosen].place : -1, row = shown[Math.min(shown.length - 1, Math.max(0, place + by))];
  if (row) choose(row.index);
}
function nextGap(by = 1) {
  const gaps = shown.filter(hasGap), after = by > 0 ? gaps.find(row => row.index > chosen) || gaps[0] : gaps.filter(row => row.index < chosen).pop() || gaps[gaps.length - 1];
  if (after) choose(after.index);
}
const firstGap = () => Math.max(0, rows.findIndex(hasGap));

function fillSelect(id, options) {
  const before = el(id).value;
  el(id).replaceChildren(...options.map(([value, words]) => make("option", {value}, words)));
  if (options.some(([value]) => value === before)) el(id).value = before;
}

function draw() {
  const before = rows[chosen] && known(rows[chosen]), detail = el("detail").scrollTop;
  unpack(); readRows(); readCycles();
  chosen = rows.findIndex(row => known(row) === before);
  el("source").textContent = data.source || data.title;
  document.title = data.title ? `${data.title} · Scrum master inspector` : "Scrum master inspector";
  fillSelect("thread", threads.map((name, i) => [String(i), `${name || "no thread"} · ${several(data.steps.filter(step => step.conversation === name).length, "step")}, ${several(data.steps.filter(step => step.conversation === name && gapsOf(step).length).length, "gap")}`]));
  el("thread").value = String(threads.indexOf(thread));
  el("of-thread").hidden = threads.length < 2;
  fillSelect("agent", [["", "all"], ...agents.map(name => [name, name])]);
  fillSelect("outcome", [["", "all"], ["gap", "any gap"], ["injected", "injected"], ["abstained", "abstained"], ["escalated", "escalated"], ...Object.entries(OUTCOMES)]);
  el("differs").hidden = !data.difference;
  if (data.difference) el("differs").querySelector("div").replaceChildren(data.difference.length ? table(["step", "what", "before", "after"], data.difference) : make("p", {class: "soft"}, "None: all steps are the same."));
  const notices = [...data.problems.map(problem => problem.error), ...data.notes];
  el("problems").hidden = !notices.length;
  el("problems").querySelector("ul").replaceChildren(...notices.map(text => make("li", {}, text)));
  drawSummary(); drawCycles(); drawSettings(); filterRows();
  if (rows.length) choose(rows[chosen] ? chosen : firstGap(), false);
  else el("shown").replaceChildren(make("p", {class: "soft"}, "Nothing to show."));
  if (before) el("detail").scrollTop = detail;
}

function drawSettings() {
  const first = data.steps.find(step => step.conversation === thread) || {}, config = first.config || {}, count = outcome => data.steps.filter(step => step.conversation === thread && outcomeOf(step.result) === outcome).length;
  const hint = ["injected", "abstained", "escalated"].map(name => `${count(name)} ${name}`).join(", ");
  el("changed").textContent = `hypothetical: ${hint}${Object.keys(tried).length ? " · changed" : ""}`;
  if (el("sliders").contains(document.activeElement)) return;
  const controls = SLIDERS.map(([name, words, least, most, step]) => {
    const value = tried[name] ?? config[name] ?? least, output = make("output", {}, String(value));
    const input = make("input", {type: "range", id: `try-${name}`, min: least, max: most, step, value, disabled: !data.live});
    input.addEventListener("input", () => { output.textContent = input.value; tryOut(name, Number(input.value)); });
    return make("label", {for: `try-${name}`}, make("span", {}, words, output), input);
  });
  const reset = make("button", {type: "button"}, "As recorded");
  reset.addEventListener("click", () => { tried = {}; refresh(); });
  el("sliders").replaceChildren(...controls, data.live ? reset : make("p", {class: "hint"}, "This file shows one replay. `scrum-master inspect … --serve` re-runs it here with other settings."));
}

let waiting = null;
function tryOut(name, value) {
  tried[name] = value;
  clearTimeout(waiting);
  waiting = setTimeout(refresh, 250);
}

function tell(why) { if (el("stale").textContent !== why) { el("stale").textContent = why; el("stale").hidden = !why; } }
const ask = (path, body) => fetch(path, {method: "POST", headers: {"Content-Type": "application/json", "X-Inspector-Token": data.token}, body});

// One question at a time: settings that change meanwhile are asked for afterwards.
async function refresh() {
  if (busy) { again = true; return; }
  busy = true;
  const late = setTimeout(() => { el("changed").textContent = "replaying …"; }, 300);
  try {
    const answer = await ask("data", JSON.stringify({config: tried, digest: data.digest}));
    if (answer.status === 200) { data = {...await answer.json(), token: data.token}; draw(); el("status").textContent = "New steps loaded"; }
    tell([200, 304].includes(answer.status) ? "" : `Not refreshed: ${await answer.text()}`);
  } catch { tell("Not refreshed: the server has stopped."); }
  clearTimeout(late); drawSettings();
  busy = false;
  if (again) { again = false; refresh(); }
}

function theme(name) {
  document.documentElement.dataset.theme = name;
  try { localStorage.setItem("theme", name); } catch { /* not allowed for files */ }
  drawMinimap();
}

el("turns").addEventListener("scroll", drawRows, {passive: true});
el("turns").addEventListener("click", event => {
  const turn = event.target.closest(".turn");
  if (turn) { choose(Number(turn.dataset.row)); if (narrow.matches) toDetail(); }
});
el("minimap").addEventListener("pointerdown", event => { el("minimap").setPointerCapture(event.pointerId); jump(event); });
el("minimap").addEventListener("pointermove", event => { if (event.buttons) jump(event); });
function jump(event) {
  const box = el("minimap").getBoundingClientRect();
  el("turns").scrollTop = (event.clientY - box.top) / box.height * shown.length * ROW - el("turns").clientHeight / 2;
}
el("thread").addEventListener("input", () => { thread = threads[Number(el("thread").value)]; el("agent").value = ""; chosen = -1; rows = []; el("turns").scrollTop = 0; draw(); });
for (const id of ["search", "agent", "outcome"]) el(id).addEventListener("input", () => { filterRows(); if (rows[chosen]) drawDetail(rows[chosen]); });
el("next").addEventListener("click", () => nextGap());
el("back").addEventListener("click", () => { choose(chosen); el("left").scrollIntoView(); });
el("theme").addEventListener("click", () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || el("wrong").open) return;
  const at = document.activeElement, typing = /^(INPUT|SELECT|TEXTAREA)$/.test(at.tagName);
  if (event.key === "Escape" && typing) { if (at === el("search")) { el("search").value = ""; el("search").dispatchEvent(new Event("input")); } el("turns").focus({preventScroll: true}); return; }
  if (typing) return;
  // In the details the arrow keys scroll.
  if (/^(Arrow|Home|End|Page)/.test(event.key) && el("detail").contains(at)) return;
  const page = Math.max(1, Math.floor(el("turns").clientHeight / ROW) - 1);
  const does = {"/": () => el("search").focus(), j: () => move(1), ArrowDown: () => move(1), k: () => move(-1), ArrowUp: () => move(-1), PageDown: () => move(page), PageUp: () => move(-page), Home: () => move(-shown.length), End: () => move(shown.length), g: () => nextGap(), G: () => nextGap(-1), Enter: () => at === el("turns") && toDetail()}[event.key];
  if (does && !(event.key === "Enter" && at !== el("turns"))) { event.preventDefault(); does(); }
});
// The layout follows the sizes of the header and of the timeline.
new ResizeObserver(([{target}]) => document.documentElement.style.setProperty("--head", `${target.offsetHeight}px`)).observe(document.querySelector("header"));
new ResizeObserver(() => { el("turns").style.setProperty("--gutter", `${gutter()}px`); drawLaneHeads(); drawRows(); drawMinimap(); }).observe(el("view"));
let stored = null;
try { stored = localStorage.getItem("theme"); } catch { /* not allowed for files */ }
document.documentElement.dataset.theme = stored || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
draw();
document.documentElement.dataset.ready = Math.round(performance.now());
if (data.live) setInterval(() => busy || refresh(), 2000);
