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

