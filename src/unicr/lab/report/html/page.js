"use strict";
(() => {
  const D = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const THEMES = {
    light: { ink: "#1d2329", soft: "#57616b", line: "#e1e5e9", card: "#ffffff", shade: "rgba(87,97,107,0.14)",
      runs: ["#0072b2", "#d55e00", "#009e73", "#a6488a", "#8a6d00", "#3a3f44", "#2f8fd0"] },
    dark: { ink: "#e4e7ea", soft: "#a3adb7", line: "#31373d", card: "#1c2024", shade: "rgba(163,173,183,0.17)",
      runs: ["#56b4e9", "#f0904a", "#3fc79d", "#e39cc6", "#e2c044", "#c8ced4", "#8fa8ff"] },
  };
  const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
  const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "x", "cross"];
  const BINS = 20;
  const state = {
    group: 0, norm: null,
    run: "0", label: "", status: "", correct: "", text: "",
    sort: "idx", down: false, page: 0, size: 25, open: new Set(), hidden: new Set(),
  };

  /* Small tools. Texts always become text nodes, never markup. */
  function el(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (key === "class") node.className = value;
      else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else node.setAttribute(key, value === true ? "" : value);
    }
    node.append(...children.filter((c) => c !== null && c !== undefined));
    return node;
  }
  const fill = (node, ...children) => node.replaceChildren(...children.filter((c) => c !== null));
  const normName = (p) => (p === "inf" ? "ℓ∞" : "ℓ" + p);
  const normNode = (p) => el("span", {}, "ℓ", el("sub", {}, p === "inf" ? "∞" : p));
  const pA = () => el("span", {}, "p", el("sub", {}, "A"));
  const normMarkup = (p) => `ℓ<sub>${p === "inf" ? "∞" : p}</sub>`;
  const number = (v) => (v === "inf" ? Infinity : v);
  const whole = (v) => v.toLocaleString("en");
  const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const short = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);
  const plural = (n, one, many) => `${whole(n)} ${n === 1 ? one : many || one + "s"}`;
  const group = () => D.groups[state.group];
  const groupScores = () => group().scores[state.norm];
  const isDark = () => {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  };
  const theme = () => THEMES[isDark() ? "dark" : "light"];
  const place = (run) => group().runs.indexOf(run);
  const colour = (run) => theme().runs[D.runs[run].colour];
  const dash = (run) => DASHES[place(run) % DASHES.length];

  function choice(node, options, chosen, choose) {
    const move = (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const at = options.findIndex((o) => o.value === chosen);
      choose(options[(at + step + options.length) % options.length].value);
      node.querySelector('[aria-checked="true"]').focus();
    };
    fill(node, ...options.map((o) => el("button", {
      type: "button", role: "radio", "aria-checked": String(o.value === chosen), "aria-label": o.label,
      tabindex: o.value === chosen ? "0" : "-1", onclick: () => choose(o.value), onkeydown: move,
    }, o.node)));
  }

  /* Plots. */
  function axis(title, more) {
    const t = theme();
    return { title: { text: title, standoff: 8 }, gridcolor: t.line, linecolor: t.line, zeroline: false,
      tickfont: { color: t.soft }, ...more };
  }
  function draw(id, traces, xaxis, yaxis, more) {
    const t = theme();
    const coarse = matchMedia("(pointer: coarse)").matches;
    const layout = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: "system-ui, sans-serif", size: 13, color: t.ink },
      margin: { l: 58, r: 14, t: 26, b: 50 }, hovermode: "closest", dragmode: coarse ? false : "zoom",
      hoverlabel: { bgcolor: t.card, bordercolor: t.line, font: { color: t.ink }, namelength: -1 },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: t.soft, activecolor: t.ink }, showlegend: false,
      xaxis, yaxis, ...more,
    };
    const config = { responsive: true, displaylogo: false, modeBarButtons: [["toImage", "resetScale2d"]],
      scrollZoom: false, showTips: false };
    return Plotly.react(id, traces, layout, config);
  }
  const visible = () => groupScores().runs.filter((i) => !state.hidden.has(i));
  function drawLegends() {
    for (const id of ["accuracy", "curves", "distribution"]) {
      const entries = groupScores().runs.map((i) => el("button", { type: "button", "aria-pressed": String(!state.hidden.has(i)), "data-run": i,
        onclick: () => { if (!state.hidden.delete(i)) state.hidden.add(i); drawPlots(); $(`${id}-legend`).querySelector(`[data-run="${i}"]`).focus(); } }, named(i, D.runs[i].label)));
      if (id === "accuracy") entries.push(el("span", {}, el("span", { class: "key area", "aria-hidden": "true" }), "best of the runs at each radius"));
      fill($(`${id}-legend`), ...entries);
    }
  }
  const share = { tickformat: ".0%", rangemode: "tozero", range: [0, 1.03] };

  const labelled = () => group().runs.every((i) => D.runs[i].labelled);
  const accuracyName = () => (labelled() ? "certified accuracy" : "share certified");

  function drawAccuracy() {
    const found = groupScores();
    const name = normName(state.norm);
    const traces = [];
    const shade = found.envelope;
    const close = (curve) => ({
      x: [...curve.r, curve.r[curve.r.length - 1]], y: [...curve.share, 0],
      customdata: [...curve.at.map((r, i) => [r, curve.text[i]]), [curve.at[curve.at.length - 1], "0.0 %"]],
    });
    traces.push({ ...close(shade), mode: "lines", line: { shape: "vh", width: 0 }, fill: "tozeroy",
      fillcolor: theme().shade, name: "envelope", hoverinfo: "skip" });
    for (const i of visible()) {
      const run = D.runs[i];
      traces.push({ ...close(run.scores[state.norm].curve), mode: "lines", name: plain(run.label),
        line: { shape: "vh", width: 2.2, color: colour(i), dash: dash(i) },
        hovertemplate: "radius %{customdata[0]}<br>%{customdata[1]} certified<extra>%{fullData.name}</extra>" });
    }
    const several = found.runs.length > 1;
    draw("accuracy-plot", traces, axis(`${normMarkup(state.norm)} radius`, { range: [0, 1.03 * (shade.r[shade.r.length - 1] || 1)] }),
      axis(accuracyName(), share));
    fill($("accuracy-text"), `Share of the inputs whose class is ${labelled() ? "right and " : ""}certified to stay the same under every change that is smaller than the radius in `, normNode(state.norm),
      `. The shaded area${several ? ", below the best run at each radius," : ""} is the robustness score, ${found.score}.`);
    $("accuracy-plot").setAttribute("aria-label", `Certified accuracy against the ${name} radius. ` + found.runs.map((i) => {
      const run = D.runs[i], one = run.scores[state.norm];
      return `${run.label}: ${one.curve.text[0]} at radius 0, largest radius ${one.largest}`;
    }).join("; ") + `. Robustness score ${found.score}.`);
    const head = el("tr", {}, el("th", { scope: "col" }, "Run"), ...found.radii.map((r) => el("th", { scope: "col", class: "num" }, `at ${r}`)));
    const best = found.radii.map((_, j) => Math.max(...found.table.map((row) => parseFloat(row[j]))));
    const body = found.runs.map((i, k) => el("tr", {}, el("th", { scope: "row", class: "long" }, named(i, D.runs[i].label)),
      ...found.table[k].map((v, j) => el("td", { class: several && best[j] > 0 && parseFloat(v) === best[j] ? "num best" : "num" }, v))));
    fillTable($("accuracy-table"), head, body);
  }
  function key(i) {
    const mark = el("span", { class: "key", "aria-hidden": "true" });
    mark.style.borderTopColor = colour(i);
    mark.style.borderTopStyle = { solid: "solid", dot: "dotted" }[dash(i)] || "dashed";
    return mark;
  }

  const named = (i, text) => el("span", { class: "named" }, key(i), el("span", {}, text));

  function drawCurves() {
    const stretched = $("stretch").checked;
    const at = (p) => (stretched ? -Math.log10(1 - p) : p);
    const traces = [], summary = [], notes = new Set();
    let shown = 1;
    for (const i of visible()) {
      const run = D.runs[i], curves = run.curves[state.norm];
      if (run.noises > 1 && !curves.length) notes.add(`${run.name} chose ${whole(run.noises)} noises, one for each input: its inputs are drawn without curves.`);
      if (run.both) notes.add(`${run.name} bounds p_B separately. Its inputs may lie above the curve, which assumes p_B = 1 − p_A.`);
      for (const curve of curves) {
        if (curve.error) { notes.add(`No curve for ${curve.noise}: ${curve.error}`); continue; }
        const x = curve.p.map(at);
        const line = { color: colour(i), width: 2.2, dash: dash(i) };
        traces.push({ mode: "lines", x, y: curve.searched, line: { ...line, width: 0.8, dash: "solid" }, hoverinfo: "skip" });
        traces.push({ mode: "lines", x, y: curve.proved, line, fill: "tonexty", fillcolor: colour(i) + "33",
          name: plain(run.noises > 1 ? curve.noise : run.label), customdata: curve.p.map((p, j) => [p, curve.bracket[j]]),
          hovertemplate: "p<sub>A</sub> = %{customdata[0]}<br>radius %{customdata[1]}<extra>%{fullData.name}</extra>" });
        summary.push(`${run.noises > 1 ? curve.noise : run.label}: radius ${curve.bracket[curve.bracket.length - 1]} at p_A = ${curve.p[curve.p.length - 1]}`);
      }
      const points = new Map();
      const rows = run.rows, radii = rows.radii[state.norm];
      rows.p_a.forEach((p, j) => {
        if (rows.status[j] !== "certified" || radii.value[j] === "inf") return;
        const k = `${p} ${radii.value[j]}`;
        if (!points.has(k)) points.set(k, { p, r: radii.value[j], text: radii.radius[j], count: 0 });
        points.get(k).count += 1;
      });
      const dots = [...points.values()];
      for (const d of dots) shown = Math.max(shown, at(d.p));
      traces.push({ x: dots.map((d) => at(d.p)), y: dots.map((d) => d.r), mode: "markers", cliponaxis: false,
        name: plain(run.label), customdata: dots.map((d) => [d.p, d.text, plural(d.count, "input")]),
        marker: { color: colour(i), symbol: SYMBOLS[place(i) % SYMBOLS.length], size: dots.map((d) => 6 + 2 * Math.log2(d.count)), opacity: 0.75, line: { color: theme().card, width: 1 } },
        hovertemplate: "%{customdata[2]}<br>p<sub>A</sub> ≥ %{customdata[0]}<br>radius %{customdata[1]}<extra>%{fullData.name}</extra>" });
    }
    const ticks = [0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999];
    const scale = stretched ? { tickvals: ticks.map(at), ticktext: ticks.map(String), range: [at(0.5), Math.max(shown, 3.1) + 0.1] } : { range: [0.5, 1] };
    draw("curves-plot", traces, axis("p<sub>A</sub>", scale), axis(`${normMarkup(state.norm)} radius`, { rangemode: "tozero" }));
    fill($("curves-text"), "The radius in ", normNode(state.norm), " that follows from each lower bound ", pA(), " of the top class's probability under noise. The line is the proved radius. "
      + "A band reaches up to the searched radius if the two differ. Each mark stands for one or more inputs.", ...[...notes].map((n) => " " + n));
    $("curves-plot").setAttribute("aria-label", `Radius in ${normName(state.norm)} against p_A. ${summary.join("; ")}.`);
  }

  function histogram(id, values, title, digits, label) {
    const all = values.flatMap((v) => v.numbers);
    const top = all.reduce((a, b) => Math.max(a, b), 1e-12), bottom = all.reduce((a, b) => Math.min(a, b), top);
    const start = id === "radius-plot" ? 0 : Math.min(bottom, 0.9), end = id === "radius-plot" ? top : 1, width = (end - start) / BINS || top / BINS;
    const cut = (v) => Math.floor(v * 10 ** digits) / 10 ** digits;
    const traces = values.map(({ run, numbers }) => {
      const counts = new Array(BINS).fill(0);
      for (const v of numbers) counts[Math.min(BINS - 1, Math.max(0, Math.floor((v - start) / width)))] += 1;
      return { type: "bar", x: counts.map((_, j) => start + (j + 0.5) * width), y: counts, name: plain(D.runs[run].label),
        marker: { color: colour(run), opacity: 0.88 },
        customdata: counts.map((n, j) => [`${cut(start + j * width)} to ${cut(start + (j + 1) * width)}`, plural(n, "input")]),
        hovertemplate: "%{customdata[0]}<br>%{customdata[1]}<extra>%{fullData.name}</extra>" };
    });
    draw(id, traces, axis(title, { range: [start, start + BINS * width] }), axis("inputs", { rangemode: "tozero" }), { barmode: "group", bargap: values.length > 1 ? 0.2 : 0.06 });
    $(id).setAttribute("aria-label", label + values.map(({ run, numbers }) => {
      const sorted = [...numbers].sort((a, b) => a - b);
      const middle = sorted.length ? cut(sorted[Math.floor((sorted.length - 1) / 2)]) : "none";
      return ` ${D.runs[run].label}: ${plural(sorted.length, "input")}, middle value ${middle}.`;
    }).join(""));
  }
  function drawDistribution() {
    const runs = visible();
    const probabilities = runs.map((run) => ({ run, numbers: D.runs[run].rows.p_a.filter((p) => p !== null) }));
    const radii = runs.map((run) => {
      const rows = D.runs[run].rows;
      return { run, numbers: rows.radii[state.norm].value.filter((v, j) => rows.status[j] === "certified" && v !== "inf") };
    });
    histogram("p-plot", probabilities, "p<sub>A</sub>", 4, "Histogram of the lower bounds of p_A.");
    histogram("radius-plot", radii, `${normMarkup(state.norm)} radius`, 5, `Histogram of the certified ${normName(state.norm)} radii.`);
    fill($("radius-title"), "Certified radius in ", normNode(state.norm));
    $("distribution-text").textContent = "Left: the lower bound of every input that was sampled. Right: the radius of every certified input, whether its class is right or wrong. Many inputs at the right end mean that the number of samples limits the radius, not the model.";
  }

  /* On a phone every cell stands under its heading, which the cell carries for that. */
  function fillTable(table, head, rows) {
    const heads = [...head.children].map((cell) => cell.textContent.replace(/[↑↓]/g, "").trim());
    for (const row of rows) if (row.children.length === heads.length) [...row.children].forEach((cell, i) => (cell.dataset.head = heads[i]));
    fill(table, el("thead", {}, head), el("tbody", {}, ...rows));
  }

  /* Attacks. */
  function drawAttacks() {
    const runs = groupScores().runs.filter((i) => D.runs[i].attacks.some((a) => a.norm === state.norm));
    $("attacks").hidden = !runs.length;
    $("attacks-link").hidden = !runs.length;
    const factors = [...new Set(runs.flatMap((i) => D.runs[i].attacks.filter((a) => a.norm === state.norm).map((a) => a.factor)))].sort((a, b) => a - b);
    const head = el("tr", {}, el("th", { scope: "col" }, "Run"), el("th", { scope: "col" }, "Attack"), el("th", { scope: "col", class: "num" }, "Inputs"),
      ...factors.map((f) => el("th", { scope: "col", class: "num" }, `${f} R`)));
    const body = runs.flatMap((i) => {
      const own = D.runs[i].attacks.filter((a) => a.norm === state.norm);
      return [...new Set(own.map((a) => a.attack))].map((name) => {
        const cells = factors.map((f) => own.find((a) => a.attack === name && a.factor === f));
        return el("tr", {}, el("th", { scope: "row", class: "long" }, named(i, D.runs[i].label)), el("td", {}, name),
          el("td", { class: "num" }, whole(Math.max(...cells.filter(Boolean).map((c) => c.inputs)))),
          ...cells.map((c) => el("td", { class: "num" }, c ? `${c.text}, ${c.changed}` : dashed())));
      });
    });
    fillTable($("attacks-table"), head, body);
  }

  /* Summary. */
  function drawSummary() {
    const g = group();
    const alphas = [...new Set(g.runs.map((i) => D.runs[i].alpha))];
    const proved = g.runs.every((i) => D.runs[i].proved);
    const kept = g.runs.some((i) => D.runs[i].kept) ? " and connects two points of the grid named below" : "";
    $("promise").textContent = `A certificate says that no change of the input that is smaller than its radius${kept} changes the class of the smoothed classifier. A certificate is wrong with probability at most ${alphas.join(" or ")}, if its noise samples were unlucky. `
      + (proved ? "Every radius here is proved. " : "A radius marked exact is proved up to 0.2 %. A radius marked approximate was found by a search; the proved radius is beside it. ")
      + (labelled() ? "“Holds at 99.9 %” is the certified accuracy after allowing for certificates that are wrong by chance. " : "The inputs have no labels, so there is no accuracy. An input counts as certified whatever its class is. ")
      + "p_A is the lower bound of the top class's probability; the table shows its percentiles over the certified inputs. The average radius can mislead: a few inputs with large radii raise it, even if most radii are small. "
      + `${labelled() ? "Wrong and abstained" : "Abstained"} inputs count as radius 0. Radii are in the units of the inputs.`;
    choice($("groups"), D.groups.length > 1 ? D.groups.map((one, i) => ({ value: i, node: short(`${one.data}, ${plural(one.total, "input")}`, 60) })) : [], state.group, setGroup);
    const found = groupScores(), several = g.runs.length > 1;
    const tile = (value, ...words) => el("div", { class: "tile" }, el("b", {}, value), el("span", {}, ...words));
    const best = found.radii.map((_, j) => found.table.map((row) => row[j]).reduce((a, b) => (parseFloat(b) > parseFloat(a) ? b : a)));
    const only = D.runs[g.runs[0]];
    fill($("tiles"), ...found.radii.map((r, j) => tile(best[j], `${accuracyName()} at ${r} in `, normNode(state.norm), several ? ", best run" : "")),
      ...(several ? [tile(found.score, "robustness score in ", normNode(state.norm))] : [
        only.p_a.length ? tile(only.p_a[1], "median of ", pA(), `; 10 %: ${only.p_a[0]}, 90 %: ${only.p_a[2]}`) : null,
        tile(only.scores[state.norm].average, "average radius in ", normNode(state.norm))]),
      tile(whole(g.total), several ? `inputs in ${g.runs.length} runs` : "inputs"));
    const heads = ["Run", "Noise", "Model", labelled() ? "Certified accuracy" : "Accuracy", "Holds at 99.9\u00a0%", "Certified", "Abstained", "Failed"];
    const head = el("tr", {}, ...heads.map((h, i) => el("th", { scope: "col", class: i > 2 ? "num" : "" }, h)),
      el("th", { scope: "col", class: "num" }, pA(), " 10, 50, 90\u00a0%"),
      ...g.norms.map((p) => el("th", { scope: "col", class: "num" }, "Average radius ", normNode(p))));
    const body = g.runs.map((i) => {
      const run = D.runs[i];
      return el("tr", {}, el("th", { scope: "row", class: "long" }, named(i, run.name)), el("td", { class: "long mono" }, run.noise),
        el("td", { class: "long model" }, run.model), el("td", { class: "num" }, run.accuracy), el("td", { class: "num" }, run.holds),
        ...["certified", "abstained", "failed"].map((s) => el("td", { class: "num" }, whole(run.status[s]))),
        el("td", { class: "num wrap" }, run.p_a.join(" ") || "–"),
        ...g.norms.map((p) => el("td", { class: "num" }, run.scores[p] ? run.scores[p].average : "–")));
    });
    fillTable($("runs"), head, body);
    const notes = [...D.notes];
    if (D.groups.length > 1) notes.unshift("These runs are not all on the same inputs. Only runs on the same inputs are compared and scored together. Choose the inputs above.");
    for (const i of g.runs) {
      notes.push(...D.runs[i].said.map((one) => `${D.runs[i].name}: ${one}.`));
      if (D.runs[i].own) notes.push(`${D.runs[i].name} chose a noise for each input. Each of its certificates is about the classifier smoothed with that noise (scope: this input's noise).`);
    }
    $("notes").hidden = !notes.length;
    fill($("notes"), ...notes.map((n) => el("li", {}, n)));
  }

  /* The table of inputs. */
  const dashed = () => el("span", { class: "faint" }, "–");
  const rowsOf = (e) => D.runs[e.run].rows;
  const radiiOf = (e) => rowsOf(e).radii[state.norm];
  const at = (name) => (e) => rowsOf(e)[name][e.row];
  const inRadii = (name) => (e) => (radiiOf(e) ? radiiOf(e)[name][e.row] : null);
  const image = (source, size, words) => (source ? el("img", { src: source, width: size, height: size, alt: words, decoding: "async" }) : dashed());
  const clean = (e) => D.pictures[at("hash")(e)];
  const className = (run, c) => D.runs[run].classes[c] ?? String(c);
  const isWrong = (e) => at("status")(e) === "certified" && !at("correct")(e) && at("label")(e) >= 0;
  const correctness = (e) => (at("correct")(e) ? "correct" : isWrong(e) ? "wrong" : "");
  const pictured = () => entries().some((e) => clean(e));
  const ownNoise = () => entries().some((e) => at("noise")(e));
  function votes(e, most) {
    const found = at("votes")(e);
    if (!found) return dashed();
    const total = found.reduce((sum, [, n]) => sum + n, 0);
    const text = found.slice(0, most).map(([c, n]) => `${c < 0 ? "others" : className(e.run, c)}: ${whole(n)}`).join(" · ");
    const bar = el("span");
    bar.style.width = `${(100 * found[0][1]) / total}%`;
    return el("span", {}, text + (found.length > most ? " …" : ""), el("span", { class: "votes", "aria-hidden": "true" }, bar));
  }
  const COLUMNS = [
    { key: "idx", title: () => ["#"], value: at("idx"), node: opener },
    { key: "run", title: () => ["Run"], value: (e) => D.runs[e.run].label, show: () => state.run === "", node: (e) => named(e.run, D.runs[e.run].label) },
    { key: "input", title: () => ["Input"], show: pictured, node: (e) => image(clean(e), 48, `input ${at("idx")(e)}`) },
    { key: "noisy", title: () => ["Noisy"], show: pictured, node: (e) => image(at("noisy")(e), 48, `input ${at("idx")(e)} with noise`) },
    { key: "label", title: () => ["Label"], num: true, value: (e) => (at("label")(e) < 0 ? null : at("label")(e)), node: (e) => className(e.run, at("label")(e)) },
    { key: "predict", title: () => ["Prediction"], num: true, value: (e) => (at("predict")(e) < 0 ? null : at("predict")(e)), node: (e) => className(e.run, at("predict")(e)) },
    { key: "status", title: () => ["Status"], value: at("status"), node: (e) => el("span", { class: "badge " + at("status")(e), title: at("reason")(e) }, at("status")(e)) },
    { key: "correct", title: () => ["Correct"], value: correctness, node: (e) => {
      const word = correctness(e);
      return word ? el("span", { class: word === "correct" ? "yes" : "no" }, word === "correct" ? "✓ yes" : "✗ no") : dashed();
    } },
    { key: "p_a", title: () => ["p", el("sub", {}, "A")], num: true, value: at("p_a"), node: (e) => at("p_a")(e).toFixed(6) },
    { key: "radius", title: () => ["Radius ", normNode(state.norm)], num: true, value: (e) => { const v = inRadii("value")(e); return v === null ? null : number(v); }, node: (e) => inRadii("radius")(e) },
    { key: "proved", title: () => ["Proved"], show: () => !group().runs.every((i) => D.runs[i].proved), num: true, value: (e) => { const v = inRadii("proved")(e); return v === null ? null : Number(v === "inf" ? Infinity : v); }, node: (e) => inRadii("proved")(e) },
    { key: "proof", title: () => ["Proof"], value: inRadii("by"), node: (e) => el("span", { class: "badge" }, inRadii("by")(e)) },
    { key: "votes", title: () => ["Votes"], value: (e) => { const v = at("votes")(e); return v && v.length ? v[0][1] / v.reduce((s, [, n]) => s + n, 0) : null; }, node: (e) => votes(e, 2) },
    { key: "noise", title: () => ["Noise"], value: at("noise"), show: ownNoise, node: (e) => (at("noise")(e) ? el("span", { class: "mono", title: "scope: this input's noise" }, at("noise")(e)) : el("span", { class: "faint" }, "the run's")) },
  ];
  function opener(e) {
    const id = `more-${e.run}-${e.row}`, open = state.open.has(id);
    return el("button", { type: "button", class: "open", "aria-expanded": String(open), "aria-controls": open ? id : null,
      "aria-label": `Details of input ${at("idx")(e)}`, "data-row": id,
      onclick: () => { if (open) state.open.delete(id); else state.open.add(id); drawTable(); document.querySelector(`[data-row="${id}"]`).focus(); } },
    el("i", { "aria-hidden": "true" }, "▸"), String(at("idx")(e)));
  }
  function detail(e, columns) {
    const r = D.runs[e.run], pairs = [];
    const add = (name, value) => { if (value !== null && value !== undefined && value !== "") pairs.push(el("dt", {}, name), el("dd", {}, value)); };
    add("Run", r.label);
    add("Why it failed", at("reason")(e));
    add("Votes", at("votes")(e) ? votes(e, 6) : null);
    if (at("p_a")(e) !== null) add("Bounds", `p_A ≥ ${at("p_a")(e)}, p_B ≤ ${at("p_b")(e)}, from ${whole(at("n")(e))} samples`);
    if (at("status")(e) === "certified") {
      for (const p of r.norms) {
        const one = r.rows.radii[p];
        add(normNode(p), `radius ${one.radius[e.row]}, proved ${one.proved[e.row]}, searched ${one.searched[e.row]}: ${one.by[e.row]}${one.grade[e.row] ? `, ${one.grade[e.row]}` : ""}`);
      }
    }
    add("Noise", at("noise")(e) ? `${at("noise")(e)} (scope: this input's noise)` : r.noise);
    for (const [title, texts] of r.rows.more) add(title, el("span", { class: /^[0-9a-f]{64}$/.test(texts[e.row]) ? "mono" : "" }, texts[e.row]));
    const pictures = [[clean(e), "input"], [at("noisy")(e), "with noise, clipped"]].filter(([s]) => s)
      .map(([source, words]) => el("figure", {}, image(source, 140, words), el("figcaption", {}, words)));
    return el("tr", { class: "more", id: `more-${e.run}-${e.row}` }, el("td", { colspan: columns }, el("div", { class: "detail" }, ...pictures, el("dl", {}, ...pairs))));
  }
  function entries() {
    const chosen = state.run === "" ? group().runs : [group().runs[Number(state.run)]];
    return chosen.flatMap((run) => D.runs[run].rows.idx.map((_, row) => ({ run, row })));
  }
  function matches(e) {
    if (state.label !== "" && String(at("label")(e)) !== state.label) return false;
    if (state.status && at("status")(e) !== state.status) return false;
    if (state.correct && correctness(e) !== state.correct) return false;
    if (!state.text) return true;
    const words = [at("idx")(e), ...[at("label")(e), at("predict")(e)].map((c) => className(e.run, c)), at("status")(e), correctness(e), at("reason")(e), at("noise")(e), at("hash")(e), inRadii("by")(e)];
    return words.some((w) => w !== null && w !== undefined && String(w).toLowerCase().includes(state.text.toLowerCase()));
  }
  function order(list) {
    const value = COLUMNS.find((c) => c.key === state.sort).value, sign = state.down ? -1 : 1;
    const keyed = list.map((e) => [value(e), e]);
    const empty = (v) => v === null || v === undefined || v === "";
    keyed.sort(([a, x], [b, y]) => {
      if (empty(a) || empty(b)) return empty(a) - empty(b) || rowsOf(x).idx[x.row] - rowsOf(y).idx[y.row];
      return (a < b ? -sign : a > b ? sign : 0) || rowsOf(x).idx[x.row] - rowsOf(y).idx[y.row];
    });
    return keyed.map(([, e]) => e);
  }
  function drawTable() {
    const all = entries(), list = order(all.filter(matches));
    const pages = Math.max(1, Math.ceil(list.length / state.size));
    state.page = Math.min(state.page, pages - 1);
    const columns = COLUMNS.filter((c) => !c.show || c.show());
    const head = el("tr", {}, ...columns.map((c) => {
      const sorted = c.value && state.sort === c.key;
      if (!c.value) return el("th", { scope: "col", class: "fixed" }, ...c.title());
      return el("th", { scope: "col", class: c.num ? "num" : "", "aria-sort": sorted ? (state.down ? "descending" : "ascending") : null },
        el("button", { type: "button", "data-sort": c.key, onclick: () => sortBy(c.key) }, el("span", {}, ...c.title()), el("i", { "aria-hidden": "true" }, sorted ? (state.down ? "↓" : "↑") : "")));
    }));
    const body = [];
    for (const e of list.slice(state.page * state.size, (state.page + 1) * state.size)) {
      body.push(el("tr", { "data-idx": at("idx")(e) }, ...columns.map((c) => {
        const value = c.node ? (c.value && c.value(e) === null ? null : c.node(e)) : c.value(e);
        return el("td", { class: c.num ? "num" : "", "data-column": c.key }, value === null || value === undefined ? dashed() : value instanceof Node ? value : String(value));
      })));
      if (state.open.has(`more-${e.run}-${e.row}`)) body.push(detail(e, columns.length));
    }
    if (!body.length) body.push(el("tr", {}, el("td", { colspan: columns.length, class: "faint" }, "No input matches these filters.")));
    fillTable($("table"), head, body);
    $("found").textContent = list.length === all.length ? `${plural(all.length, "input")}.` : `${whole(list.length)} of ${plural(all.length, "input")}.`;
    const go = (page) => { state.page = page; drawTable(); };
    const size = el("select", { onchange: (event) => { state.size = Number(event.target.value); state.page = 0; drawTable(); } },
      ...[25, 50, 100, 250].map((n) => el("option", { value: n, selected: n === state.size }, String(n))));
    fill($("pager"), el("button", { type: "button", id: "before", disabled: state.page === 0, onclick: () => { go(state.page - 1); keep("before", "after"); } }, "Previous"),
      el("span", {}, `Page ${state.page + 1} of ${whole(pages)}`),
      el("button", { type: "button", id: "after", disabled: state.page >= pages - 1, onclick: () => { go(state.page + 1); keep("after", "before"); } }, "Next"),
      el("label", {}, "Rows ", size));
  }
  function keep(first, second) {
    ($(first).disabled ? $(second) : $(first)).focus();
  }
  function sortBy(column) {
    state.down = state.sort === column ? !state.down : false;
    state.sort = column;
    state.page = 0;
    drawTable();
    document.querySelector(`[data-sort="${column}"]`).focus();
  }
  function drawFilters() {
    const g = group();
    const labels = [...new Set(g.runs.flatMap((i) => D.runs[i].rows.label))].sort((a, b) => a - b);
    const select = (name, words, options) => el("label", {}, words, el("select", { id: `filter-${name}`, onchange: (event) => refilter(name, event.target.value) },
      ...options.map(([value, text]) => el("option", { value, selected: state[name] === value }, text))));
    const runs = g.runs.map((i, k) => [String(k), short(D.runs[i].label, 60)]);
    const search = el("input", { type: "search", id: "filter-text", value: state.text, autocomplete: "off", oninput: (event) => refilter("text", event.target.value) });
    fill($("filters"),
      g.runs.length > 1 ? select("run", "Run", [...runs, ["", "All runs"]]) : null,
      select("label", "Label", [["", "All"], ...labels.map((l) => [String(l), l < 0 ? "none" : className(g.runs[0], l)])]),
      select("status", "Status", [["", "All"], ["certified", "Certified"], ["abstained", "Abstained"], ["failed", "Failed"]]),
      select("correct", "Correct", [["", "All"], ["correct", "Correct"], ["wrong", "Wrong"]]),
      el("label", {}, "Search", search),
      el("button", { type: "button", id: "reset", onclick: () => { Object.assign(state, { label: "", status: "", correct: "", text: "", page: 0 }); drawFilters(); drawTable(); $("reset").focus(); } }, "Reset"));
  }
  function refilter(name, value) {
    state[name] = value;
    state.page = 0;
    drawTable();
  }

  /* Manifest. */
  function drawManifests() {
    fill($("manifests"), ...D.runs.map((run, i) => el("details", { open: i === 0 }, el("summary", {}, `${run.name}: ${run.noise}`),
      el("div", {}, ...run.verify.flatMap(([words, command]) => [el("p", { class: "faint" }, words), commandLine(command)]),
        el("dl", {}, ...run.spec.flatMap(([name, value]) => [el("dt", {}, name), el("dd", { class: "mono" }, value)]),
          el("dt", {}, "inputs (SHA-256)"), el("dd", { class: "mono" }, D.groups.find((g) => g.runs.includes(i)).fingerprint))))));
    $("made").textContent = `Made by unicr ${D.version} with plotly ${D.plotly}. Radii, bounds and accuracies are rounded down. This page loads nothing from the network.`;
  }
  function commandLine(command) {
    const code = el("code", {}, command);
    const copy = el("button", { type: "button", onclick: () => {
      navigator.clipboard.writeText(command).then(() => { copy.textContent = "Copied"; }, () => getSelection().selectAllChildren(code));
    } }, "Copy");
    return el("div", { class: "command" }, code, navigator.clipboard ? copy : null);
  }

  /* State. */
  function drawNorms() {
    choice($("norms"), group().norms.map((p) => ({ value: p, node: normNode(p), label: `norm ${p === "inf" ? "infinity" : p}` })), state.norm, setNorm);
  }
  function drawPlots() {
    drawLegends();
    drawAccuracy();
    drawCurves();
    drawDistribution();
    drawAttacks();
  }
  function setNorm(norm) {
    state.norm = norm;
    drawSummary();
    drawNorms();
    drawPlots();
    drawTable();
  }
  function setGroup(index) {
    const norms = D.groups[index].norms;
    const norm = norms.includes(state.norm) ? state.norm : norms.includes("2") ? "2" : norms[0];
    Object.assign(state, { group: index, norm, run: "0", label: "", status: "", correct: "", text: "", page: 0 });
    state.open.clear();
    state.hidden.clear();
    drawAll();
  }
  function drawAll() {
    drawSummary();
    drawNorms();
    drawPlots();
    drawFilters();
    drawTable();
    $("theme").textContent = isDark() ? "Light" : "Dark";
  }
  function setTheme(name) {
    document.documentElement.dataset.theme = name;
    drawAll();
  }
  $("theme").addEventListener("click", () => setTheme(isDark() ? "light" : "dark"));
  $("stretch").addEventListener("change", drawCurves);
  $("filters").addEventListener("submit", (event) => event.preventDefault());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  let before;
  addEventListener("beforeprint", () => { before = isDark() ? "dark" : "light"; setTheme("light"); });
  addEventListener("afterprint", () => setTheme(before));
  drawManifests();
  setGroup(0);
  document.documentElement.dataset.ready = "yes";
})();
