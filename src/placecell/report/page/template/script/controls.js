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
    const known = t.reference === "the true relation"; // communities of the data's own are no ideal
    const pair = (i, j) => `${brief(t.names[i])} to ${brief(t.names[j])}`;
    heat("attention-map", map, t, 0, (i, j) => `attention of ${pair(i, j)}: ${show(map[i][j])}`);
    heat("attention-ideal", map.map((row, i) => row.map((_, j) => ideal[i * t.n + j])), t, 0, (i, j) => `${known ? "ideal of" : "by community,"} ${pair(i, j)}: ${show(ideal[i * t.n + j])}`);
    const off = (m) => m.flatMap((row, i) => row.filter((_, j) => j !== i)), a = off(map), b = off(map.map((row, i) => row.map((_, j) => ideal[i * t.n + j])));
    const mean = (v) => v.reduce((x, y) => x + y, 0) / v.length, ma = mean(a), mb = mean(b);
    const cov = mean(a.map((v, i) => (v - ma) * (b[i] - mb))), r = cov / Math.sqrt(mean(a.map((v) => (v - ma) ** 2)) * mean(b.map((v) => (v - mb) ** 2)));
    const says = `${run.label}, seed ${run.seed}, layer ${layer + 1}, ${head === "mean" ? "mean of the heads" : `head ${Number(head) + 1}`}: correlation with ${known ? "the ideal" : t.reference} ${show(Number.isFinite(r) ? r : null, 2)}.`;
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

