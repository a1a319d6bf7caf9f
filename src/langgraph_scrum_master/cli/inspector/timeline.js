// The timeline: only the turns in view are in the document. Lanes, handoffs and cycles are drawn beside them.
const ROW = 52, BEYOND = 6;
const laneWidth = () => Math.max(8, Math.min(22, (narrow.matches ? 72 : 150) / Math.max(1, agents.length)));
const laneX = name => arcSpace() + 10 + agents.indexOf(name) * laneWidth();
const arcSpace = () => cycleLinks.length && shown.length === rows.length ? (narrow.matches ? 14 : 34) : 0;
const gutter = () => arcSpace() + 18 + agents.length * laneWidth();
const narrow = matchMedia("(max-width: 60rem)");
let cycleLinks = [], cycling = new Set();

// Each cycle's repeated turns, as pairs of rows in which the same agent says or does the same again.
function readCycles() {
  const byId = new Map(rows.filter(row => row.turn.id && !row.turn.again).map(row => [row.turn.id, row.index])), links = new Map();
  cycling = new Set();
  for (const {step} of rows) for (const ids of step.cycle_turns || []) {
    const at = [...new Set(ids.map(id => byId.get(id)).filter(index => index !== undefined))].sort((a, b) => a - b);
    at.forEach(index => cycling.add(index));
    const latest = new Map();
    for (const index of at) {
      const from = latest.get(rows[index].turn.agent);
      if (from !== undefined) links.set(`${from} ${index}`, [from, index]);
      latest.set(rows[index].turn.agent, index);
    }
  }
  cycleLinks = [...links.values()];
}

function filterRows() {
  shown = rows.filter(matches);
  shown.forEach((row, place) => { row.place = place; });
  const hidden = new Set(rows); shown.forEach(row => hidden.delete(row)); hidden.forEach(row => { row.place = -1; });
  el("none").hidden = shown.length > 0;
  el("rows").style.height = `${shown.length * ROW}px`;
  el("turns").style.setProperty("--gutter", `${gutter()}px`);
  el("turns").setAttribute("aria-setsize", shown.length);
  el("status").textContent = `${several(shown.length, "turn")} shown`;
  drawLaneHeads(); drawRows(); drawMinimap();
}

function drawRows() {
  const box = el("turns"), first = Math.max(0, Math.floor(box.scrollTop / ROW) - BEYOND), end = Math.min(shown.length, Math.ceil((box.scrollTop + box.clientHeight) / ROW) + BEYOND);
  el("rows").replaceChildren(drawLanes(first, end), ...shown.slice(first, end).map(drawTurn));
  const selected = rows[chosen] && rows[chosen].place >= first && rows[chosen].place < end;
  if (selected) box.setAttribute("aria-activedescendant", `turn-${chosen}`); else box.removeAttribute("aria-activedescendant");
  placeView();
}

function drawTurn(row) {
  const {turn, step} = row, tags = [];
  if (row.last) {
    const then = recordedOf(step), now = outcomeOf(step.result);
    if (step.recorded) tags.push(tag(then, then), step.injection_outcome && OUTCOMES[step.injection_outcome] && step.injection_outcome !== "open" ? tag(step.injection_outcome, OUTCOMES[step.injection_outcome]) : null);
    else if (now !== "silent") tags.push(tag(now, `would have ${now}`, true));
    if (step.failure) tags.push(tag("failure", "not observed"));
  }
  const meta = [clock(turn.time), turn.kind && turn.kind !== "agent" && turn.kind !== turn.agent ? turn.kind : "", ...(turn.tools || []).map(tool => `calls ${tool}`), turn.handed_to && `→ ${turn.handed_to}`].filter(Boolean).join(" · ");
  const made = make("div", {class: "turn", role: "option", id: `turn-${row.index}`, "data-row": row.index, "aria-selected": String(row.index === chosen), "aria-setsize": shown.length, "aria-posinset": row.place + 1},
    make("div", {class: "top"}, who(turn.agent), " ", make("span", {class: "meta"}, meta), tags), make("div", {class: "words"}, (turn.text || "(no text)").slice(0, 240)));
  made.style.top = `${row.place * ROW}px`;
  return made;
}

// Lanes, the way from turn to turn, and cycles as arcs, for these rows.
function drawLanes(first, end) {
  const top = first * ROW, height = (end - first) * ROW, y = place => place * ROW + ROW / 2 - top, parts = [];
  for (const name of agents) parts.push(make("svg:line", {class: "lane", x1: laneX(name), x2: laneX(name), y1: 0, y2: height, "--hue": hue(name)}));
  for (let place = Math.max(1, first); place <= Math.min(end, shown.length - 1); place++) {
    const from = laneX(shown[place - 1].turn.agent), to = laneX(shown[place].turn.agent), a = y(place - 1), b = y(place);
    parts.push(make("svg:path", {class: "way", d: `M${from},${a} C${from},${(a + b) / 2} ${to},${(a + b) / 2} ${to},${b}`}));
  }
  if (arcSpace()) for (const [from, to] of cycleLinks) {
    if (to < first || from >= end) continue;
    const a = y(from), b = y(to), x = laneX(rows[from].turn.agent) - 6, far = arcSpace() - Math.min(arcSpace() + 2, 8 + 5 * (to - from));
    parts.push(make("svg:path", {class: "arc", d: `M${x},${a} C${far},${a} ${far},${b} ${x},${b}`}, make("svg:title", {}, "A cycle: the same again")));
  }
  for (const row of shown.slice(first, end)) parts.push(make("svg:circle", {class: `dot${cycling.has(row.index) ? " ring" : ""}`, cx: laneX(row.turn.agent), cy: y(row.place), r: Math.min(6, laneWidth() / 2 + 1), "--hue": hue(row.turn.agent)}));
  const svg = make("svg:svg", {width: gutter(), height, "aria-hidden": "true"}, parts);
  svg.style.top = `${top}px`;
  return svg;
}

function drawLaneHeads() {
  const names = agents.map(name => make("svg:text", {"--hue": hue(name), transform: `translate(${laneX(name) + 3},52) rotate(-35)`}, name.length > 15 ? `${name.slice(0, 14)}…` : name, make("svg:title", {}, name)));
  el("lanes").replaceChildren(make("svg:svg", {}, names));
}

function drawMinimap() {
  const canvas = el("minimap").querySelector("canvas"), box = el("minimap").getBoundingClientRect(), scale = devicePixelRatio || 1, style = getComputedStyle(document.documentElement);
  const read = name => style.getPropertyValue(name).trim(), colours = {injected: read("--good"), abstained: read("--warn"), escalated: read("--bad")};
  canvas.width = box.width * scale; canvas.height = box.height * scale;
  const paint = canvas.getContext("2d"), each = box.height / Math.max(1, shown.length), width = (box.width - 14) / Math.max(1, agents.length);
  paint.scale(scale, scale);
  for (const row of shown) {
    paint.fillStyle = `oklch(${read("--agent")} ${read("--chroma")} ${hue(row.turn.agent)})`;
    paint.fillRect(5 + agents.indexOf(row.turn.agent) * width, row.place * each, Math.max(3, width - 1), Math.max(1, Math.min(6, each * .7)));
    if (cycling.has(row.index)) { paint.fillStyle = read("--bad"); paint.fillRect(0, row.place * each, 3, Math.max(1, Math.min(6, each))); }
    if (!hasGap(row)) continue;
    paint.fillStyle = colours[row.step.recorded ? recordedOf(row.step) : outcomeOf(row.step.result)] || read("--soft");
    paint.fillRect(box.width - 8, row.place * each, 6, Math.max(3, Math.min(6, each)));
  }
  placeView();
}

function placeView() {
  const box = el("turns"), whole = Math.max(1, shown.length * ROW), view = el("minimap").querySelector("i");
  view.style.top = `${100 * box.scrollTop / whole}%`;
  view.style.height = `${Math.min(100, 100 * box.clientHeight / whole)}%`;
}

function scrollToPlace(place) {
  const box = el("turns"), top = place * ROW;
  if (top < box.scrollTop) box.scrollTop = top;
  else if (top + ROW > box.scrollTop + box.clientHeight) box.scrollTop = top + ROW - box.clientHeight;
}

// Cycles in words, each with a way to its first turn. A cycle that goes on is the same one.
function drawCycles() {
  const found = [];
  for (const row of rows) row.step.cycles.forEach((cycle, i) => {
    const ids = (row.step.cycle_turns || [])[i] || [], who = [...cycle.agents_involved].sort().join(" ↔ ");
    let same = found.find(each => each.who === who && ids.some(id => each.ids.has(id)));
    if (!same) found.push(same = {who, ids: new Set(), first: ids[0], row, count: 0});
    ids.forEach(id => same.ids.add(id));
    if (cycle.exchange_count >= same.count) [same.count, same.topic] = [cycle.exchange_count, cycle.topic];
  });
  const byId = new Map(rows.filter(row => !row.turn.again).map(row => [row.turn.id, row]));
  const list = found.map(({who, first, row, topic, count}) => {
    const to = make("button", {type: "button"}, topic || "the same act");
    to.addEventListener("click", () => choose((byId.get(first) || row).index));
    return [who, to, `${count} ×`];
  });
  el("cycles").replaceChildren(...(list.length ? [make("h3", {}, several(list.length, "cycle")), table(["who", "the same again", "times"], list)] : []));
}
