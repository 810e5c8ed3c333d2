"use strict";
(() => {
  const config = {
    displaylogo: false, responsive: true, showTips: false, modeBarButtons: [["toImage", "resetScale2d"]],
    toImageButtonOptions: { format: "svg" }, plotlyServerURL: "", showSendToCloud: false, showEditInChartStudio: false,
  };
  const root = document.documentElement;
  // On paper a figure keeps this width: two beside each other on A4 or letter.
  const paperWidth = { pair: 340, alone: 690 };
  let onPaper = false;
  // By the id of the element; what has been drawn, and is drawn again when the colours change.
  const figures = {};
  const drawn = new Set();

  const unpacked = async (id) => {
    const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  };

  let drawing = null;
  // The program that draws is unpacked once, when the first figure comes into sight.
  const drawer = () => {
    drawing ??= unpacked("plotly").then((source) => {
      const script = document.createElement("script");
      script.textContent = source;
      document.head.append(script);
    });
    return drawing;
  };

  // Figures name the page's colours; their values follow the reader's light or dark.
  const coloured = (value, style) => {
    if (Array.isArray(value)) return value.map((each) => coloured(each, style));
    if (value !== null && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, coloured(each, style)]));
    }
    return typeof value === "string" && value.startsWith("--fig-") ? style.getPropertyValue(value).trim() : value;
  };

  // Names in a legend are reached and chosen by keyboard too.
  const offerLegend = (element) => {
    for (const toggle of element.querySelectorAll(".legendtoggle")) {
      const { trace } = toggle.__data__[0];
      const isShown = trace.visible === true;
      toggle.setAttribute("tabindex", "0");
      toggle.setAttribute("role", "button");
      toggle.setAttribute("aria-pressed", String(isShown));
      toggle.setAttribute("aria-label", trace.name);
      toggle.onkeydown = async (pressed) => {
        if (pressed.key !== "Enter" && pressed.key !== " ") return;
        pressed.preventDefault();
        // What is expected of a curve goes with it.
        const isOfGroup = (each) => trace.legendgroup !== "" && each.legendgroup === trace.legendgroup;
        const group = element._fullData.filter((each) => each.index === trace.index || isOfGroup(each));
        await Plotly.restyle(element, { visible: isShown ? "legendonly" : true }, group.map((each) => each.index));
        const again = [...element.querySelectorAll(".legendtoggle")];
        again.find((each) => each.__data__[0].trace.index === trace.index)?.focus();
      };
    }
  };

  const sizeWords = (bytes) => {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    const power = Math.max(0, Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10)));
    return `${bytes / 1024 ** power} ${units[power]}`;
  };

  // Ticks for a part of an axis of logarithms: powers of two for sizes, else 1, 2 and 5 of each decade.
  const ticksWithin = ([low, high], isSize) => {
    const values = [];
    if (isSize) {
      const [first, last] = [Math.ceil(low / Math.log10(2)), Math.floor(high / Math.log10(2))];
      const step = Math.ceil((last - first + 1) / 6);
      for (let exponent = first; exponent <= last; exponent += step) values.push(2 ** exponent);
      return { tickvals: values, ticktext: values.map(sizeWords) };
    }
    for (let exponent = Math.floor(low); exponent <= high; exponent += 1) {
      values.push(...[1, 2, 5].map((digit) => Number(`${digit}e${exponent}`)));
    }
    const shown = values.filter((value) => Math.log10(value) >= low && Math.log10(value) <= high);
    return { tickvals: shown, ticktext: shown.map(String) };
  };

  // Labels are chosen for the whole of an axis; a part that is zoomed into gets its own.
  const relabel = (element, id) => {
    const changes = {};
    for (const name of ["xaxis", "yaxis"]) {
      const [whole, now] = [figures[id].layout[name], element.layout[name]];
      if (whole.tickvals === undefined || whole.range === undefined) continue;
      const isWhole = whole.range.every((end, place) => Math.abs(end - now.range[place]) < 1e-9);
      let ticks = whole;
      if (!isWhole && whole.type === "log") ticks = ticksWithin(now.range, whole.title.text === "size");
      const isAuto = !isWhole && (whole.type !== "log" || ticks.tickvals.length < 2);
      changes[`${name}.tickmode`] = isAuto ? "auto" : "array";
      changes[`${name}.tickvals`] = ticks.tickvals;
      changes[`${name}.ticktext`] = ticks.ticktext;
    }
    Plotly.relayout(element, changes);
  };

  const draw = (id) => {
    const element = document.getElementById(id);
    if (element === null || typeof Plotly === "undefined") return;
    const figure = coloured(figures[id], getComputedStyle(root));
    if (onPaper) {
      figure.layout.autosize = false;
      figure.layout.width = element.closest(".pair") === null ? paperWidth.alone : paperWidth.pair;
    }
    Plotly.react(element, figure.data, figure.layout, config);
    if (!drawn.has(id)) {
      element.on("plotly_afterplot", () => offerLegend(element));
      element.on("plotly_relayout", (changed) => {
        if (Object.keys(changed).some((key) => key.includes("range"))) relabel(element, id);
      });
    }
    offerLegend(element);
    drawn.add(id);
    performance.mark("figure");
  };

  // Figures are drawn when they come near the window, one after the other, so that the page can be scrolled meanwhile.
  const waiting = [];
  const work = () => {
    const id = waiting.shift();
    if (id === undefined) return;
    if (!drawn.has(id)) draw(id);
    setTimeout(work, 0);
  };
  const near = new IntersectionObserver(
    (entries) => {
      const seen = entries.filter((entry) => entry.isIntersecting).map((entry) => entry.target);
      if (seen.length === 0) return;
      seen.forEach((element) => near.unobserve(element));
      const idle = waiting.length === 0;
      waiting.push(...seen.map((element) => element.id));
      if (idle) drawer().then(work);
    },
    { rootMargin: "400px 0px" },
  );

  const escaped = (text) => text.replace(/[&<>]/g, (character) => `&#${character.charCodeAt(0)};`);
  const us = (time) => (time === null ? "n/a" : String(time));

  const rankTrace = (view, name, values, symbol, colour) => ({
    type: "scatter", mode: "markers", name, x: view.rank.map(String), y: values,
    marker: { symbol, size: 9, color: colour, line: { color: colour, width: 1.5 } },
    text: view.rank.map((rank, row) =>
      [
        `<b>rank ${rank} on ${escaped(view.hosts[view.host[row]])}</b>`, `median ${us(view.median[row])} us`,
        `p99 ${us(view.p99[row])} us`, `max ${us(view.max[row])} us`, `blamed for ${view.blamed[row]} slow samples`,
        `taken off its CPU ${view.switches[row]} times`,
      ].join("<br>")),
    hovertemplate: "%{text}<extra></extra>",
  });

  const logTicks = (values) => {
    const low = Math.log10(Math.min(...values)) - 0.08;
    const high = Math.log10(Math.max(...values)) + 0.08;
    const digits = high - low > 2.5 ? [1] : high - low > 1 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9];
    const ticks = [];
    for (let exponent = Math.floor(low); exponent <= high; exponent += 1) {
      ticks.push(...digits.map((digit) => Number((digit * 10 ** exponent).toPrecision(3))));
    }
    const shown = ticks.filter((tick) => Math.log10(tick) >= low && Math.log10(tick) <= high);
    return { range: [low, high], tickvals: shown, ticktext: shown.map(String) };
  };

  const setRanks = (figure, view) => {
    const bars = rankTrace(view, "blamed slow samples", view.blamed, "square", "--fig-ceiling");
    figure.data = [
      rankTrace(view, "median", view.median, "circle", "--fig-median"),
      rankTrace(view, "p99", view.p99, "triangle-up-open", "--fig-tail"),
      rankTrace(view, "max", view.max, "x-thin-open", "--fig-ceiling"),
      { ...bars, type: "bar", yaxis: "y2", marker: { color: "--fig-ceiling" }, textposition: "none" },
    ];
    const times = [...view.median, ...view.p99, ...view.max].filter((time) => time !== null && time > 0);
    if (times.length > 0) Object.assign(figure.layout.yaxis, logTicks(times));
  };

  const rankRow = (view, row) => {
    const line = document.createElement("tr");
    const cells = [
      view.rank[row], view.hosts[view.host[row]], us(view.median[row]), us(view.p99[row]), us(view.max[row]),
      view.blamed[row], view.switches[row],
    ];
    cells.forEach((text, column) => {
      const cell = document.createElement(column === 0 ? "th" : "td");
      if (column === 0) cell.scope = "row";
      if (column === 1) cell.className = "text";
      cell.textContent = String(text);
      line.append(cell);
    });
    return line;
  };

  // Lets a reader choose whose ranks are shown. `prefix` stands before the ids of a run that is one of several.
  const offerRanks = (prefix, views) => {
    const choice = document.getElementById(`${prefix}ranks-choice`);
    if (choice === null) return;
    const id = `${prefix}ranks-figure`;
    const show = () => {
      const view = views[choice.selectedIndex];
      setRanks(figures[id], view);
      draw(id);
      document.getElementById(`${prefix}ranks-note`).textContent = `${view.name}: ${view.note}`;
      document.getElementById(`${prefix}ranks-name`).textContent = view.name;
      const rows = view.rank.map((rank, row) => rankRow(view, row));
      document.querySelector(`#${prefix}ranks-table tbody`).replaceChildren(...rows);
    };
    setRanks(figures[id], views[choice.selectedIndex]);
    choice.addEventListener("change", show);
  };

  // Takes in what a payload holds, and watches its figures come into sight.
  const open = async (payload, prefix, inside) => {
    const held = JSON.parse(await unpacked(payload));
    if (inside !== null) inside.innerHTML = held.html;
    Object.assign(figures, held.figures);
    offerRanks(prefix, held.ranks);
    for (const id of Object.keys(held.figures)) {
      const element = document.getElementById(id);
      if (element !== null) near.observe(element);
    }
  };

  const opened = new Map();
  const openRun = (run) => {
    if (!opened.has(run)) opened.set(run, open(run.dataset.payload, `${run.id}-`, run.querySelector(".inside")));
    return opened.get(run);
  };
  for (const run of document.querySelectorAll("details.run")) {
    run.addEventListener("toggle", () => { if (run.open) openRun(run); });
  }
  // A link to a run, or to a part of one, opens it.
  const follow = async () => {
    const id = decodeURIComponent(location.hash.slice(1));
    const named = /^run-\d+/.exec(id);
    const run = named === null ? null : document.getElementById(named[0]);
    if (run === null || run.tagName !== "DETAILS") return;
    await openRun(run);
    run.open = true;
    document.getElementById(id)?.scrollIntoView();
    if (id === run.id) run.querySelector("summary").focus();
  };
  addEventListener("hashchange", follow);

  if (typeof DecompressionStream === "undefined") {
    const said = document.createElement("p");
    said.textContent = "This browser is too old to unpack the figures (it lacks DecompressionStream, of 2023).";
    document.getElementById("main").prepend(said);
  } else {
    open("payload", "", null).then(follow);
    // Whoever prints before scrolling wants the figures too.
    setTimeout(drawer, 500);
  }

  const redraw = () => drawn.forEach(draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  const setPaper = (paper) => {
    onPaper = paper;
    root.classList.toggle("on-paper", paper);
    redraw();
  };
  addEventListener("beforeprint", () => {
    // Everything on the page is drawn for paper; what stands in a closed run is not on it.
    const unseen = Object.keys(figures).filter((id) => !drawn.has(id));
    setPaper(true);
    unseen.forEach(draw);
  });
  addEventListener("afterprint", () => setPaper(false));

  for (const link of document.querySelectorAll("[data-raw]")) {
    const raw = document.getElementById(link.dataset.raw);
    link.addEventListener("click", () => {
      link.href = URL.createObjectURL(new Blob([raw.textContent], { type: "application/json" }));
    });
    document.getElementById("download").hidden = false;
  }
})();
