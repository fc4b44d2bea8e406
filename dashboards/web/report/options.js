// SPDX-License-Identifier: BSD-2-Clause

// What ECharts is told to draw. Colours are variables of the stylesheet, so that charts follow the page's scheme and the
// print by themselves.

const PALETTE = ["parts-monitor", "modes-dynamic", "parts-worker", "parts-supervisor", "results-refused", "parts-search",
  "modes-forked", "modes-audit", "parts-task", "modes-control"];
const SHAPES = ["circle", "rect", "triangle", "diamond", "emptyCircle", "emptyRect", "emptyTriangle", "emptyDiamond"];
const INK = "var(--ink)", SOFT = "var(--soft)", LINE = "var(--line)", CARD = "var(--card)";
const FONT = { fontFamily: "system-ui, 'DejaVu Sans', sans-serif", fontSize: 12, color: SOFT };

/** Gives each column without a colour one that no other has, as long as there are some. Several names have the same colour. */
export function colour(columns) {
  const look = getComputedStyle(document.documentElement), value = (name) => look.getPropertyValue(`--${name}`);
  const used = new Set(columns.filter((column) => column.colour).map((column) => value(column.colour)));
  const free = PALETTE.filter((name) => !used.has(value(name)));
  let next = 0;
  for (const column of columns) column.colour ||= (free.length ? free : PALETTE)[next++ % (free.length || PALETTE.length)];
}

/** The name by which ECharts knows a column. It keeps names in objects, for which a title such as __proto__ is none. */
function key(at) {
  return `column ${at}`;
}

function colourOf(column) {
  return `var(--${column.colour})`;
}

function unitOf(axis) {
  return [axis.label, axis.unit].filter(Boolean).join(", ");
}

function axis(kind, about, more = {}) {
  return {
    type: kind, name: unitOf(about), nameLocation: "middle", nameTextStyle: FONT, nameGap: 30,
    axisLabel: { ...FONT, hideOverlap: true }, axisLine: { show: true, lineStyle: { color: SOFT } }, axisTick: { show: false },
    splitLine: { show: kind !== "category", lineStyle: { color: LINE } }, ...more,
  };
}

/** The axis on the left: its name stands above it, from left to right. */
function upright(about, more = {}) {
  return axis(about.log ? "log" : "value", about, { nameLocation: "end", nameGap: 12, nameTextStyle: { ...FONT, align: "left" }, ...more });
}

/** Long names are cut in the chart; the table has them in full. */
function short(text, most) {
  const characters = [...text];
  return characters.length > most ? `${characters.slice(0, most - 1).join("")}…` : text;
}

const NAME_LENGTH = 24, LEGEND_LENGTH = 32;
const CHARACTER = 7, KEY = 18, GAP = 10, LINE_HEIGHT = 22;

/** How many lines the legend takes, by the width of its characters at most; none if there is nothing to tell apart. */
function legendLines(figure, data) {
  if (figure.kind === "points" || (figure.kind === "bars" && data.columns.length < 2)) return 0;
  let lines = 1, at = 0;
  for (const column of data.columns) {
    const width = KEY + 5 + CHARACTER * short(column.title, LEGEND_LENGTH).length;
    if (at > 0 && at + width > figure.width) [lines, at] = [lines + 1, 0];
    at += width + GAP;
  }
  return lines;
}

/** Where the drawing begins, below the legend and the name of the axis on the left. */
function top(figure, data) {
  return LINE_HEIGHT * legendLines(figure, data) + (figure.kind === "stack" ? 4 : 32);
}

/** The height of a chart in pixels; on paper less, so that more of them are on a page. */
export function height(figure, data) {
  const bar = figure.paper ? 30 : 44, field = figure.paper ? 206 : 266;
  return top(figure, data) + (figure.kind === "stack" ? 56 + bar * data.names.length : field);
}

function frame(figure, data, x, y) {
  return {
    animation: false,
    textStyle: FONT,
    aria: { enabled: false },
    grid: { left: 8, right: 18, top: top(figure, data), bottom: 30, containLabel: true },
    legend: {
      show: legendLines(figure, data) > 0, type: "plain", top: 2, left: 0, padding: 0, itemGap: GAP, itemWidth: KEY, itemHeight: 10, textStyle: { ...FONT, color: INK },
      inactiveColor: LINE, selectedMode: false, data: data.columns.map((column, at) => key(at)),
      formatter: (name) => short(data.columns.find((column, at) => key(at) === name).title, LEGEND_LENGTH),
    },
    tooltip: {
      renderMode: "richText", trigger: "axis", axisPointer: { type: "line", lineStyle: { color: SOFT } }, confine: true,
      backgroundColor: CARD, borderColor: SOFT, textStyle: { ...FONT, color: INK },
      formatter: (points) => tip(figure, data, points),
    },
    xAxis: x,
    yAxis: y,
  };
}

/** The text of a tooltip: the row's name, and the cells as the table has them. */
function tip(figure, data, points) {
  const at = points[0]?.dataIndex;
  if (at === undefined) return "";
  const lines = data.columns.map((column) => `${short(column.title, 40)}: ${column.cells[at].text}`);
  const name = figure.kind === "time" ? data.names[at].replace("T", " ").replace("Z", "") : data.names[at];
  return [`${short(name, 60)}`, ...lines].join("\n");
}

const BAR = { barGap: "12%", barCategoryGap: "28%", barMaxWidth: 72 };

/** A whisker for each interval, in the middle of its bar, or at its point. */
function whiskers(column, at, bars) {
  const data = column.cells.flatMap((cell, row) => (cell.low === null ? [] : [[row, cell.low, cell.high]]));
  return {
    type: "custom", name: key(at), silent: true, tooltip: { show: false }, z: 5, data,
    encode: { x: 0, y: [1, 2] },
    renderItem(parameters, api) {
      const layout = bars ? api.barLayout({ ...BAR, count: bars })[at] : { offsetCenter: 0 };
      const place = (value) => {
        const point = api.coord([api.value(0), value]);
        return [point[0] + layout.offsetCenter, point[1]];
      };
      const low = place(api.value(1)), high = place(api.value(2)), style = { stroke: INK, lineWidth: 1.2 };
      const line = (a, b) => ({ type: "line", shape: { x1: a[0], y1: a[1], x2: b[0], y2: b[1] }, style });
      return {
        type: "group",
        children: [line(low, high), line([low[0] - 3, low[1]], [low[0] + 3, low[1]]), line([high[0] - 3, high[1]], [high[0] + 3, high[1]])],
      };
    },
  };
}

/** A bar; one of a single column may have a colour of its own. */
function coloured(cell, colour) {
  return colour ? { value: cell.value, itemStyle: { color: `var(--${colour})` } } : cell.value;
}

const BESIDE = 90;

/** How far names are turned: not at all if they fit beside each other. */
function turn(figure, data) {
  const longest = Math.max(...data.names.map((name) => Math.min(name.length, NAME_LENGTH)));
  return data.names.length * (longest + 1) * CHARACTER > figure.width - BESIDE ? 30 : 0;
}

function bars(figure, data) {
  const category = axis("category", figure.x, {
    data: data.names, nameGap: turn(figure, data) ? 56 : 30,
    axisLabel: { ...FONT, interval: 0, hideOverlap: data.names.length > 16, rotate: turn(figure, data), formatter: (name) => short(name, NAME_LENGTH) },
  });
  return {
    ...frame(figure, data, category, upright(figure.y)),
    series: data.columns.flatMap((column, at) => [
      {
        type: "bar", name: key(at), ...BAR, data: column.cells.map((cell, row) => coloured(cell, data.columns.length === 1 && data.colours[row])),
        itemStyle: column.reference
          ? { color: CARD, borderColor: colourOf(column), borderWidth: 1.5, borderType: "dashed" }
          : { color: colourOf(column) },
        emphasis: { disabled: true },
      },
      whiskers(column, at, data.columns.length),
    ]),
  };
}

/** Lying bars: the rows' names are long. */
function stack(figure, data) {
  const category = axis("category", figure.x, { name: "", inverse: true, data: data.names, axisLabel: { ...FONT, interval: 0, formatter: (name) => short(name, figure.width < 400 ? NAME_LENGTH : LEGEND_LENGTH) } });
  return {
    ...frame(figure, data, axis("value", figure.y), category),
    series: data.columns.map((column, at) => ({
      type: "bar", stack: "all", name: key(at), barMaxWidth: 34, data: column.cells.map((cell) => cell.value),
      itemStyle: { color: colourOf(column), borderColor: CARD, borderWidth: 1 }, emphasis: { disabled: true },
    })),
  };
}

function line(column, at, more) {
  return {
    type: "line", name: key(at), symbol: SHAPES[at % SHAPES.length], symbolSize: 7, color: colourOf(column),
    lineStyle: { width: 2, color: colourOf(column), type: column.reference ? "dashed" : "solid" },
    itemStyle: { color: colourOf(column) }, emphasis: { disabled: true }, connectNulls: true, ...more,
  };
}

function curves(figure, data) {
  return {
    ...frame(figure, data, axis("category", figure.x, { data: data.names }), upright(figure.y)),
    series: data.columns.flatMap((column, at) => [
      line(column, at, { data: column.cells.map((cell) => cell.value) }),
      whiskers(column, at, 0),
    ]),
  };
}

function steps(figure, data) {
  const x = data.names.map((name) => Number(name.replaceAll(",", "")));
  return {
    ...frame(figure, data, axis("log", figure.x, { min: "dataMin", max: "dataMax", axisLabel: { ...FONT, hideOverlap: true, formatter: (value) => String(Number(value.toPrecision(2))) } }),
      upright(figure.y, { min: 0, max: 100 })),
    series: data.columns.map((column, at) =>
      line(column, at, { showSymbol: false, data: column.cells.map((cell, row) => [x[row], cell.value]) })),
  };
}

/** The whole powers of ten around the values of a logarithmic axis; of a single value ECharts makes ten. */
function decades(about) {
  const power = (value, round) => 10 ** round(Math.log10(value));
  return about.log ? { min: ({ min }) => power(min, Math.floor), max: ({ min, max }) => Math.max(power(max, Math.ceil), 10 * power(min, Math.floor)) } : {};
}

function points(figure, data) {
  const [x, y] = data.columns;
  const options = frame(figure, data, axis(figure.x.log ? "log" : "value", figure.x, decades(figure.x)), upright(figure.y, decades(figure.y)));
  options.tooltip.trigger = "item";
  options.tooltip.formatter = (point) => tip(figure, data, [point]);
  return {
    ...options,
    series: [{
      type: "scatter", name: key(1), symbolSize: 11, data: x.cells.map((cell, row) => [cell.value, y.cells[row].value]),
      itemStyle: { color: colourOf(y) }, emphasis: { disabled: true },
      label: { show: data.names.length <= 12, position: "top", ...FONT, formatter: (point) => short(data.names[point.dataIndex], NAME_LENGTH) },
      labelLayout: { hideOverlap: true },
    }],
  };
}

function time(figure, data) {
  return {
    ...frame(figure, data, axis("time", { label: "" }, { axisLabel: { ...FONT, hideOverlap: true } }), upright(figure.y)),
    useUTC: true,
    series: data.columns.map((column, at) =>
      line(column, at, {
        showSymbol: false, connectNulls: false, data: column.cells.map((cell, row) => [data.names[row], cell.value]),
        ...(figure.stacked ? { stack: "all", areaStyle: { color: colourOf(column), opacity: 0.35 } } : {}),
      })),
  };
}

export const draw = { bars, stack, curves, steps, points, time };
