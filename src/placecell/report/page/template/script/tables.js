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
      else heat(id, alike, t, full, (i, j) => `${brief(t.names[i])}, ${brief(t.names[j])}: ${show(alike[i][j])}`);
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
        words.push(gone ? "" : one === other ? text(brief(t.names[one])) : `${text(brief(t.names[one]))}<br>${text(brief(t.names[other]))}<br>similarity ${show(alike[one][other])}`);
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
    const lines = { x: [], y: [] }, few = t.n <= 40, inside = few && t.marks.every((mark) => mark.length <= 3);
    const heaped = !inside && packed === t.ideal && t.borders.length; // places of one group lie on one spot
    for (const [i, j] of t.edges) { lines.x.push(seen[i][0], seen[j][0], null); lines.y.push(seen[i][1], seen[j][1], null); }
    const traces = [{ type: "scatter", mode: "lines", ...lines, line: { color: css("--soft"), width: few ? 1 : 0.5 }, opacity: few ? 0.6 : 0.4, hoverinfo: "skip", showlegend: false }];
    const far = Math.max(...packed.open.points.map(Math.abs)) * 1.18;
    const trace = (members, name, shade, symbol) => traces.push({ type: "scatter", mode: few ? "markers+text" : "markers", name, cliponaxis: inside,
      x: members.map((i) => seen[i][0]), y: members.map((i) => seen[i][1]), text: few && !heaped ? members.map((i) => text(t.marks[i])) : undefined,
      textposition: inside ? "middle center" : "top center", textfont: { size: 9, color: inside ? "#fff" : css("--ink") }, hoverinfo: "text",
      hovertext: members.map((i) => `${text(brief(t.names[i]))}<br>` + Object.entries(t.labels).map(([name, v]) => `${text(name)}: ${text(brief(v[i]))}`).join("<br>")),
      marker: { opacity: 1, color: shade, colorscale: PLACES, symbol, line: { color: css("--card"), width: 1 },
        size: members.map((i) => (inside ? 17 : few ? 12 : 8) * (three ? 1 + Math.max(-0.4, Math.min(0.6, seen[i][2])) : 1)) } });
    const kinds = unique(groups), every = groups.map((_, i) => i), alone = kinds.length === t.n;
    if (alone) trace(every, "", places(), "circle"); // each its own: colours run along the ideal
    else kinds.forEach((group, k) => trace(every.filter((i) => groups[i] === group), `${text(by)} ${text(brief(group, 24))}`,
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

  // a matrix of places in their order; of similarities (`full` is where their colours end) or of attention
  function heat(id, z, { order, borders, marks, groups }, full, hover) {
    const inOrder = order.map((i) => order.map((j) => z[i][j])), n = order.length, at = order.map((_, i) => i);
    const most = full || Math.max(...inOrder.flat(), 1e-9), dark = isDark();
    const scale = full ? diverging() : [[0, dark ? "#1a2026" : "#ffffff"], [1, dark ? "#5cc8c4" : "#0b5d66"]];
    const words = order.map((i) => order.map((j) => text(hover(i, j))));
    const traces = [{ type: "heatmap", z: inOrder, zmin: full ? -most : 0, zmax: most, colorscale: scale, hoverinfo: "text", text: words, showscale: !full,
      colorbar: { thickness: 10, outlinewidth: 0, len: 0.8, tickfont: { size: 11 } }, xgap: n <= 40 ? 1 : 0, ygap: n <= 40 ? 1 : 0 }];
    const line = { type: "line", line: { color: css("--ink"), width: 1 } }, far = [-0.5, n - 0.5];
    const shapes = borders.flatMap((k) => [{ ...line, x0: k - 0.5, x1: k - 0.5, y0: far[0], y1: far[1] }, { ...line, y0: k - 0.5, y1: k - 0.5, x0: far[0], x1: far[1] }]);
    const plain = { showgrid: false, ticks: "", tickvals: at, ticktext: order.map((i) => text(marks[i])), showticklabels: n <= 16, tickfont: { size: 10 }, fixedrange: true, constrain: "domain" };
    const ends = [...borders, n], middles = ends.map((end, k) => (end + (k ? ends[k - 1] : 0) - 1) / 2); // of many places the groups are named
    const left = n <= 16 || groups.length > 20 ? {} : { showticklabels: groups.length > 0, tickvals: middles.slice(0, groups.length), ticktext: groups.map((name) => text(brief(name, 14))) };
    Plotly.react($(id), traces, layout({ shapes, xaxis: { ...plain, range: far }, yaxis: { ...plain, ...left, range: [far[1], far[0]], scaleanchor: "x" }, margin: n <= 16 ? { l: 25, r: 5, t: 10, b: 30 } : { l: 4, r: 5, t: 4, b: 4 } }), CONFIG);
  }

