"use strict";
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const figures = read("figures-json");
  const rankViews = read("ranks-json");
  const config = {
    displaylogo: false, responsive: true, showTips: false, modeBarButtons: [["toImage", "resetScale2d"]],
    toImageButtonOptions: { format: "svg" }, plotlyServerURL: "", showSendToCloud: false, showEditInChartStudio: false,
  };
  const root = document.documentElement;
  // On paper a figure keeps this width: two beside each other on A4 or letter.
  const paperWidth = { pair: 340, alone: 690 };
  let onPaper = false;

  // Figures name the page's colours; their values follow the reader's light or dark.
  const coloured = (value, style) => {
    if (Array.isArray(value)) return value.map((each) => coloured(each, style));
    if (value !== null && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, coloured(each, style)]));
    }
    return typeof value === "string" && value.startsWith("--fig-") ? style.getPropertyValue(value).trim() : value;
  };

  const draw = (id) => {
    const element = document.getElementById(id);
    if (element === null || typeof Plotly === "undefined") return;
    const drawn = coloured(figures[id], getComputedStyle(root));
    if (onPaper) {
      drawn.layout.autosize = false;
      drawn.layout.width = element.closest(".pair") === null ? paperWidth.alone : paperWidth.pair;
    }
    Plotly.react(element, drawn.data, drawn.layout, config);
  };

  // One after the other, so that the page can be scrolled meanwhile.
  const drawAll = (ids) => {
    if (ids.length === 0) {
      root.dataset.drawn = "all";
      return;
    }
    draw(ids[0]);
    setTimeout(drawAll, 0, ids.slice(1));
  };

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

  const setRanks = (view) => {
    const figure = figures["ranks-figure"];
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

  const showRanks = (view) => {
    setRanks(view);
    draw("ranks-figure");
    document.getElementById("ranks-note").textContent = `${view.name}: ${view.note}`;
    document.getElementById("ranks-name").textContent = view.name;
    const rows = view.rank.map((rank, row) => {
      const line = document.createElement("tr");
      const cells = [
        rank, view.hosts[view.host[row]], us(view.median[row]), us(view.p99[row]), us(view.max[row]),
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
    });
    document.querySelector("#ranks-table tbody").replaceChildren(...rows);
  };

  const choice = document.getElementById("ranks-choice");
  if (choice !== null) {
    setRanks(rankViews[choice.selectedIndex]);
    choice.addEventListener("change", () => showRanks(rankViews[choice.selectedIndex]));
  }

  const ids = Object.keys(figures).filter((id) => document.getElementById(id) !== null);
  drawAll(ids);

  const redraw = () => ids.forEach(draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  const setPaper = (paper) => {
    onPaper = paper;
    root.classList.toggle("on-paper", paper);
    redraw();
  };
  addEventListener("beforeprint", () => setPaper(true));
  addEventListener("afterprint", () => setPaper(false));

  const raw = document.getElementById("run-json");
  if (raw !== null) {
    const link = document.getElementById("download-link");
    link.href = URL.createObjectURL(new Blob([raw.textContent], { type: "application/json" }));
    document.getElementById("download").hidden = false;
  }
})();
