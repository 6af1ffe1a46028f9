"use strict";
(() => {
  let data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const drawn = new Set(); // figures that have been on screen; the others wait
  const CONFIG = { displayModeBar: false, responsive: true, scrollZoom: false, doubleClick: "reset" };
  const GROUPS = ["#12908e", "#d9642c", "#3f7fc4", "#c94f7c", "#a98307", "#8a63b8", "#4f9d5d", "#7c8894", "#9b7653", "#5d8a9b"];
  const PLACES = [[0, "#12908e"], [0.25, "#3f7fc4"], [0.5, "#8a63b8"], [0.75, "#c94f7c"], [1, "#d9642c"]]; // as the ramp over σ
  const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "pentagon", "hexagon", "star", "triangle-down"];

  // plotly reads a little markup in text: what comes from data is shown as it is
  const text = (value) => String(value).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colour = (name) => (name === "ink" ? css("--ink") : name);
  const unique = (list) => [...new Set(list)];
  const show = (v, digits = 3) => (v === null || v === undefined ? "–" : Number(v).toFixed(digits).replace(/^-(?=0*\.?0*$)/, "").replace("-", "−"));

  function unpack(base64, most = 1) {
    const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
    return Float64Array.from(new Int16Array(bytes.buffer), (v) => (v * most) / 32767);
  }

  function layout(extra = {}) {
    const axis = { gridcolor: css("--grid"), linecolor: css("--line"), zeroline: false, automargin: true, ticks: "outside", tickcolor: css("--line") };
    const base = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: css("--ink"), family: "system-ui, sans-serif", size: 13 },
      margin: { l: 55, r: 15, t: 15, b: 45 }, hovermode: "closest", dragmode: false, showlegend: false,
      hoverlabel: { bgcolor: css("--card"), bordercolor: css("--line"), font: { color: css("--ink") } },
    };
    return { ...base, ...extra, xaxis: { ...axis, ...extra.xaxis }, yaxis: { ...axis, ...extra.yaxis } };
  }

  // a long title on a narrow screen takes two lines
  function title(id, words) {
    const most = Math.max(18, Math.floor(($(id).clientWidth - 80) / 7.5)), rows = [""];
    for (const word of words.split(" ")) {
      if (rows[rows.length - 1] && rows[rows.length - 1].length + word.length > most) rows.push("");
      rows[rows.length - 1] += (rows[rows.length - 1] ? " " : "") + word;
    }
    return { text: rows.map(text).join("<br>"), standoff: 10 };
  }

  // the dashes of a line as plotly draws them, so that the legend tells lines apart
  const STROKES = { dash: "6 4", dot: "2 2", dashdot: "6 3 2 3", longdash: "10 4", longdashdot: "10 3 2 3", "5px 2px": "5 2" };
  function stroke(dashes) {
    const make = (name, attributes) => {
      const element = document.createElementNS("http://www.w3.org/2000/svg", name);
      Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, value));
      return element;
    };
    const picture = make("svg", { width: 30, height: 4, "aria-hidden": "true" });
    picture.append(make("line", { x1: 0, x2: 30, y1: 2, y2: 2, stroke: "currentColor", "stroke-width": 2, "stroke-dasharray": dashes }));
    return picture;
  }

  // the legend is made of buttons: it wraps on a phone, and a keyboard hides and shows with it
  const hidden = new Set();
  function legend(id, names) {
    const list = $(`${id}-legend`);
    if (!list || list.dataset.made === JSON.stringify(names)) return;
    list.dataset.made = JSON.stringify(names);
    list.replaceChildren(...names.map(([name, shade, how]) => {
      const item = document.createElement("li"), button = document.createElement("button"), mark = document.createElement("span");
      mark.className = how in STROKES ? "stroke" : how || "solid";
      if (how in STROKES) mark.append(stroke(STROKES[how]));
      mark.style.color = shade;
      Object.assign(button, { type: "button", className: "key" });
      button.dataset.hide = `${id}\n${name}`;
      button.setAttribute("aria-pressed", String(!hidden.has(button.dataset.hide)));
      button.append(mark, name);
      item.append(button);
      return item;
    }));
  }
  const visible = (id, t) => !hidden.has(`${id}\n${t.name}`);

  // ---- figures made of columns and traces

  function trace(panel, t, over = {}) {
    const rows = t.rows || (t.span ? Array.from({ length: t.span[1] - t.span[0] }, (_, i) => i + t.span[0]) : []);
    const take = (of) => (Array.isArray(of) ? of.slice() : rows.map((row) => panel.columns[of][row]));
    let x = take(over.x || t.x), y = t.y ? take(t.y) : [];
    const shade = colour(t.color), name = text(t.name), common = { type: "scatter", name, hoverinfo: "text" };
    const about = (row) => Object.entries(panel.columns).filter(([, c]) => c[row] !== null && c[row] !== undefined)
      .map(([k, c]) => `${text(k)}: ${text(typeof c[row] === "number" ? Number(c[row].toPrecision(4)) : c[row])}`).join("<br>");
    if (t.kind === "band") {
      const low = take("low"), high = take("high"), known = x.map((_, i) => i).filter((i) => low[i] !== null && high[i] !== null);
      const there = known.map((i) => x[i]);
      return { ...common, x: [...there, ...there.slice().reverse()], y: [...known.map((i) => high[i]), ...known.map((i) => low[i]).reverse()],
        fill: "toself", mode: "lines", line: { width: 0, color: shade }, fillcolor: shade + "26", hoverinfo: "skip" };
    }
    if (t.kind === "line") {
      return { ...common, x, y, mode: "lines", line: { color: shade, ...t.line }, hovertext: y.map((v) => `${name}: ${show(v)}`) };
    }
    if (t.kind === "curve") {
      const hover = [], xs = [], ys = [];
      x.forEach((v, i) => {
        if (i && v <= x[i - 1]) { xs.push(null); ys.push(null); hover.push(""); } // the next seed
        xs.push(v); ys.push(y[i]); hover.push(about(rows[i]));
      });
      return { ...common, x: xs, y: ys, mode: "lines", hovertext: hover, line: { color: shade, width: 1.5, dash: t.split === "train" ? "dot" : "solid" },
        opacity: t.split === "train" ? 0.7 : 1 };
    }
    const big = t.kind === "means", line = big && rows.length > 1;
    const out = { ...common, x, y, mode: line ? "lines+markers" : "markers", hovertext: rows.map(about), line: { color: shade, width: 2 },
      marker: { color: shade, size: big ? 9 : 6, opacity: big ? 1 : 0.45 } };
    if (t.interval) {
      const high = take("high"), low = take("low"), gap = (a, b) => (a === null || b === null ? 0 : a - b);
      out.error_x = { type: "data", symmetric: false, color: shade, array: x.map((v, i) => gap(high[i], v)), arrayminus: x.map((v, i) => gap(v, low[i])) };
    }
    return out;
  }

  const FIGURES = {
    simple(id) {
      const panel = data.panels[id], along = $(`${id}-along`) ? $(`${id}-along`).value : "", a = { ...panel.axes, ...(panel.axes.along || {})[along] };
      const xaxis = { title: title(`${id}-plot`, a.x) }, yaxis = { title: a.y ? title(`${id}-plot`, a.y) : { text: "" } };
      if (a.log) Object.assign(xaxis, { type: "log", tickvals: a.ticks, ticktext: a.ticks.map((t) => String(Number(t.toPrecision(3)))) });
      if (!a.names) legend(id, panel.traces.map((t) => [t.name, colour(t.color), { line: (t.line || {}).dash, points: "point", band: "band" }[t.kind]]));
      const across = (t) => (along ? { x: Array.isArray(t.x) ? a.ends : along } : {}); // other encodings are lines from end to end
      const traces = panel.traces.filter((t) => visible(id, t)).map((t) => trace(panel, t, across(t)));
      if (a.names) { // every configuration is a place on the axis
        Object.assign(yaxis, { type: "category", autorange: "reversed" });
        traces.forEach((t) => { t.y = t.y.map(text); });
      }
      Plotly.react($(`${id}-plot`), traces, layout({ xaxis, yaxis }), CONFIG);
    },
    training() {
      const panel = data.panels.training, metric = $("training-metric").value, label = $("training-label").value;
      const lines = $("training-lines").value; // a mean with its band, or every seed
      const chosen = panel.traces.filter((t) => t.metric === metric && t.of === lines && (!label || t.name === label));
      legend("training", unique(chosen.map((t) => t.name)).map((name) => [name, colour(chosen.find((t) => t.name === name).color)]));
      const traces = chosen.filter((t) => visible("training", t)).map((t) => trace(panel, t));
      const yaxis = { title: title("training-plot", panel.choices.metrics[metric]), type: $("training-log").checked ? "log" : "linear" };
      says("training", panel.choices.sentences[metric]);
      Plotly.react($("training-plot"), traces, layout({ xaxis: { title: title("training-plot", panel.axes.x) }, yaxis }), CONFIG);
    },
    agreement() {
      const panel = data.panels.agreement, measure = $("agreement-measure").value;
      legend("agreement", panel.traces.filter((t) => t.kind === "means").map((t) => [t.name, colour(t.color)]));
      const traces = panel.traces.filter((t) => visible("agreement", t)).map((t) => trace(panel, t, { x: measure }));
      says("agreement", panel.choices.sentences[measure]);
      const xaxis = { title: title("agreement-plot", panel.choices.measures[measure]) }, yaxis = { title: title("agreement-plot", panel.axes.y) };
      Plotly.react($("agreement-plot"), traces, layout({ xaxis, yaxis }), CONFIG);
    },
    tables() { drawTables(); },
    attention() { drawAttention(); },
  };

  function says(id, sentence) {
    $(`${id}-says`).textContent = sentence;
    $(`${id}-plot`).setAttribute("aria-label", `${data.panels[id].title}. ${sentence}`);
  }

  // ---- the learned table

  const allSteps = () => unique(data.tables.runs.flatMap((r) => r.steps)).sort((a, b) => a - b);
  const stepShown = () => ($("tables-step") ? allSteps()[Number($("tables-step").value)] : Infinity);
  const runOf = (list, prefix, label) => list.find((r) => r.label === label && String(r.seed) === $(`${prefix}-seed`).value);

  const runOn = (side) => runOf(data.tables.runs, `tables-${side}`, $(`tables-${side}`).value);

  // points (n 3) and similarities (n n) of a packed table at one of its steps
  function opened(packed, at) {
    const t = data.tables, n = t.n, pairs = (n * (n - 1)) / 2;
    packed.open = packed.open || { points: unpack(packed.points, t.spread), similarity: unpack(packed.similarity) };
    const points = [], alike = Array.from({ length: n }, () => new Array(n).fill(null));
    for (let i = 0; i < n; i++) points.push(Array.from(packed.open.points.subarray((at * n + i) * 3, (at * n + i) * 3 + 3)));
    for (let i = 0, k = at * pairs; i < n; i++) for (let j = i + 1; j < n; j++, k++) alike[i][j] = alike[j][i] = packed.open.similarity[k];
    return { points, alike };
  }

  function tableAt(side) {
    const run = runOn(side);
    let at = 0;
    run.steps.forEach((step, i) => { if (step <= stepShown()) at = i; });
    return { run, at, step: run.steps[at], ...opened(run, at) };
  }

  function drawTables() {
    const t = data.tables, view = $("tables-view").value, cloud = view === "points" || view === "space";
    $("tables-turn-label").hidden = view !== "space";
    $("tables-colour-label").hidden = !cloud;
    $("tables-scale").hidden = cloud;
    $("tables-reading").textContent = t.views[view];
    const full = Math.max(runOn("a").full, runOn("b").full); // one scale for both, the ideal and all steps
    $("tables-low").textContent = (-full).toFixed(2).replace("-", "−");
    $("tables-high").textContent = `+${full.toFixed(2)}`;
    document.querySelector("#tables-scale .ramp").style.background = `linear-gradient(to right, ${diverging().map(([, c]) => c).join(", ")})`;
    const drawOne = (id, { points, alike }, packed) => {
      if (cloud) cloudOf(id, points, packed, view === "space");
      else if (view === "tiles") tiles(id, alike, full);
      else heat(id, alike, t.order, full, t.borders, (i, j) => `${t.names[i]}, ${t.names[j]}: ${show(alike[i][j])}`);
    };
    for (const side of ["a", "b"]) {
      const { run, at, step, ...table } = tableAt(side);
      drawOne(`tables-${side}-plot`, table, run);
      const says = `step ${step}: correlation with ${t.reference} ${show(run.relation[at], 2)}` +
        (cloud ? `; ${show(100 * run.explained[at], 0)} % of the variance in the plane` : "") + `; entries of size ${show(run.size[at], 3)}.`;
      $(`tables-${side}-says`).textContent = says;
      $(`tables-${side}-name`).textContent = `${run.label}, seed ${run.seed}`;
      $(`tables-${side}-plot`).setAttribute("aria-label", `The table of ${run.label}, seed ${run.seed}, ${says}`);
    }
    if (t.ideal) drawOne("tables-ideal-plot", opened(t.ideal, 0), t.ideal);
    if ($("tables-step")) $("tables-step-value").textContent = String(stepShown());
  }

  // for every place of the grid a small map of the grid, in one heat map with gaps
  function tiles(id, alike, full) {
    const t = data.tables, [h, w] = t.grid, gap = 0.7;
    const edges = (count, each) => Array.from({ length: count }, (_, r) => Array.from({ length: each + 1 }, (_, i) => r * (each + gap) + i)).flat();
    const z = [], own = [], hover = [];
    for (let r = 0; r < h; r++) for (let i = 0; i <= h; i++) { // the last line of each map is the gap below it
      const line = [], self = [], words = [];
      for (let c = 0; c < w; c++) for (let j = 0; j <= w; j++) {
        const gone = i === h || j === w, one = t.order[r * w + c], other = gone ? one : t.order[i * w + j];
        line.push(gone || one === other ? null : alike[one][other]);
        self.push(!gone && one === other ? 1 : null);
        words.push(gone ? "" : one === other ? text(t.names[one]) : `${text(t.names[one])}<br>${text(t.names[other])}<br>similarity ${show(alike[one][other])}`);
      }
      z.push(line.slice(0, -1)); own.push(self.slice(0, -1)); hover.push(words.slice(0, -1));
    }
    const at = { x: edges(w, w), y: edges(h, h), hoverinfo: "text", text: hover.slice(0, -1), showscale: false };
    const ink = css("--ink"), plain = { visible: false, fixedrange: true };
    const traces = [{ type: "heatmap", z: z.slice(0, -1), zmin: -full, zmax: full, colorscale: diverging(), ...at },
      { type: "heatmap", z: own.slice(0, -1), colorscale: [[0, ink], [1, ink]], ...at }];
    Plotly.react($(id), traces, layout({ xaxis: { ...plain, constrain: "domain" }, yaxis: { ...plain, autorange: "reversed", scaleanchor: "x", constrain: "domain" }, margin: { l: 2, r: 2, t: 2, b: 2 } }), CONFIG);
  }

  function cloudOf(id, points, packed, three) {
    const t = data.tables, by = $("tables-colour").value, groups = t.labels[by];
    const turn = three ? (Number($("tables-turn").value) * Math.PI) / 180 : 0, tilt = three ? 0.45 : 0;
    const seen = points.map(([x, y, z]) => {
      const right = x * Math.cos(turn) + z * Math.sin(turn), deep = z * Math.cos(turn) - x * Math.sin(turn);
      return [right, y * Math.cos(tilt) + deep * Math.sin(tilt), deep * Math.cos(tilt) - y * Math.sin(tilt)];
    });
    const lines = { x: [], y: [] }, few = t.n <= 40;
    for (const [i, j] of t.edges) { lines.x.push(seen[i][0], seen[j][0], null); lines.y.push(seen[i][1], seen[j][1], null); }
    const traces = [{ type: "scatter", mode: "lines", ...lines, line: { color: css("--soft"), width: few ? 1 : 0.5 }, opacity: few ? 0.6 : 0.4, hoverinfo: "skip", showlegend: false }];
    const far = Math.max(...packed.open.points.map(Math.abs)) * 1.18;
    const trace = (members, name, shade, symbol) => traces.push({ type: "scatter", mode: few ? "markers+text" : "markers", name,
      x: members.map((i) => seen[i][0]), y: members.map((i) => seen[i][1]), text: few ? members.map(String) : undefined,
      textfont: { size: 9, color: "#fff" }, hoverinfo: "text",
      hovertext: members.map((i) => `${text(t.names[i])}<br>` + Object.entries(t.labels).map(([name, v]) => `${text(name)}: ${text(v[i])}`).join("<br>")),
      marker: { opacity: 1, color: shade, colorscale: PLACES, symbol, line: { color: css("--card"), width: 1 },
        size: members.map((i) => (few ? 17 : 8) * (three ? 1 + Math.max(-0.4, Math.min(0.6, seen[i][2])) : 1)) } });
    const kinds = unique(groups), every = groups.map((_, i) => i), alone = kinds.length === t.n;
    if (alone) trace(every, "", places(), "circle"); // each its own: colours run along the ideal
    else kinds.forEach((group, k) => trace(every.filter((i) => groups[i] === group), `${text(by)} ${text(group)}`,
      GROUPS[k % GROUPS.length], SYMBOLS[Math.floor(k / GROUPS.length) % SYMBOLS.length]));
    const range = [-far, far], hide = { range, visible: false, fixedrange: true };
    const keys = { orientation: "h", y: 0, yanchor: "top", x: 0.5, xanchor: "center", font: { size: 11 } };
    Plotly.react($(id), traces, layout({ xaxis: { ...hide, scaleanchor: "y" }, yaxis: hide, margin: { l: 5, r: 5, t: 5, b: 5 }, legend: keys, showlegend: !alone && kinds.length <= 10 }), CONFIG);
  }

  // a number for each place: how far along the ideal it is, or else its own
  function places() {
    const t = data.tables;
    return t.ideal ? opened(t.ideal, 0).points.map(([x]) => x) : t.names.map((_, i) => i);
  }

  const isDark = () => css("--card") !== "#fff";
  const diverging = () => (isDark()
    ? [[0, "#5fa8f0"], [0.25, "#33689f"], [0.5, "#222a31"], [0.75, "#a9562a"], [1, "#ff8b4d"]]
    : [[0, "#2462ab"], [0.25, "#5c97d3"], [0.5, "#f6f6f6"], [0.75, "#ef8a54"], [1, "#cc4410"]]);

  // a matrix of places in a given order; of similarities (`full` is where their colours end) or of attention
  function heat(id, z, order, full, borders, hover) {
    const inOrder = order.map((i) => order.map((j) => z[i][j])), n = order.length, at = order.map((_, i) => i);
    const most = full || Math.max(...inOrder.flat(), 1e-9), dark = isDark();
    const scale = full ? diverging() : [[0, dark ? "#1a2026" : "#ffffff"], [1, dark ? "#5cc8c4" : "#0b5d66"]];
    const words = order.map((i) => order.map((j) => text(hover(i, j))));
    const traces = [{ type: "heatmap", z: inOrder, zmin: full ? -most : 0, zmax: most, colorscale: scale, hoverinfo: "text", text: words, showscale: !full,
      colorbar: { thickness: 10, outlinewidth: 0, len: 0.8, tickfont: { size: 11 } }, xgap: n <= 40 ? 1 : 0, ygap: n <= 40 ? 1 : 0 }];
    const line = { type: "line", line: { color: css("--ink"), width: 1 } }, far = [-0.5, n - 0.5];
    const shapes = borders.flatMap((k) => [{ ...line, x0: k - 0.5, x1: k - 0.5, y0: far[0], y1: far[1] }, { ...line, y0: k - 0.5, y1: k - 0.5, x0: far[0], x1: far[1] }]);
    const plain = { showgrid: false, ticks: "", tickvals: at, ticktext: order.map(String), showticklabels: n <= 16, tickfont: { size: 10 }, fixedrange: true, constrain: "domain" };
    Plotly.react($(id), traces, layout({ shapes, xaxis: { ...plain, range: far }, yaxis: { ...plain, range: [far[1], far[0]], scaleanchor: "x" }, margin: n <= 16 ? { l: 25, r: 5, t: 10, b: 30 } : { l: 4, r: 5, t: 4, b: 4 } }), CONFIG);
  }

  // ---- attention

  function attentionAt() {
    const t = data.attention, run = runOf(t.runs, "attention", $("attention-label").value), n = t.n, size = n * n;
    const layer = Number($("attention-layer").value), head = $("attention-head").value;
    run.open = run.open || unpack(run.maps);
    const heads = head === "mean" ? Array.from({ length: run.heads }, (_, i) => i) : [Number(head)];
    const map = Array.from({ length: n }, (_, i) => Array.from({ length: n }, (_, j) =>
      heads.reduce((sum, h) => sum + run.open[(layer * run.heads + h) * size + i * n + j], 0) / heads.length));
    return { run, layer, head, map };
  }

  function drawAttention() {
    const t = data.attention, { run, layer, head, map } = attentionAt(), ideal = unpack(t.ideal);
    heat("attention-map", map, t.order, 0, t.borders, (i, j) => `attention of ${t.names[i]} to ${t.names[j]}: ${show(map[i][j])}`);
    heat("attention-ideal", map.map((row, i) => row.map((_, j) => ideal[i * t.n + j])), t.order, 0, t.borders, (i, j) => `ideal of ${t.names[i]} to ${t.names[j]}: ${show(ideal[i * t.n + j])}`);
    const off = (m) => m.flatMap((row, i) => row.filter((_, j) => j !== i)), a = off(map), b = off(map.map((row, i) => row.map((_, j) => ideal[i * t.n + j])));
    const mean = (v) => v.reduce((x, y) => x + y, 0) / v.length, ma = mean(a), mb = mean(b);
    const cov = mean(a.map((v, i) => (v - ma) * (b[i] - mb))), r = cov / Math.sqrt(mean(a.map((v) => (v - ma) ** 2)) * mean(b.map((v) => (v - mb) ** 2)));
    const says = `${run.label}, seed ${run.seed}, layer ${layer + 1}, ${head === "mean" ? "mean of the heads" : `head ${Number(head) + 1}`}: correlation with the ideal ${show(Number.isFinite(r) ? r : null, 2)}.`;
    $("attention-says").textContent = says;
    $("attention-map").setAttribute("aria-label", `Attention map. ${says}`);
  }

  // ---- controls

  const touched = new Set(); // controls that the reader has set: news of a live page leave them alone
  function fill(select, values, words = values) {
    const before = select.value;
    select.replaceChildren(...values.map((value, i) => Object.assign(document.createElement("option"), { value: String(value), textContent: String(words[i]) })));
    if (values.map(String).includes(before)) select.value = before;
  }

  const choose = (select, value) => { if ([...select.options].some((o) => o.value === value)) select.value = value; };
  const seedsOf = (list, label) => list.filter((r) => r.label === label).map((r) => r.seed);

  function follow() { // what one control offers depends on another
    if (data.tables) for (const side of ["a", "b"]) fill($(`tables-${side}-seed`), seedsOf(data.tables.runs, $(`tables-${side}`).value));
    if (data.attention) {
      fill($("attention-seed"), seedsOf(data.attention.runs, $("attention-label").value));
      const run = runOf(data.attention.runs, "attention", $("attention-label").value), layers = Array.from({ length: run.layers }, (_, i) => i);
      fill($("attention-layer"), layers, layers.map((i) => i + 1));
      const heads = Array.from({ length: run.heads }, (_, i) => i);
      fill($("attention-head"), run.heads > 1 ? ["mean", ...heads] : heads, run.heads > 1 ? ["mean", ...heads.map((i) => i + 1)] : [1]);
    }
  }

  function draw(figure) {
    drawn.add(figure.id);
    FIGURES[figure.dataset.kind](figure.id);
  }
  // a table that goes on to the right says so
  function hints() {
    document.querySelectorAll(".scroll").forEach((box) => {
      const note = () => {
        const wide = box.scrollWidth - box.clientWidth > 4;
        box.classList.toggle("more", wide && box.scrollLeft < box.scrollWidth - box.clientWidth - 4);
        box.previousElementSibling.hidden = !wide;
      };
      box.addEventListener("scroll", note, { passive: true });
      new ResizeObserver(note).observe(box);
    });
  }
  const redraw = () => document.querySelectorAll("figure[data-kind]").forEach((figure) => drawn.has(figure.id) && draw(figure));
  const waiting = () => [...document.querySelectorAll("figure[data-kind]")].filter((figure) => !drawn.has(figure.id));
  const whenIdle = window.requestIdleCallback || ((work) => setTimeout(work, 200));
  // what is below the fold is drawn one by one when there is nothing else to do, so that a picture of the whole page has it
  const drawRest = () => whenIdle(() => {
    const [next] = waiting();
    if (!next) return;
    watcher.unobserve(next);
    draw(next);
    drawRest();
  }, { timeout: 2000 });
  const watcher = new IntersectionObserver((entries) => entries.forEach((e) => {
    if (e.isIntersecting) { watcher.unobserve(e.target); draw(e.target); }
  }), { rootMargin: "300px" });

  let playing = null;
  function play() {
    const slider = $("tables-step");
    touched.add(slider.id);
    if (playing) { clearInterval(playing); playing = null; $("tables-play").textContent = "▶ play"; return; }
    slider.value = 0;
    $("tables-play").textContent = "■ stop";
    redrawOne("tables-figure");
    playing = setInterval(() => {
      slider.value = Number(slider.value) + 1;
      redrawOne("tables-figure");
      if (slider.value === slider.max) play();
    }, 450);
  }
  const redrawOne = (id) => draw($(id));

  // ---- data as files

  const cell = (v) => {
    if (v === null || v === undefined) return "";
    const s = String(v);
    return /[",\n\r]/.test(s) ? `"${s.replace(/"/g, '""')}"` : s;
  };
  const lines = (head, rows) => [head, ...rows].map((row) => row.map(cell).join(",")).join("\n") + "\n";

  function csv(id) {
    if (id.startsWith("tables-")) {
      const { run, points, alike, step } = tableAt(id.slice(7)), labels = Object.keys(data.tables.labels), n = points.length;
      const head = ["configuration", "seed", "step", "token", ...labels, "x", "y", "z", ...points.map((_, j) => `similarity_${j}`)];
      return lines(head, points.map((p, i) => [run.label, run.seed, step, i, ...labels.map((l) => data.tables.labels[l][i]),
        ...p.map((v) => v.toFixed(4)), ...alike[i].map((v, j) => (i === j ? 1 : v.toFixed(4)))]));
    }
    if (id === "attention") {
      const { run, layer, head, map } = attentionAt(), ideal = unpack(data.attention.ideal), n = data.attention.n;
      return lines(["configuration", "seed", "layer", "head", "query", "key", "attention", "ideal"], map.flatMap((row, i) => row.map((v, j) =>
        [run.label, run.seed, layer + 1, head === "mean" ? "mean" : Number(head) + 1, i, j, v.toFixed(5), ideal[i * n + j].toFixed(5)])));
    }
    const columns = (data.panels[id] || data.grids[id]).columns, names = Object.keys(columns);
    return lines(names, (columns[names[0]] || []).map((_, i) => names.map((name) => columns[name][i])));
  }

  function save(name, content, type) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([content], { type }));
    link.download = name;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  // ---- start, and start again when a live page has news

  function start() {
    if (data.tables) ["a", "b"].forEach((side, i) => { $(`tables-${side}`).value = data.tables.start[i][0]; });
    if (data.attention) $("attention-label").value = data.attention.start;
    follow();
    if (data.tables) ["a", "b"].forEach((side, i) => choose($(`tables-${side}-seed`), String(data.tables.start[i][1])));
    if (data.attention) { // the layer that follows the true relation most
      const found = runOf(data.attention.runs, "attention", $("attention-label").value).relation.map((v) => (v === null ? -1 : v));
      $("attention-layer").value = String(found.indexOf(Math.max(...found)));
    }
    document.querySelectorAll("figure[data-kind]").forEach((figure) => watcher.observe(figure));
    drawRest();
    hints();
    for (const plot of document.querySelectorAll("#tables-figure .plot")) { // turning by hand, where a slider is not at hand
      let from = null;
      plot.addEventListener("pointerdown", (e) => { from = $("tables-view").value === "space" ? [e.clientX, Number($("tables-turn").value)] : null; });
      plot.addEventListener("pointermove", (e) => {
        if (!from || !e.buttons) return;
        $("tables-turn").value = (((from[1] + Math.round((e.clientX - from[0]) / 2)) % 360) + 360) % 360;
        redrawOne("tables-figure");
      });
    }
  }

  document.addEventListener("input", (e) => {
    const figure = e.target.closest("figure[data-kind]");
    if (!figure) return;
    touched.add(e.target.id);
    follow();
    draw(figure);
  });
  document.addEventListener("click", (e) => {
    const button = e.target.closest("button");
    if (!button) return;
    if (button.id === "tables-play") play();
    if (button.id === "theme") theme(true);
    if (button.dataset.hide) {
      const name = button.dataset.hide;
      if (!hidden.delete(name)) hidden.add(name);
      button.setAttribute("aria-pressed", String(!hidden.has(name)));
      draw(button.closest("figure"));
    }
    if (button.dataset.csv) save(`${button.dataset.csv}.csv`, csv(button.dataset.csv), "text/csv");
    if (button.dataset.text) save(button.dataset.text, $("sweep-toml").textContent, "text/plain");
  });

  function theme(next) {
    const names = ["auto", "light", "dark"], root = document.documentElement;
    let now = root.dataset.theme || "auto";
    if (next) now = names[(names.indexOf(now) + 1) % 3];
    if (now === "auto") delete root.dataset.theme; else root.dataset.theme = now;
    $("theme").textContent = `◐ ${now}`;
    $("theme").setAttribute("aria-label", `Colours: ${now === "auto" ? "as the system" : now}`);
    if (next) redraw();
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  // on paper every figure is there, in the colours and width of the paper: drawn anew, since a resize would come too late
  function paper(on) {
    if (document.body.classList.contains("paper") === on) return;
    document.body.classList.toggle("paper", on);
    document.querySelectorAll(".plot.js-plotly-plot").forEach((plot) => Plotly.purge(plot));
    document.querySelectorAll("figure[data-kind]").forEach(draw);
  }
  addEventListener("beforeprint", () => paper(true));
  addEventListener("afterprint", () => paper(false));
  matchMedia("print").addEventListener("change", (e) => paper(e.matches));

  async function listen() { // a live page asks for news, and takes them in where it stands
    let version = data.version;
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, 1000));
      try {
        const answer = await fetch(`news?have=${encodeURIComponent(version)}`);
        if (answer.status === 204) { $("live").textContent = "live"; continue; }
        const news = await answer.json();
        const kept = [...document.querySelectorAll("main select, main input")].filter((c) => touched.has(c.id)).map((c) => [c.id, c.type === "checkbox" ? c.checked : c.value]);
        const open = [...document.querySelectorAll("main details")].map((d) => d.open), atEnd = $("tables-step") && $("tables-step").value === $("tables-step").max;
        const top = scrollY;
        if (playing) play();
        document.querySelectorAll(".plot").forEach((plot) => Plotly.purge(plot));
        watcher.disconnect();
        drawn.clear();
        $("main").innerHTML = news.main;
        data = news.data;
        version = data.version;
        start();
        const back = () => kept.forEach(([id, value]) => {
          const control = id && $(id);
          if (!control) return;
          if (control.type === "checkbox") control.checked = value;
          else if (control.tagName === "SELECT") choose(control, value);
          else control.value = value;
        });
        back(); follow(); back(); // some offer what others chose
        if (atEnd && $("tables-step")) $("tables-step").value = $("tables-step").max;
        document.querySelectorAll("main details").forEach((d, i) => { d.open = Boolean(open[i]); });
        scrollTo({ top, behavior: "instant" });
        $("live").textContent = "live";
      } catch (error) {
        $("live").textContent = "the server has stopped; what it showed last stays";
      }
    }
  }

  theme(false);
  start();
  if ("live" in document.body.dataset) listen();
})();
