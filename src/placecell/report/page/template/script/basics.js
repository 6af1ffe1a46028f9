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
  // a name of somebody's own may be long: pictures have its beginning and its end, tables the whole
  const brief = (name, most = 60) => { const s = [...String(name)], end = (most - 1) >> 1; return s.length <= most ? String(name) : `${s.slice(0, most - 1 - end).join("").trimEnd()}…${s.slice(-end).join("").trimStart()}`; };
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

