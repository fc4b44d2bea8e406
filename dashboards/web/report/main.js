// SPDX-License-Identifier: BSD-2-Clause

// Draws the report's charts from their tables. Without this program the tables are all open.
import { BarChart, CustomChart, LineChart, ScatterChart } from "echarts/charts";
import { AriaComponent, GridComponent, LegendComponent, TooltipComponent } from "echarts/components";
import { init, use } from "echarts/core";
import { LabelLayout } from "echarts/features";
import { SVGRenderer } from "echarts/renderers";

import { colour, draw, height } from "./options.js";
import { read } from "./read.js";

use([BarChart, CustomChart, LineChart, ScatterChart, AriaComponent, GridComponent, LegendComponent, TooltipComponent, LabelLayout,
  SVGRenderer]);

// ECharts keeps texts in objects by themselves: the name __proto__ must be a key like any other, and change no object.
delete Object.prototype.__proto__;

const root = document.documentElement;
const charts = [];
let printing = false;

/** The width of A4 between its margins, in pixels. */
const PAPER = 688;

function show(figure) {
  const place = figure.querySelector(".chart"), table = figure.querySelector("table");
  if (!place || !table) return;
  const about = JSON.parse(figure.dataset.chart);
  const data = read(table);
  colour(data.columns);
  place.hidden = false;
  const chart = init(place, null, { renderer: "svg" });
  const size = () => {
    const width = printing ? PAPER : place.clientWidth;
    if (width === 0) return;
    const sized = { ...about, width, paper: printing };
    place.style.height = `${height(sized, data)}px`;
    chart.resize({ width, height: height(sized, data) });
    chart.setOption(draw[about.kind](sized, data));
    chart.getZr().flush();
    // Where paper is narrower, the picture shrinks as a whole.
    const svg = place.querySelector("svg");
    svg.setAttribute("viewBox", `0 0 ${svg.getAttribute("width")} ${svg.getAttribute("height")}`);
  };
  size();
  charts.push(size);
  new ResizeObserver(() => requestAnimationFrame(() => printing || size())).observe(place);
}

/** Which of light and dark the page is in: the reader's choice, or the browser's. */
function scheme() {
  return root.dataset.scheme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}

function switches() {
  const button = document.getElementById("scheme");
  const say = () => button.setAttribute("aria-pressed", String(scheme() === "dark"));
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.scheme = scheme() === "dark" ? "light" : "dark";
    say();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", say);
  say();
}

/** On paper charts have its width and all tables are open; afterwards they are as before. */
function prints() {
  let closed = [];
  addEventListener("beforeprint", () => {
    printing = true;
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const details of closed) details.open = true;
    for (const size of charts) size();
  });
  addEventListener("afterprint", () => {
    printing = false;
    for (const details of closed) details.open = false;
    for (const size of charts) size();
  });
}

for (const details of document.querySelectorAll("details[data-folds]")) details.open = false;
for (const figure of document.querySelectorAll("[data-chart]")) show(figure);
switches();
prints();
