"use strict";
// What the page knows: steps, the turns of a thread as rows, and the small helpers that all parts use.
const SPACES = {E1: ["meaning", "semantic"], E2: ["freshness", "recent"], E3: ["time of day and week", "periodic"], E4: ["order", "positional"], E5: ["cause and effect", "causal"], E6: ["exact words", "lexical"], E7: ["code", "code"], E8: ["links", "graph"], E9: ["spelling", "hyperdimensional"], E10: ["paraphrase", "contextual"], E11: ["people and things", "entity"], E12: ["word by word", "late interaction"], E13: ["related words", "keywords"]};
const FATES = {kept: "kept", below_bar: "not relevant enough", already_seen: "already seen", duplicate: "duplicate of a better one", far_below_best: "far below the best score", only_a_heading: "only a heading", not_picked: "the chat model picked others", over_items: "over the item limit", over_budget: "over the budget"};
const OUTCOMES = {used: "used it", ignored: "did not use it", asked_again: "asked again", open: "outcome not yet known"};
const BECAME = {used: "helped", ignored: "ignored", asked_again: "asked again", open: "not yet known"};
const el = id => document.getElementById(id);
let data = JSON.parse(el("data").textContent), rows = [], shown = [], agents = [], threads = [], thread = "", chosen = -1;

function make(tag, attributes = {}, ...children) {
  const made = document.createElementNS(tag.startsWith("svg:") ? "http://www.w3.org/2000/svg" : "http://www.w3.org/1999/xhtml", tag.replace("svg:", ""));
  // The page's policy forbids style attributes; properties may be set.
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("--")) made.style.setProperty(name, value);
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(9).filter(child => child !== null && child !== undefined && child !== ""));
  return made;
}
const several = (count, what) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;
const clock = seconds => seconds === null || seconds === undefined ? "" : new Date(seconds * 1000).toISOString().slice(11, 19);
const outcomeOf = result => !result ? "silent" : result.escalated ? "escalated" : result.injected ? "injected" : "abstained";
// What was recorded of a step. Without a record, only the replay knows a gap.
const recordedOf = step => step.recorded ? outcomeOf(step.recorded) : step.ran ? "silent" : "none";
const gapsOf = step => {
  const found = step.recorded ? [step.recorded.gap, ...(step.recorded.pending || [])] : [];
  for (const gap of [...(step.gaps || []), ...(step.given_up || [])]) if (!found.some(each => each.gap_id === gap.gap_id)) found.push(gap);
  return found;
};
const hasGap = row => row.last && gapsOf(row.step).length > 0;
// Golden-angle steps give distinct hues for any number of agents.
const hue = name => Math.round(195 + 137.5 * (agents.indexOf(name) + 1 || agents.length + 1)) % 360;
const who = name => make("span", {class: "who", "--hue": hue(name), title: name}, name);
const tag = (kind, words, maybe = false) => make("span", {class: `tag ${kind}${maybe ? " maybe" : ""}`}, words);
const stepName = step => [step.thread, `step ${step.step || 0}`, (step.at || "").slice(0, 19).replace("T", " ")].filter(Boolean).join(" · ");
// Identifies a turn after the source has grown.
const known = row => JSON.stringify([row.step.conversation, row.step.where, row.step.step, row.turn.id, row.turn.text]);

function unpack() {
  for (const step of data.steps) {
    step.cycles = (step.cycles || []).map(each => typeof each === "number" ? data.cycles[each] : each);
    if (typeof step.config === "number") step.config = data.configs[step.config];
  }
  threads = [...new Set(data.steps.map(step => step.conversation))];
  if (!threads.includes(thread)) thread = threads.find(name => data.steps.some(step => step.conversation === name && gapsOf(step).length)) || threads[0] || "";
}

function readRows() {
  rows = [];
  const steps = data.steps.filter(step => step.conversation === thread), ran = steps.some(step => step.ran);
  for (const step of steps) {
    const turns = step.turns || [];
    // Where a scrum master took part, a step at which it was not asked and nobody spoke says nothing.
    if (!turns.length && !step.recorded && !step.failure && (ran || !step.result)) continue;
    const said = turns.length ? turns : [{agent: step.speaker || "state", text: step.said || "(no new message)", again: true}];
    said.forEach((turn, i) => rows.push({turn, step, index: rows.length, last: i === said.length - 1}));
  }
  agents = [...new Set(rows.map(row => row.turn.agent))];
}

function matches(row) {
  const words = el("search").value.toLowerCase().split(/\s+/).filter(Boolean), agent = el("agent").value, wanted = el("outcome").value;
  if (agent && row.turn.agent !== agent && !(row.last && gapsOf(row.step).some(gap => gap.agent === agent))) return false;
  if (wanted === "gap" && !hasGap(row)) return false;
  if (["injected", "abstained", "escalated"].includes(wanted) && !(row.last && (row.step.recorded ? recordedOf(row.step) : outcomeOf(row.step.result)) === wanted)) return false;
  if (OUTCOMES[wanted] && !(row.last && row.step.recorded && row.step.injection_outcome === wanted)) return false;
  if (!words.length) return true;
  row.text ||= JSON.stringify(row.last ? [row.turn, gapsOf(row.step), row.step.considered, row.step.result, row.step.recorded] : row.turn).toLowerCase();
  return words.every(word => row.text.includes(word));
}

function marked(text) {
  const words = el("search").value.split(/\s+/).filter(Boolean).map(word => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  if (!words.length) return [text];
  return text.split(new RegExp(`(${words.join("|")})`, "gi")).map((part, i) => i % 2 ? make("mark", {}, part) : part);
}

// Long text scrolls in its own box, with the keyboard too.
const prose = (text, attributes = {}) => make("pre", {tabindex: text.length > 1200 ? 0 : null, ...attributes}, marked(text));

// A turn's text with the words highlighted that state the need.
function said(turn, gaps) {
  const spans = gaps.flatMap(gap => gap.spans || []).filter(span => turn.id && span.message === turn.id && span.end > span.start).sort((a, b) => a.start - b.start);
  const letters = Array.from(turn.text || "(no text)"), parts = [];
  let at = 0;
  for (const span of spans) {
    if (span.start < at) continue;
    parts.push(marked(letters.slice(at, span.start).join("")), make("mark", {class: "need", title: "What the agent lacks"}, letters.slice(span.start, span.end).join("")));
    at = span.end;
  }
  return make("pre", {tabindex: letters.length > 1200 ? 0 : null}, parts, marked(letters.slice(at).join("")));
}

function table(heads, body) {
  const number = i => i && heads[i] === heads[i].trim() && body.length && body[0][i] !== undefined && typeof body[0][i] === "number" ? "number" : null;
  return make("table", {}, make("thead", {}, make("tr", {}, heads.map((head, i) => make("th", {scope: "col", class: number(i)}, head)))),
    make("tbody", {}, body.map(cells => make("tr", {}, cells.map((cell, i) => make("td", {class: number(i)}, typeof cell === "number" ? cell.toLocaleString("en") : cell))))));
}
const pairs = list => make("dl", {}, list.filter(([, value]) => value !== "" && value !== null && value !== undefined).flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
