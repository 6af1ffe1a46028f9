  // ---- data as files

  const cell = (v) => {
    if (v === null || v === undefined) return "";
    const s = String(v);
    return /[",\n\r]/.test(s) ? `"${s.replace(/"/g, '""')}"` : s;
  };
  const lines = (head, rows) => [head, ...rows].map((row) => row.map(cell).join(",")).join("\n") + "\n";

  function csv(id) {
    if (id.startsWith("tables-")) {
      const { run, points, alike, step } = tableAt(id.slice(7)), labels = Object.keys(data.tables.labels), { names } = data.tables;
      const head = ["configuration", "seed", "step", "token", "name", ...labels, "x", "y", "z", ...names.map((name) => `similarity to ${name}`)];
      return lines(head, points.map((p, i) => [run.label, run.seed, step, i, names[i], ...labels.map((l) => data.tables.labels[l][i]),
        ...p.map((v) => v.toFixed(4)), ...alike[i].map((v, j) => (i === j ? 1 : v.toFixed(4)))]));
    }
    if (id === "attention") {
      const { run, layer, head, map } = attentionAt(), { names, n, reference } = data.attention, ideal = unpack(data.attention.ideal);
      return lines(["configuration", "seed", "layer", "head", "query", "key", "attention", reference === "the true relation" ? "ideal" : "by community"], map.flatMap((row, i) => row.map((v, j) =>
        [run.label, run.seed, layer + 1, head === "mean" ? "mean" : Number(head) + 1, names[i], names[j], v.toFixed(5), ideal[i * n + j].toFixed(5)])));
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
  // on paper runs and settings are unfolded, and every figure is there, in the colours and width of the paper: drawn anew, since a resize would come too late
  function paper(on) {
    if (document.body.classList.contains("paper") === on) return;
    document.body.classList.toggle("paper", on);
    document.querySelectorAll(on ? "#runs details:not([open]), #repeat details:not([open])" : "details[data-folded]").forEach((part) => {
      part.open = on;
      part.toggleAttribute("data-folded", on);
    });
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
