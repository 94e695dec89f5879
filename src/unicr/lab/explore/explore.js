"use strict";
// The explorer's page: settings become questions to /api/…, the answers become text and SVG.
// A newer question aborts the older ones; the curve is asked for point by point, coarse to fine.

const $ = (id) => document.getElementById(id);
const COLOURS = 6;
const GREEK = { beta: "β", sigma: "σ" };
const CLEARLY = 150; // milliseconds without a change before a question is sent

const clamp = (v, low, high) => Math.min(high, Math.max(low, v));
const logit = (p) => Math.log(p / (1 - p));
const expit = (t) => 1 / (1 + Math.exp(-t));
const neat = (v, digits = 4) => Number(v.toPrecision(digits));

// How a slider's place in 0 … 1 becomes a value, and back.
const linear = (low, high) => ({
  to: (t) => neat(low + t * (high - low)), from: (v) => (v - low) / (high - low) });
const logarithmic = (low, high, round = neat) => ({
  to: (t) => round(low * (high / low) ** t), from: (v) => Math.log(v / low) / Math.log(high / low) });
const P_LAST = 0.9999;
const probability = {
  to: (t) => Number((1 - neat(1 - expit(t * logit(P_LAST)), 3)).toFixed(7)),
  from: (p) => logit(clamp(p, 0.5, P_LAST)) / logit(P_LAST) };

let catalogue = null;
let state = { family: null, parameters: {}, size: "sigma", value: 1, norm: "inf",
  dim: 3072, pa: 0.9, kind: "density", expression: "exp(-abs(x)**1.5) * (1 + 0.3*cos(x))" };
let shown = { colour: 0, state, density: null, curve: null };
let point = null;
let pins = [];
let pending = null;
let timer = 0;

// ---------------------------------------------------------------- state, questions, permalink

function noiseWords(s) {
  const words = { family: s.family, [s.size]: s.value };
  if (s.family === "typed") return { ...words, kind: s.kind, expression: s.expression };
  return { ...words, ...s.parameters };
}

const joint = (s) => catalogue.families.find((f) => f.name === s.family)?.joint ?? false;
const noiseKey = (s) => JSON.stringify([noiseWords(s), joint(s) ? s.dim : 0]);
const curveKey = (s) => JSON.stringify([noiseWords(s), s.norm, s.dim]);
const fragment = (s) => new URLSearchParams(
  { ...noiseWords(s), norm: s.norm, dim: s.dim, pa: s.pa }).toString();

function readFragment(text) {
  const words = Object.fromEntries(new URLSearchParams(text));
  const family = catalogue.families.find((f) => f.name === words.family);
  if (!family && words.family !== "typed") return null;
  const parameters = {};
  for (const p of family ? family.parameters : []) {
    parameters[p.name] = Number(words[p.name] ?? p.start);
  }
  const size = words.scale === undefined ? "sigma" : "scale";
  return { ...state, family: words.family, parameters, size, value: Number(words[size] ?? 1),
    norm: words.norm ?? "2", dim: Number(words.dim ?? 3072), pa: Number(words.pa ?? 0.9),
    kind: words.kind ?? "density", expression: words.expression ?? state.expression };
}

function writeFragment() {
  const pinned = pins.map((p) => `&pin=${encodeURIComponent(fragment(p.state))}`).join("");
  history.replaceState(null, "", `#${fragment(state)}${pinned}`);
  $("link").textContent = location.href;
}

function openFragment() {
  const text = location.hash.slice(1);
  state = readFragment(text) ?? state;
  pins = [];
  for (const pin of new URLSearchParams(text).getAll("pin").slice(0, COLOURS - 1)) {
    const s = readFragment(pin);
    if (s) addPin({ state: s, density: null, curve: null });
  }
}

async function ask(question, words, signal) {
  let reply;
  try {
    reply = await fetch(`/api/${question}?${new URLSearchParams(words)}`, { signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The explorer does not answer. Is `unicr explore` still running?");
  }
  const answer = await reply.json();
  if (!reply.ok) throw new Error(answer.error);
  return answer;
}

// ---------------------------------------------------------------- asking, newest first

function changed() {
  writeFragment();
  draw();
  $("result").classList.add("stale");
  $("result").setAttribute("aria-busy", "true");
  clearTimeout(timer);
  timer = setTimeout(refresh, CLEARLY);
}

async function refresh() {
  pending?.abort();
  pending = new AbortController();
  const { signal } = pending;
  if (shown.curve && curveKey(shown.state) !== curveKey(state)) shown.curve = null;
  if (shown.density && noiseKey(shown.state) !== noiseKey(state)) shown.density = null;
  shown.state = structuredClone(state);
  $("busy").hidden = false;
  try {
    await loadDensity(shown, signal);
    const { norm, dim, pa } = state;
    point = await ask("radius", { ...noiseWords(state), norm, dim, pa }, signal);
    showPoint();
    await loadCurve(shown, signal);
    for (const pin of pins) await loadPin(pin, signal);
  } catch (error) {
    if (error.name !== "AbortError") showError(error.message);
  }
}

async function loadPin(pin, signal) {
  try {
    await loadDensity(pin, signal);
    await loadCurve(pin, signal);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    removePin(pin);
  }
}

async function loadDensity(item, signal) {
  if (item.density) return;
  const s = item.state;
  const words = joint(s) ? { ...noiseWords(s), dim: s.dim } : noiseWords(s);
  item.density = await ask("density", words, signal);
  draw();
}

async function loadCurve(item, signal) {
  const { norm, dim } = item.state;
  while (!item.curve?.complete) {
    const known = item.curve?.known ?? 0;
    item.curve = await ask("curve", { ...noiseWords(item.state), norm, dim, known }, signal);
    draw();
  }
}

// ---------------------------------------------------------------- showing

function settled() {
  $("busy").hidden = true;
  $("result").classList.remove("stale");
  $("result").setAttribute("aria-busy", "false");
}

function showPoint() {
  settled();
  $("error").hidden = true;
  $("proved").textContent = point.proved_text;
  $("searched").textContent = point.searched_text;
  $("where").textContent = `At p_A = ${point.p_a}, in ${normName(state.norm)}, dimension ` +
    `${point.dim.toLocaleString("en")}; rounded down.`;
  $("guarantee").textContent = point.guarantee;
  $("guarantee").dataset.is = point.guarantee;
  const abstains = point.guarantee === "abstain";
  $("theorem").textContent = abstains
    ? "With p_A at or below 1/2 a classifier must abstain."
    : `Proved by theorem ${point.theorem}${point.grade ? `, ${point.grade}` : ""}. Searched by ${point.engine}` +
      (point.direction ? `, worst direction: ${point.direction}.` : ".");
  $("noise-text").textContent = point.noise;
  $("command").textContent = point.command;
  $("file").hidden = !point.file;
  $("file-text").textContent = point.file ? point.file.text : "";
  draw();
}

function showError(message) {
  settled();
  point = null;
  shown.curve = null;
  $("error").textContent = message;
  $("error").hidden = false;
  for (const id of ["proved", "searched"]) $(id).textContent = "–";
  for (const id of ["where", "theorem", "guarantee", "noise-text", "command", "file-text"]) {
    $(id).textContent = "";
  }
  $("file").hidden = true;
  draw();
}

const normName = (norm) => (norm === "inf" ? "ℓ∞" : `ℓ${norm}`);

function nameOf(s) {
  const inner = s.family === "typed" ? s.expression
    : Object.entries(s.parameters).map(([k, v]) => `${GREEK[k] ?? k}=${v}`).join(", ");
  const size = `${GREEK[s.size] ?? s.size}=${s.value}`;
  return `${s.family}(${inner ? inner + ", " : ""}${size}) · ${normName(s.norm)} · d = ${s.dim}`;
}

function addPin(item) {
  const used = new Set(pins.map((p) => p.colour));
  for (let colour = 1; colour < COLOURS; colour += 1) {
    if (!used.has(colour)) {
      pins.push({ ...item, state: structuredClone(item.state), colour });
      return;
    }
  }
}

function removePin(pin) {
  pins = pins.filter((p) => p !== pin);
  showPins();
  writeFragment();
  draw();
}

function showPins() {
  $("pin").disabled = pins.length >= COLOURS - 1;
  $("pins").replaceChildren(...pins.map((pin) => {
    const row = document.createElement("li");
    const name = document.createElement("span");
    const use = document.createElement("button");
    const remove = document.createElement("button");
    row.className = `c${pin.colour}`;
    name.textContent = nameOf(pin.state);
    use.type = remove.type = "button";
    use.textContent = "Use";
    use.setAttribute("aria-label", `Use the settings of ${name.textContent}`);
    remove.textContent = "Remove";
    remove.setAttribute("aria-label", `Remove ${name.textContent}`);
    use.onclick = () => {
      state = { ...structuredClone(pin.state), pa: state.pa };
      showControls();
      changed();
    };
    remove.onclick = () => {
      removePin(pin);
      $("pin").focus();
    };
    row.append(name, use, remove);
    return row;
  }));
}

// ---------------------------------------------------------------- drawing

function put(parent, name, attributes, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  parent.append(element);
  return element;
}

function niceTicks(low, high, count) {
  const raw = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 2.5, 5, 10].find((m) => m * power >= raw * 0.999);
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high * (1 + 1e-9); i += 1) {
    ticks.push(neat(i * step, 6));
  }
  return ticks;
}

function frame(svg, xs, ys, xTicks, yTicks, xName, yName) {
  const width = svg.clientWidth || 600, height = svg.clientHeight || 300;
  const left = 70, right = 20, top = 8, bottom = 40;
  const x = (v) => left + (xs.of(v) * (width - left - right));
  const y = (v) => height - bottom - (ys.of(v) * (height - top - bottom));
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  for (const [value, label] of yTicks) {
    put(svg, "line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) });
    put(svg, "text", { x: left - 8, y: y(value) + 4, "text-anchor": "end" }, label);
  }
  for (const [value, label] of xTicks) {
    put(svg, "line", { class: "grid", x1: x(value), x2: x(value), y1: top, y2: height - bottom });
    put(svg, "text", { x: x(value), y: height - bottom + 17, "text-anchor": "middle" }, label);
  }
  put(svg, "text", { x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }, xName);
  const middle = (top + height - bottom) / 2;
  put(svg, "text", { class: "y-name", x: 14, y: middle, "text-anchor": "middle",
    transform: `rotate(-90 14 ${middle})` }, yName);
  return { x, y, top, bottom: height - bottom, left, right: width - right };
}

const path = (xs, ys, at) => xs.map((v, i) => (ys[i] === null ? "" :
  `${i && ys[i - 1] !== null ? "L" : "M"}${at.x(v).toFixed(2)} ${at.y(ys[i]).toFixed(2)}`)).join("");

function drawCurves() {
  const items = [...pins, shown].filter((i) => i.curve);
  const tops = items.map((i) => Math.max(...i.curve.searched));
  const most = 1.05 * Math.max(...tops, point?.searched ?? 0) || 1;
  const narrow = ($("curve").clientWidth || 600) < 480;
  const marks = narrow ? [0.5, 0.7, 0.9, 0.99, 0.999, 0.9999]
    : [0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9999];
  const ys = { of: (v) => v / most };
  const at = frame($("curve"), { of: probability.from }, ys, marks.map((p) => [p, String(p)]),
    (items.length || point ? niceTicks(0, most, 5) : []).map((v) => [v, String(v)]),
    "p_A (logit scale)", `${normName(state.norm)} radius`);
  for (const { curve, colour } of items) {
    const group = put($("curve"), "g", { class: `data c${colour}` });
    const lower = path([...curve.p_a].reverse(), [...curve.proved].reverse(), at).replace("M", "L");
    put(group, "path", { class: "area", d: `${path(curve.p_a, curve.searched, at)}${lower}Z` });
    put(group, "path", { class: "line", d: path(curve.p_a, curve.proved, at) });
    if (curve.proved.some((v, i) => v < 0.998 * curve.searched[i])) {
      put(group, "path", { class: "line thin", d: path(curve.p_a, curve.searched, at) });
    }
    if (curve.complete) continue;
    for (const one of curve.points) {
      put(group, "circle", { class: "dot", r: 3, cx: at.x(one.p_a), cy: at.y(one.proved) });
    }
  }
  if (point && point.p_a === state.pa && point.searched !== null && point.p_a <= P_LAST) {
    const cx = at.x(point.p_a);
    const group = put($("curve"), "g", { class: "c0" });
    put(group, "line", { class: "cursor", x1: cx, x2: cx, y1: at.top, y2: at.bottom });
    for (const r of new Set([point.proved, point.searched])) {
      put(group, "circle", { class: "dot", r: 4.5, cx, cy: at.y(r) });
    }
  } else {
    const cx = at.x(state.pa);
    put($("curve"), "line", { class: "cursor", x1: cx, x2: cx, y1: at.top, y2: at.bottom });
  }
  $("curve").onclick = (event) => {
    const box = $("curve").getBoundingClientRect();
    const t = (event.clientX - box.left - at.left) / (at.right - at.left);
    state.pa = probability.to(clamp(t, 0, 1));
    showControls();
    changed();
  };
  const curve = shown.curve;
  $("progress").hidden = curve ? curve.complete : !$("error").hidden;
  $("progress").textContent = curve ? `${curve.known} of ${curve.all} points` : "computing …";
  const noun = items.length === 1 ? "curve" : "curves";
  $("curve").setAttribute("aria-label", `Radius against p_A, ${items.length} ${noun}`);
}

function drawDensities() {
  const items = [...pins, shown].filter((i) => i.density);
  const svg = $("density");
  if (!items.length) {
    svg.replaceChildren();
    $("facts").textContent = "";
    return;
  }
  const main = shown.density ?? items[0].density;
  const alike = items.filter((i) => i.density.of === main.of);
  const low = Math.min(...alike.map((i) => i.density.x[0]));
  const high = Math.max(...alike.map((i) => i.density.x.at(-1)));
  const most = 1.05 * Math.max(...alike.flatMap((i) => i.density.y.filter((v) => v !== null)));
  const least = most * 1e-5;
  const log = $("log").checked;
  const ys = log ? { of: (v) => Math.log(Math.max(v, least) / least) / Math.log(most / least) }
    : { of: (v) => v / most };
  const powers = [];
  for (let k = Math.ceil(Math.log10(least)); 10 ** k <= most; k += 1) {
    powers.push([10 ** k, k < -3 || k > 3 ? `1e${k}` : String(neat(10 ** k))]);
  }
  const yTicks = log ? powers : niceTicks(0, most, 4).map((v) => [v, String(v)]);
  const count = svg.clientWidth < 480 ? 4 : 8;
  const at = frame(svg, { of: (v) => (v - low) / (high - low) }, ys,
    niceTicks(low, high, count).map((v) => [v, String(v)]), yTicks,
    main.of === "the length" ? "length of the noise vector" : "noise in one coordinate",
    log ? "density (log scale)" : "density");
  for (const { density, colour } of alike) {
    const group = put(svg, "g", { class: `data c${colour}` });
    const line = path(density.x, density.y, at);
    const ends = [at.x(density.x.at(-1)), at.x(density.x[0])];
    if (density === main) {
      put(group, "path", { class: "area",
        d: `${line}L${ends[0]} ${at.bottom}L${ends[1]} ${at.bottom}Z` });
    }
    put(group, "path", { class: "line", d: line });
  }
  const facts = Object.entries(main.facts).map(([k, v]) => (v ? k : `not ${k}`));
  const source = { analytic: "known by formula", table: "decided exactly from its table",
    checked: "checked numerically, not proved", declared: "declared" }[main.source];
  const sigma = main.sigma === null ? "" : ` σ = ${neat(main.sigma, 6)}.`;
  $("facts").textContent = `Density of ${main.of}. Facts (${source}): ${facts.join(", ")}.${sigma}`;
}

function draw() {
  drawCurves();
  drawDensities();
}

// ---------------------------------------------------------------- controls

function slider(name, scale, get, set) {
  const range = $(`${name}-slider`), exact = $(`${name}-exact`);
  range.oninput = () => {
    set(scale.to(range.value / 1000));
    exact.value = get();
    range.setAttribute("aria-valuetext", String(get()));
    changed();
  };
  exact.oninput = () => {
    if (exact.value === "" || !Number.isFinite(exact.valueAsNumber)) return;
    set(exact.valueAsNumber);
    range.value = 1000 * clamp(scale.from(get()), 0, 1);
    changed();
  };
  exact.value = get();
  range.value = 1000 * clamp(scale.from(get()), 0, 1);
  range.setAttribute("aria-valuetext", String(get()));
}

function showParameters(family) {
  $("parameters").replaceChildren(...(family ? family.parameters : []).map((p) => {
    const field = document.createElement("div");
    const label = document.createElement("label");
    const pair = document.createElement("div");
    const range = document.createElement("input");
    const exact = document.createElement("input");
    field.className = "field";
    pair.className = "pair";
    range.type = "range";
    range.min = 0;
    range.max = 1000;
    range.id = `${p.name}-slider`;
    range.setAttribute("aria-label", `${p.name}, slider`);
    exact.type = "number";
    exact.step = "any";
    exact.id = `${p.name}-exact`;
    label.htmlFor = exact.id;
    label.textContent = `${GREEK[p.name] ?? p.name}, shape`;
    pair.append(range, exact);
    field.append(label, pair);
    return field;
  }));
  for (const p of family ? family.parameters : []) {
    const wide = p.min > 0 && p.max / p.min > 8;
    slider(p.name, wide ? logarithmic(p.min, p.max) : linear(p.min, p.max),
      () => state.parameters[p.name], (v) => { state.parameters[p.name] = v; });
  }
}

function showControls() {
  const typed = state.family === "typed";
  const family = catalogue.families.find((f) => f.name === state.family);
  $("family").value = state.family;
  $("formula").textContent = family ? `∝ ${family.formula}` : "";
  $("typed").hidden = !typed;
  if ($("expression").value !== state.expression) $("expression").value = state.expression;
  $("kind").value = state.kind;
  showParameters(family);
  const sizes = family ? family.sizes : ["sigma", "scale"];
  if (!sizes.includes(state.size)) [state.size] = sizes;
  for (const option of $("size").options) option.disabled = !sizes.includes(option.value);
  $("size").value = state.size;
  slider("size", logarithmic(0.05, 5), () => state.value, (v) => { state.value = v; });
  slider("dim", logarithmic(1, 150528, Math.round), () => state.dim, (v) => { state.dim = v; });
  slider("pa", probability, () => state.pa, (v) => { state.pa = v; });
  const common = ["1", "2", "inf"].includes(state.norm);
  document.querySelector(`[name=norm][value="${common ? state.norm : "other"}"]`).checked = true;
  $("norm-exact").hidden = common;
  if (!common) $("norm-exact").value = state.norm;
}

function listen() {
  $("family").onchange = () => {
    const family = catalogue.families.find((f) => f.name === $("family").value);
    state.family = $("family").value;
    state.parameters = {};
    for (const p of family ? family.parameters : []) state.parameters[p.name] = p.start;
    if (family && family.sizes.includes("sigma")) state.size = "sigma";
    showControls();
    changed();
  };
  $("expression").oninput = () => { state.expression = $("expression").value; changed(); };
  $("kind").onchange = () => { state.kind = $("kind").value; changed(); };
  $("size").onchange = () => { state.size = $("size").value; changed(); };
  for (const radio of document.querySelectorAll("[name=norm]")) {
    radio.onchange = () => {
      const other = radio.value === "other";
      $("norm-exact").hidden = !other;
      state.norm = other ? $("norm-exact").value || "0.5" : radio.value;
      changed();
    };
  }
  $("norm-exact").oninput = () => {
    if ($("norm-exact").value === "") return;
    state.norm = $("norm-exact").value;
    changed();
  };
  $("controls").onsubmit = (event) => event.preventDefault();
  $("log").onchange = draw;
  $("pin").onclick = () => { addPin(shown); showPins(); writeFragment(); draw(); };
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.onclick = async () => {
      try {
        await navigator.clipboard.writeText($(button.dataset.copy).textContent);
        $("copied").textContent = `${button.textContent.replace("Copy", "Copied:")}.`;
      } catch {
        $("copied").textContent = "The browser does not allow copying: select the text instead.";
      }
    };
  }
  window.onhashchange = () => { openFragment(); showControls(); showPins(); changed(); };
  new ResizeObserver(draw).observe($("curve"));
}

async function start() {
  try {
    catalogue = await ask("families", {}, null);
  } catch (error) {
    showError(error.message);
    return;
  }
  const names = [...catalogue.families.map((f) => f.name), "typed"];
  $("family").replaceChildren(...names.map((name) => {
    const label = name === "typed" ? "typed density …" : name;
    return new Option(label, name);
  }));
  $("allowed").textContent = "Numbers, x, pi, e, + - * / **, comparisons such as (x > 0), and " +
    `${catalogue.functions.join(", ")}. The total mass need not be 1.`;
  const usual = catalogue.families.find((f) => f.name === catalogue.usual);
  state.family = usual.name;
  for (const p of usual.parameters) state.parameters[p.name] = p.start;
  openFragment();
  showControls();
  showPins();
  listen();
  changed();
}

start();
