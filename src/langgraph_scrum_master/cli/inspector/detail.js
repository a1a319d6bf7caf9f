// The summary of the run, and the details of one turn: what was recorded first, a replay beside it.
function drawSummary() {
  const tallies = data.tallies.filter(row => row.thread === thread || threads.length < 2), recorded = data.steps.some(step => step.conversation === thread && (step.ran || step.recorded)) || tallies.length > 0;
  const rowsOf = recorded ? tallies : hypotheticalTallies(), sum = name => rowsOf.reduce((total, row) => total + (row[name] || 0), 0);
  const turns = rows.filter(row => !row.turn.again).length, gaps = sum("gaps"), served = sum("served");
  const figure = (number, words) => make("div", {}, make("b", {}, number.toLocaleString("en")), make("span", {}, words));
  const became = Object.keys(BECAME).map(name => [name, sum(name)]).filter(([, count]) => count);
  const middle = !recorded ? make("p", {class: "soft"}, "No recorded results: these figures are hypothetical, from a replay with the settings below.")
    : !served ? make("p", {class: "soft"}, gaps ? "Nothing was injected." : "Nobody lacked context.")
    : [make("div", {}, `What became of ${several(served, "injection")}`), make("div", {class: "stack", "aria-hidden": "true"}, became.map(([name, count]) => make("i", {class: name, "--part": count}))), make("ul", {class: "key"}, became.map(([name, count]) => make("li", {class: name}, `${count} ${BECAME[name]}`)))];
  const list = rowsOf.map(row => [row.agent, row.reason.replaceAll("_", " "), row.gaps, row.served, ...(recorded ? [row.used, row.asked_again] : [row.abstained]), row.tokens]);
  el("figures").replaceChildren(
    make("div", {class: "numbers"}, figure(turns, turns === 1 ? "turn" : "turns"), figure(gaps, gaps === 1 ? "gap" : "gaps"), figure(served, recorded ? "injected" : "would be injected"), figure(sum("tokens"), "tokens injected")),
    make("div", {}, middle),
    list.length ? make("div", {}, table(["agent", "reason of the gap", "gaps", "injected", ...(recorded ? ["helped", "asked again"] : ["abstained"]), "tokens"], list)) : make("p", {class: "soft"}, "No gaps."));
  el("summary").classList.toggle("hypothetical", !recorded);
  el("summary-title").replaceChildren("The run", recorded ? "" : make("span", {}, " ", tag("none", "hypothetical", true)));
}

function hypotheticalTallies() {
  const found = new Map(), seen = new Set();
  for (const {result} of data.steps.filter(step => step.conversation === thread)) {
    if (!result) continue;
    const key = `${result.gap.agent}\n${result.gap.reason}`, row = found.get(key) || {agent: result.gap.agent, reason: result.gap.reason, gaps: 0, served: 0, abstained: 0, tokens: 0};
    row.gaps += !seen.has(result.gap.gap_id); seen.add(result.gap.gap_id);
    row.served += result.injected ? 1 : 0; row.abstained += result.injected ? 0 : 1; row.tokens += result.injected ? result.total_tokens || 0 : 0;
    found.set(key, row);
  }
  return [...found.values()];
}

function drawDetail(row) {
  const {turn, step, last} = row, gaps = last ? gapsOf(step) : [], parts = [];
  parts.push(make("div", {class: "title"}, who(turn.agent), turn.handed_to ? ` → ${turn.handed_to}` : "", make("span", {class: "hint"}, [stepName(step), step.where].filter(Boolean).join(" · "))));
  parts.push(said(turn, gaps));
  if ((turn.tools || []).length) parts.push(make("p", {class: "hint"}, `calls ${turn.tools.join(", ")}`));
  for (const earlier of rows.filter(each => each.turn.id && each.turn.id !== turn.id && !each.turn.again && gaps.some(gap => (gap.spans || []).some(span => span.message === each.turn.id))))
    parts.push(make("h3", {}, `The need was stated earlier, by ${earlier.turn.agent}`), said(earlier.turn, gaps));
  if (!last) parts.push(make("p", {class: "hint"}, "The scrum master looked after a later turn of this step."));
  else parts.push(recordedPart(row), step.failure ? make("p", {class: "bad"}, step.failure) : hypotheticalPart(row), wrongButton(row));
  el("shown").replaceChildren(...parts.flat().filter(Boolean));
  el("detail").scrollTop = 0;
}

function recordedPart(row) {
  const {step} = row, came = recordedOf(step), title = (...more) => make("div", {class: "title"}, make("h2", {}, "What happened"), more);
  if (came === "none") return make("div", {id: "recorded"}, title(tag("none", "no record")), make("p", {class: "soft"}, "No record: the source has no result of the scrum master for this step."));
  if (came === "silent") return make("div", {id: "recorded"}, title(tag("silent", "silent")), make("p", {class: "soft"}, "The scrum master found no gap here and wrote nothing."));
  const became = step.injection_outcome && step.recorded.injected ? tag(step.injection_outcome, OUTCOMES[step.injection_outcome] || step.injection_outcome) : null;
  return make("div", {id: "recorded"}, title(tag(came, came), became, step.recorded.injected ? make("span", {class: "hint"}, `${several(step.recorded.total_tokens || 0, "token")} · ${(step.recorded.duration_ms || 0).toFixed(1)} ms`) : null), ...resultParts(row, step.recorded, true));
}

function hypotheticalPart(row) {
  const {step} = row, came = outcomeOf(step.result), differs = step.differs || [];
  const head = make("div", {class: "title"}, tag("none", "hypothetical", true), make("h2", {}, "A replay with these settings"));
  if (recordedOf(step) === "none") {
    const body = step.result ? [make("p", {}, "would have ", tag(came, came, true)), ...resultParts(row, step.result, false)] : [make("p", {class: "soft"}, "finds no gap: nobody lacks context here.")];
    return make("div", {class: "hypothetical", id: "hypothetical"}, head, body);
  }
  const same = make("p", {class: "soft"}, "does the same.");
  const rest = step.result ? make("details", {}, make("summary", {}, "The whole replay of this step"), ...resultParts(row, step.result, false)) : null;
  return make("div", {class: "hypothetical", id: "hypothetical"}, head, differs.length ? [make("p", {}, "differs: it would have ", tag(came, came, true)), make("div", {class: "changes"}, table(["what", "recorded", "replay"], differs.map(cells => cells.map(cell => cell || "none"))))] : same, rest);
}

function resultParts(row, result, recorded) {
  const {step} = row, gap = result.gap, parts = [], after = rows.find(each => each.index > row.index && !each.turn.again && each.turn.agent === gap.agent && (each.turn.kind || "agent") === "agent");
  const text = result.text ? prose(result.text, {id: recorded || !step.recorded ? "given" : null}) : make("p", {class: "soft"}, result.injected ? "The text was not recorded." : "Nothing: no context was relevant enough.");
  const next = after ? [make("h3", {}, `${gap.agent}’s next turn`, recorded && step.injection_outcome ? tag(step.injection_outcome, OUTCOMES[step.injection_outcome] || "") : null), prose(after.turn.text || `calls ${(after.turn.tools || []).join(", ")}`)] : [make("h3", {}, `${gap.agent}’s next turn`), make("p", {class: "soft"}, "None was saved.")];
  parts.push(make("div", {class: recorded ? "pair" : ""}, make("div", {}, make("h3", {}, recorded ? `What ${gap.agent} read` : `What ${gap.agent} would read`), text), recorded ? make("div", {}, next) : null));
  parts.push(pairs([["agent", gap.agent], ["reason", `${gap.reason.replaceAll("_", " ")}, confidence ${gap.confidence.toFixed(2)}`], ["evidence", (gap.indicators || []).join(", ")], ["needs", gap.context_query], ["missing", (gap.missing || []).join(", ")], ["waiting", (result.pending || []).map(each => `${each.agent}: ${each.reason.replaceAll("_", " ")}`).join(", ")], ["queries", recorded || !(step.queries || []).length ? "" : step.queries.join(" · ")]]));
  parts.push(make("h3", {}, "Candidates against the bar"), candidates(result, step));
  for (const failure of result.failures || []) parts.push(make("p", {class: "bad"}, `${failure.source}: ${failure.error}`));
  if (result.injected || (!recorded && step.budget)) parts.push(budget(result, step.config || {}));
  if (!recorded) parts.push(make("details", {}, make("summary", {}, "All settings"), make("pre", {class: "code", tabindex: 0}, JSON.stringify(step.config || {}, null, 2))));
  return parts;
}

function candidates(result, step) {
  const looked = new Map((step.considered || []).map(each => [each.context.key, each.context]));
  const list = [...(result.contexts_retrieved || []).map(context => ({...looked.get(context.key), ...context, content: context.content || (looked.get(context.key) || {}).content || "", fate: "kept"})), ...(result.dropped || []).map(drop => ({...looked.get(drop.key), ...drop, fate: drop.why}))].sort((a, b) => (b.fate === "kept") - (a.fate === "kept") || b.relevance_score - a.relevance_score);
  if (!list.length) return make("p", {class: "soft"}, "No source returned anything.");
  const bar = (step.config || {}).min_relevance_score ?? .7;
  return make("ul", {class: "candidates"}, list.map((each, i) => {
    const score = each.relevance_score || 0, name = each.title || (each.content || "").slice(0, 80) || each.key;
    const track = make("div", {class: "track", role: "meter", "aria-label": `score of ${name}`, "aria-valuemin": 0, "aria-valuemax": 1, "aria-valuenow": score.toFixed(2), "--value": `${100 * score}%`, "--bar": `${100 * bar}%`}, make("i"), make("u", {"data-label": `bar ${bar.toFixed(2)}`}));
    return make("li", {class: `${each.fate === "kept" ? "kept" : ""}${i ? "" : " first"}`},
      make("details", {}, make("summary", {class: "candidate"}, make("span", {class: "name", title: name}, marked(name)), track, make("b", {}, score.toFixed(2)), make("span", {class: "why"}, make("span", {class: each.fate === "kept" ? "good" : ""}, each.fate === "kept" && each.truncated ? "kept, trimmed to the budget" : FATES[each.fate] || each.fate), ` · ${each.source}`)),
        prose(each.content || "(its text was not kept)"), alike(each.strengths || {}), pairs([["key", each.key], ["made", each.created_at], ["agreement", each.weighted_agreement ? `${each.weighted_agreement.toFixed(2)} of 8.5` : ""]])));
  }));
}

function alike(strengths) {
  const positive = Object.entries(strengths).filter(([, value]) => value > 0).sort((a, b) => b[1] - a[1]);
  return positive.length ? make("div", {class: "alike"}, positive.flatMap(([code, value]) => {
    const [plain, name] = SPACES[code] || [code, ""], title = `${code} ${name}`.trim();
    return [make("span", {title}, plain), make("div", {class: "track", title, role: "meter", "aria-label": plain, "aria-valuemin": 0, "aria-valuemax": 1, "aria-valuenow": value.toFixed(2), "--value": `${Math.min(100, 100 * value)}%`}, make("i")), make("span", {title}, value.toFixed(2))];
  })) : null;
}

function budget(result, config) {
  const uses = [["tokens", result.total_tokens || 0, config.max_context_tokens], ["items", (result.contexts_retrieved || []).length, config.max_context_items], ["bytes", result.total_context_size || 0, config.max_context_size_bytes]];
  return [make("h3", {}, "Budget"), make("div", {class: "budget"}, uses.flatMap(([name, used, most]) => [make("span", {}, name), make("div", {class: "track", role: "meter", "aria-label": name, "aria-valuemin": 0, "aria-valuemax": most ?? used, "aria-valuenow": used, "--value": `${Math.min(100, 100 * used / Math.max(1, most ?? used))}%`}, make("i")), make("span", {class: "soft"}, `${used.toLocaleString("en")}${most ? ` of ${most.toLocaleString("en")}` : ""}`)]))];
}
