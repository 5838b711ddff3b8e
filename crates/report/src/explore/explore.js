'use strict';
// Makes the figures of a page explorable: zoom, pan, values under the pointer, series on and off, time axes that
// move together, and events to jump to. Chart.js draws axes and lines; marks, shades, bars and the cursor are
// drawn here, because they are reduced to what a pixel can show without losing the largest and the least.
// Without this script, or if it fails, the page keeps its drawings.
(() => {
  const Chart = window.Chart;
  const main = document.querySelector('main');
  if (!Chart || !main) return;

  const PAN = 0.2; // of the visible range, for a key or a button
  const ZOOM = 1.6; // for a key, a button, or a notch of the wheel
  const NEAR = 24; // pixels within which a mark is under the pointer
  const LABELS = 30; // dots with labels; with more, labels appear under the pointer only

  // ---- numbers -------------------------------------------------------------------------------------------

  const decode = (numbers) => {
    const out = new Float64Array(numbers.d.length);
    const [up, down] = numbers.e >= 0 ? [10 ** numbers.e, 1] : [1, 10 ** -numbers.e];
    let sum = 0;
    numbers.d.forEach((d, i) => { sum += d; out[i] = (sum * up) / down; });
    return out;
  };

  // The first index whose value is at least `value`.
  const lower = (xs, value) => {
    let [from, to] = [0, xs.length];
    while (from < to) {
      const mid = (from + to) >> 1;
      if (xs[mid] < value) from = mid + 1; else to = mid;
    }
    return from;
  };

  const PREFIXES = [[1e9, 'G'], [1e6, 'M'], [1e3, 'k']];
  // At most five digits, with a prefix above ten thousand.
  const number = (value) => {
    const size = Math.abs(value);
    if (size >= 1e4) {
      const [scale, prefix] = PREFIXES.find(([s]) => size >= s) ?? [1, ''];
      return `${Number((value / scale).toPrecision(5))} ${prefix}`;
    }
    return String(Number(value.toPrecision(5)));
  };
  const seconds = (value) => {
    const size = Math.abs(value);
    if (size >= 1 || size === 0) return `${Number(value.toFixed(6))} s`;
    if (size >= 1e-3) return `${Number((value * 1e3).toPrecision(6))} ms`;
    return `${Number((value * 1e6).toPrecision(6))} \u00b5s`;
  };
  // A time that must not lose digits when one zooms in.
  const clock = (value, range) => {
    const digits = Math.min(9, Math.max(0, Math.ceil(-Math.log10(range || 1)) + 3));
    return `${value.toFixed(digits)} s`;
  };

  // ---- colours -------------------------------------------------------------------------------------------

  let colours = {};
  const readColours = () => {
    const style = getComputedStyle(document.documentElement);
    colours = {};
    for (const name of ['ink', 'soft', 'line', 'paper', 'grid']) {
      colours[name] = style.getPropertyValue(`--${name}`).trim();
    }
    for (const name of ['ink', 'grey', 'blue', 'sky', 'vermillion', 'orange', 'green', 'purple']) {
      colours[name] = style.getPropertyValue(`--c-${name}`).trim();
    }
  };
  const dashes = (series) => series.dash.split(' ').filter(Boolean).map(Number);

  // ---- series --------------------------------------------------------------------------------------------

  class Data {
    constructor(json) {
      this.x = decode(json.x);
      this.y = decode(json.y);
      for (const key of ['until', 'packets', 'low', 'high']) this[key] = json[key] ? decode(json[key]) : null;
      this.labels = json.labels ?? null;
    }
  }

  class Series {
    constructor(json) {
      Object.assign(this, { name: json.name, kind: json.kind, colour: json.colour, dash: json.dash, of: json.of });
      this.whole = new Data(json);
      this.detail = null; // from a server, for a part of the axis
      this.shown = true;
    }
    // The finest data there is for a range.
    data(from, to) {
      const d = this.detail;
      return d && d.from <= from && to <= d.to ? d.data : this.whole;
    }
    get isLine() { return this.kind === 'steps' || this.kind === 'line'; }

    // Points for a line across `width` pixels: all, or of each pixel the first, least, largest and last.
    points(from, to, width, floor) {
      const { x, y } = this.data(from, to);
      const begin = Math.max(0, lower(x, from) - 1);
      const stop = Math.min(x.length, lower(x, to) + 1);
      const out = [];
      const put = (i) => out.push({ x: x[i], y: Math.max(y[i], floor) });
      if (stop - begin <= 4 * width) {
        for (let i = begin; i < stop; i++) put(i);
      } else {
        const pixel = (to - from) / width;
        let i = begin;
        while (i < stop) {
          const column = Math.floor((x[i] - from) / pixel);
          let [least, largest, last] = [i, i, i];
          for (let j = i; j < stop && Math.floor((x[j] - from) / pixel) === column; j++) {
            if (y[j] < y[least]) least = j;
            if (y[j] > y[largest]) largest = j;
            last = j;
          }
          const kept = [...new Set([i, least, largest, last])].sort((a, b) => a - b);
          kept.forEach(put);
          i = last + 1;
        }
      }
      return out;
    }

    // Least and largest value between two positions; null if there are none.
    range(from, to) {
      const { x, y, until, low, high } = this.data(from, to);
      if (this.kind === 'shades' || this.kind === 'level') return null;
      let begin = lower(x, from);
      if (this.kind === 'steps' && begin > 0) begin -= 1;
      const stop = lower(x, to);
      let [least, largest] = [Infinity, -Infinity];
      for (let i = begin; i < stop; i++) {
        const other = until && this.kind !== 'bars' ? until[i] : y[i];
        least = Math.min(least, y[i], other, low ? low[i] : Infinity);
        largest = Math.max(largest, y[i], other, high ? high[i] : -Infinity);
      }
      return least <= largest ? [least, largest] : null;
    }
  }

  // ---- what is drawn beside lines ------------------------------------------------------------------------

  const shade = (ctx, panel, area, series) => {
    const { x, until } = series.data(...panel.figure.view);
    const [from, to] = panel.figure.view;
    ctx.globalAlpha = 0.25;
    for (let i = 0; i < x.length; i++) {
      if (until[i] < from || x[i] > to) continue;
      const left = Math.max(area.left, panel.px(x[i]));
      const right = Math.min(area.right, panel.px(until[i]));
      ctx.fillRect(left, area.top, Math.max(1.5, right - left), area.bottom - area.top);
    }
    ctx.globalAlpha = 1;
  };

  const mark = (ctx, panel, area, series) => {
    const { x, y, until } = series.data(...panel.figure.view);
    const [from, to] = panel.figure.view;
    const stop = lower(x, to + Number.EPSILON);
    const thick = stop - lower(x, from) > area.width ? 1.5 : 3;
    let column = null;
    let [top, bottom] = [0, 0];
    const flush = () => {
      if (column === null) return;
      const high = Math.max(bottom - top, 2.5);
      ctx.fillRect(column - thick / 2, (top + bottom - high) / 2, thick, high);
    };
    for (let i = lower(x, from); i < stop; i++) {
      const at = Math.round(panel.px(x[i]));
      const [a, b] = [panel.py(y[i]), panel.py(until ? until[i] : y[i])];
      const [up, down] = [Math.min(a, b), Math.max(a, b)];
      if (at === column && up <= bottom + 1 && down >= top - 1) {
        top = Math.min(top, up);
        bottom = Math.max(bottom, down);
      } else {
        flush();
        [column, top, bottom] = [at, up, down];
      }
    }
    flush();
  };

  // Of each column of pixels the highest.
  const stems = (ctx, panel, area, series) => {
    const { x, y } = series.data(...panel.figure.view);
    const [from, to] = panel.figure.view;
    let column = null;
    let top = 0;
    const flush = () => {
      if (column !== null) ctx.fillRect(column - 1, top, 2, area.bottom - top);
    };
    for (let i = lower(x, from); i < x.length && x[i] <= to; i++) {
      const [at, up] = [Math.round(panel.px(x[i])), panel.py(y[i])];
      if (at === column) {
        top = Math.min(top, up);
      } else {
        flush();
        [column, top] = [at, up];
      }
    }
    flush();
  };

  // One in each square of two pixels.
  const crosses = (ctx, panel, area, series) => {
    const { x, y, until } = series.data(...panel.figure.view);
    const [from, to] = panel.figure.view;
    const taken = new Set();
    ctx.strokeStyle = colours[series.colour];
    ctx.lineWidth = 1.8;
    ctx.beginPath();
    for (let i = lower(x, from); i < x.length && x[i] <= to; i++) {
      const [at, mid] = [panel.px(x[i]), (panel.py(y[i]) + panel.py(until[i])) / 2];
      const key = `${Math.round(at / 2)} ${Math.round(mid / 2)}`;
      if (taken.has(key)) continue;
      taken.add(key);
      ctx.moveTo(at - 3.5, mid - 3.5);
      ctx.lineTo(at + 3.5, mid + 3.5);
      ctx.moveTo(at - 3.5, mid + 3.5);
      ctx.lineTo(at + 3.5, mid - 3.5);
    }
    ctx.stroke();
  };

  const bars = (ctx, panel, area, series) => {
    const { x, y, until } = series.data(...panel.figure.view);
    for (let i = 0; i < x.length; i++) {
      const [left, right, top] = [panel.px(x[i]), panel.px(until[i]), panel.py(y[i])];
      if (right >= area.left && left <= area.right) {
        ctx.fillRect(left, top, Math.max(1.5, right - left - 0.5), area.bottom - top);
      }
    }
  };

  const dots = (ctx, panel, area, series) => {
    const { x, y, labels } = series.data(...panel.figure.view);
    ctx.font = '12px system-ui, sans-serif';
    const at = [...x].map((_, i) => [panel.px(x[i]), panel.py(y[i])]);
    for (const [px, py] of at) {
      ctx.beginPath();
      ctx.arc(px, py, 4, 0, 2 * Math.PI);
      ctx.fill();
    }
    if (!labels || x.length > LABELS) return;
    // Beside the point, else above or below it; a label without room shows under the pointer only.
    const taken = at.map(([px, py]) => [px - 4, py - 4, px + 4, py + 4]);
    ctx.fillStyle = colours.ink;
    ctx.textAlign = 'left';
    at.forEach(([px, py], i) => {
      const width = ctx.measureText(labels[i]).width;
      const places = [[px + 7, py - 6], [px - 7 - width, py - 6], [px - width / 2, py - 19], [px - width / 2, py + 7]];
      const box = places.map(([left, top]) => [left, top, left + width, top + 12]).find((b) => b[0] >= area.left
        && b[2] <= area.right && b[1] >= area.top && b[3] <= area.bottom
        && !taken.some((t) => t[0] < b[2] && b[0] < t[2] && t[1] < b[3] && b[1] < t[3]));
      if (!box) return;
      taken.push(box);
      ctx.fillText(labels[i], box[0], box[1] + 10);
    });
  };

  const whiskers = (ctx, panel, series) => {
    const { x, low, high } = series.data(...panel.figure.view);
    if (!low) return;
    ctx.strokeStyle = colours[series.colour];
    ctx.lineWidth = 1.3;
    for (let i = 0; i < x.length; i++) {
      const [at, top, bottom] = [panel.px(x[i]), panel.py(high[i]), panel.py(low[i])];
      ctx.beginPath();
      ctx.moveTo(at, top);
      ctx.lineTo(at, bottom);
      for (const end of [top, bottom]) {
        ctx.moveTo(at - 4, end);
        ctx.lineTo(at + 4, end);
      }
      ctx.stroke();
    }
  };

  const plugin = (panel) => ({
    id: 'farpace',
    beforeDatasetsDraw(chart) {
      if (!panel.chart) return;
      const { ctx, chartArea: area } = chart;
      ctx.save();
      ctx.beginPath();
      ctx.rect(area.left, area.top - 1, area.width, area.height + 2);
      ctx.clip();
      const draw = { shades: shade, marks: mark, stems, crosses, bars, dots };
      for (const series of panel.series.filter((s) => s.shown && draw[s.kind])) {
        ctx.fillStyle = colours[series.colour];
        draw[series.kind](ctx, panel, area, series);
      }
      for (const series of panel.series.filter((s) => s.shown && s.kind === 'level')) {
        const y = panel.py(series.whole.y[0]);
        ctx.strokeStyle = colours[series.colour];
        ctx.lineWidth = 1.4;
        ctx.setLineDash(dashes(series));
        ctx.beginPath();
        ctx.moveTo(area.left, y);
        ctx.lineTo(area.right, y);
        ctx.stroke();
        ctx.setLineDash([]);
      }
      ctx.restore();
    },
    afterDatasetsDraw(chart) {
      if (!panel.chart) return;
      const { ctx, chartArea: area } = chart;
      ctx.save();
      panel.series.filter((s) => s.shown).forEach((s) => whiskers(ctx, panel, s));
      const at = panel.figure.cursor;
      if (at !== null && at >= panel.figure.view[0] && at <= panel.figure.view[1]) {
        ctx.strokeStyle = colours.ink;
        ctx.lineWidth = 1;
        ctx.setLineDash([3, 3]);
        ctx.beginPath();
        ctx.moveTo(panel.px(at), area.top);
        ctx.lineTo(panel.px(at), area.bottom);
        ctx.stroke();
        ctx.setLineDash([]);
      }
      const drag = panel.drag;
      if (drag && drag.mode === 'select') {
        ctx.fillStyle = colours.ink;
        ctx.globalAlpha = 0.12;
        ctx.fillRect(Math.min(drag.from, drag.to), area.top, Math.abs(drag.to - drag.from), area.height);
      }
      ctx.restore();
    },
  });

  // ---- figures -------------------------------------------------------------------------------------------

  const element = (name, attributes = {}, ...children) => {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  };

  class Panel {
    constructor(figure, json) {
      Object.assign(this, { figure, label: json.label, heading: json.heading });
      this.home = [json.from, json.to];
      this.log = json.log;
      this.fit = json.fit;
      this.series = json.series.map((s) => new Series(s));
      this.drag = null;
      this.pointers = new Map();
      this.chart = null;
    }

    build() {
      const name = [this.figure.title, this.heading, this.label].filter(Boolean).join(': ');
      this.canvas = element('canvas', {
        tabindex: '0',
        role: 'application',
        'aria-label': `${name}. Arrow keys move, plus and minus zoom, 0 shows all, n and p go to events.`,
      });
      this.tip = element('div', { class: 'tip', hidden: '' });
      const words = [this.heading && element('b', {}, this.heading), this.label].filter(Boolean);
      if (words.length === 2) words.splice(1, 0, ' \u00b7 ');
      return element('div', { class: 'panel' }, element('div', { class: 'axis' }, ...words),
        element('div', { class: 'canvas' }, this.canvas, this.tip));
    }

    px(x) { return this.chart.scales.x.getPixelForValue(x); }
    py(y) {
      const scale = this.chart.scales.y;
      return scale.getPixelForValue(Math.max(y, this.log ? scale.min : -Infinity));
    }

    // Chart.js is asked only once the figure comes into view.
    create() {
      const figure = this.figure;
      const ticks = { color: colours.soft, font: { size: 12 }, maxRotation: 0, autoSkipPadding: 14, includeBounds: false };
      const grid = { color: colours.grid, tickColor: colours.line };
      const x = figure.cases
        ? { ...ticks, callback: (v) => figure.cases[v] ?? '' }
        : { ...ticks, callback: (v) => number(Number(v.toPrecision(12))).trim() };
      const few = (v) => ['1', '2', '5'].includes(v.toExponential(0)[0]) && v.toPrecision(1) == v;
      this.chart = new Chart(this.canvas, {
        type: 'line',
        data: { datasets: [] },
        plugins: [plugin(this)],
        options: {
          animation: false, parsing: false, normalized: true, responsive: true, maintainAspectRatio: false,
          events: [],
          layout: { padding: { right: 14, top: 6 } },
          plugins: { legend: { display: false }, tooltip: { enabled: false } },
          elements: { point: { radius: 0 } },
          scales: {
            x: {
              type: figure.log ? 'logarithmic' : 'linear',
              grid,
              ticks: x,
              border: { color: colours.soft },
              // A tick for each case, not for round numbers.
              afterBuildTicks: (scale) => {
                if (!figure.cases) return;
                scale.ticks = figure.cases.map((_, value) => ({ value }))
                  .filter(({ value }) => value >= scale.min && value <= scale.max);
              },
            },
            y: {
              type: this.log ? 'logarithmic' : 'linear',
              grid,
              border: { color: colours.soft },
              ticks: { ...ticks, callback: (v) => (this.log && !few(v) ? '' : number(v).trim()) },
              afterFit: (scale) => { scale.width = 58; },
            },
          },
        },
      });
    }

    recolour() {
      if (!this.chart) return;
      for (const scale of Object.values(this.chart.options.scales)) {
        scale.ticks.color = colours.soft;
        scale.grid.color = colours.grid;
        scale.border.color = colours.soft;
      }
    }

    yRange() {
      if (!this.fit) return this.home;
      const [from, to] = this.figure.view;
      const ranges = this.series.filter((s) => s.shown).map((s) => s.range(from, to)).filter(Boolean);
      if (ranges.length === 0) return this.home;
      const least = Math.min(...ranges.map((r) => r[0]));
      const largest = Math.max(...ranges.map((r) => r[1]));
      const room = (largest - least || Math.abs(largest) || 1) * 0.04;
      if (this.log) return [Math.max(least / 1.2, this.home[0]), largest * 1.2];
      return [least >= 0 && this.home[0] === 0 ? Math.max(0, least - room) : least - room, largest + room];
    }

    update() {
      if (!this.chart) this.create();
      const { chart, figure } = this;
      const [from, to] = figure.view;
      const width = Math.max(100, Math.round(chart.chartArea?.width || this.canvas.clientWidth || 800));
      const [low, high] = this.yRange();
      const floor = this.log ? low : -Infinity;
      Object.assign(chart.options.scales.x, { min: from, max: to });
      Object.assign(chart.options.scales.y, { min: low, max: high });
      const lines = this.series.filter((s) => s.isLine);
      chart.data.datasets = lines.map((s) => ({
        data: s.shown ? s.points(from, to, width, floor) : [],
        hidden: !s.shown,
        borderColor: colours[s.colour],
        backgroundColor: colours[s.colour],
        borderDash: dashes(s),
        borderWidth: 1.6,
        stepped: s.kind === 'steps',
        pointRadius: s.kind === 'line' && s.whole.x.length <= 60 ? 3 : 0,
      }));
      chart.update('none');
      // For tests: what the axis says, and how much is drawn.
      this.canvas.dataset.ticks = chart.scales.x.ticks.map((tick) => tick.label).join('|');
      this.canvas.dataset.points = chart.data.datasets.reduce((sum, d) => sum + d.data.length, 0);
    }

    // What is at `x`: of each series that is shown the value, and the packet if it is near `py`.
    read(x, py) {
      const rows = [];
      for (const s of this.series.filter((one) => one.shown)) {
        const data = s.data(...this.figure.view);
        const i = this.find(s, data, x, py);
        if (i < 0) continue;
        rows.push({ series: s, at: data.x[i], text: this.words(s, data, i) });
      }
      return rows;
    }

    find(s, data, x, py) {
      const n = data.x.length;
      if (n === 0 || s.kind === 'level') return n - 1;
      if (s.kind === 'shades' || s.kind === 'bars') {
        return data.x.findIndex((from, i) => from <= x && x <= data.until[i]);
      }
      const after = lower(data.x, x);
      if (s.kind === 'steps') return data.x[after] === x ? after : after - 1;
      let [best, distance] = [-1, NEAR];
      const range = (this.figure.view[1] - this.figure.view[0]) / (this.chart.chartArea.width || 1);
      const free = s.kind === 'line' && py === null;
      const reach = s.kind === 'line' || s.kind === 'dots' ? Infinity : NEAR * range;
      for (let i = lower(data.x, x - reach); i < n && data.x[i] <= x + reach; i++) {
        const dx = this.px(data.x[i]) - this.px(x);
        if (Math.abs(dx) > NEAR && s.kind !== 'line') continue;
        const [a, b] = [this.py(data.y[i]), this.py(data.until ? data.until[i] : data.y[i])];
        const dy = py === null || s.kind === 'line' || s.kind === 'stems' ? 0 : Math.max(0, Math.min(a, b) - py, py - Math.max(a, b));
        const d = Math.hypot(dx, dy);
        if (d < distance || (free && best < 0)) [best, distance] = [i, d];
      }
      return best;
    }

    words(s, data, i) {
      const parts = [];
      if (data.labels && data.labels[i]) parts.push(data.labels[i]);
      if (s.kind === 'marks' || s.kind === 'crosses') {
        parts.push(data.until && data.until[i] !== data.y[i]
          ? `${number(data.y[i])}\u2013${number(data.until[i])}` : number(data.y[i]));
      } else if (s.kind === 'shades') {
        parts.push(`for ${seconds(data.until[i] - data.x[i])}`);
      } else if (s.kind === 'bars') {
        parts.push(`${number(data.y[i])} from ${number(data.x[i])} to ${number(data.until[i])}`);
      } else if (s.kind === 'dots') {
        parts.push(`${number(data.x[i])}, ${number(data.y[i])}`);
      } else {
        parts.push(number(data.y[i]));
      }
      if (data.low) parts.push(`(${number(data.low[i])} to ${number(data.high[i])})`);
      if (data.packets && data.packets[i] > 0) parts.push(`packet ${data.packets[i]}`);
      return parts.join(' ');
    }

    showTip(x, py, left) {
      const figure = this.figure;
      const head = figure.cases ? figure.cases[Math.round(x)] ?? ''
        : figure.time ? clock(x, figure.view[1] - figure.view[0]) : number(x);
      const rows = this.read(figure.cases ? Math.round(x) : x, py).map(({ series, text }) => element('div', {},
        swatch(series), `${series.name}: ${text}`));
      this.tip.replaceChildren(element('b', {}, head), ...rows);
      this.tip.hidden = false;
      const room = this.canvas.clientWidth;
      const width = Math.min(this.tip.offsetWidth, room);
      this.tip.style.left = `${Math.max(0, Math.min(room - width, left + 14 + width > room ? left - width - 14 : left + 14))}px`;
    }
  }

  const swatch = (series) => {
    const shape = series.isLine || series.kind === 'level' ? 'stroke' : series.kind === 'crosses' ? 'cross' : '';
    const node = element('span', { class: `swatch ${shape}` });
    node.style.setProperty('--swatch', `var(--c-${series.colour})`);
    if (series.dash) node.classList.add(dashes(series)[0] > 2 ? 'dashed' : 'dotted');
    return node;
  };

  class Figure {
    constructor(node, json) {
      this.node = node;
      this.title = json.title;
      this.label = json.label;
      this.time = json.x.time ?? false;
      this.log = json.x.log ?? false;
      this.cases = json.x.cases ?? null;
      this.home = [json.x.from, json.x.to];
      this.view = [...this.home];
      this.clock = Number(node.dataset.clock);
      this.cursor = null;
      this.remote = json.remote ?? null;
      this.panels = json.panels.map((p) => new Panel(this, p));
      this.events = json.events;
      this.dirty = true;
      this.inView = false;
    }

    build() {
      const legend = element('div', { class: 'legend', role: 'group', 'aria-label': 'Series' });
      // The same thing in several panels has one button.
      const names = new Map();
      for (const s of this.panels.flatMap((p) => p.series)) {
        const key = `${s.name} ${s.colour} ${s.dash} ${s.kind}`;
        if (names.has(key)) names.get(key).push(s); else names.set(key, [s]);
      }
      for (const same of names.values()) {
        if (same[0].whole.x.length === 0) continue;
        const button = element('button', { type: 'button', 'aria-pressed': 'true' }, swatch(same[0]), same[0].name);
        button.addEventListener('click', () => {
          const shown = !same[0].shown;
          same.forEach((s) => { s.shown = shown; });
          button.setAttribute('aria-pressed', String(shown));
          this.touch();
        });
        legend.append(button);
      }
      const box = element('div', { class: 'explore' }, element('div', { class: 'title' }, this.title), legend,
        ...this.panels.map((p) => p.build()), element('div', { class: 'xlabel' }, this.label));
      this.node.querySelector('figcaption').before(box);
      this.node.classList.add('live');
      this.panels.forEach((p) => listen(p));
      seen.observe(this.node);
      this.publish();
    }

    // For tests and for links: what is visible.
    publish() {
      [this.node.dataset.from, this.node.dataset.to] = this.view;
    }

    touch() {
      this.dirty = true;
      // What is on the canvas is no longer what should be.
      for (const p of this.panels) if (p.canvas) delete p.canvas.dataset.points;
      schedule();
    }

    update() {
      if (!this.dirty || !this.inView) return;
      this.dirty = false;
      this.panels.forEach((p) => p.update());
      this.publish();
    }

    set([from, to]) {
      const all = peers(this);
      const [low, high] = [Math.min(...all.map((f) => f.home[0])), Math.max(...all.map((f) => f.home[1]))];
      const least = this.log ? 0 : Math.max((high - low) * 1e-9, 1e-9);
      let length = Math.max(to - from, least);
      if (this.log) {
        if (!(from > 0) || to / from < 1.01) return;
        from = Math.max(from, low);
        to = Math.min(to, high);
      } else {
        length = Math.min(length, high - low);
        from = Math.min(Math.max(from, low), high - length);
        to = from + length;
      }
      for (const f of all) {
        f.view = [from, to];
        f.publish();
        f.touch();
        f.fetch();
      }
    }

    zoom(factor, at) {
      const [from, to] = this.view;
      if (this.log) {
        const middle = at ?? Math.sqrt(from * to);
        this.set([middle * (from / middle) ** factor, middle * (to / middle) ** factor]);
        return;
      }
      const middle = at ?? (from + to) / 2;
      this.set([middle - (middle - from) * factor, middle + (to - middle) * factor]);
    }

    pan(share) {
      const [from, to] = this.view;
      if (this.log) {
        const factor = (to / from) ** share;
        if (from * factor >= this.home[0] && to * factor <= this.home[1]) this.set([from * factor, to * factor]);
        return;
      }
      this.set([from + (to - from) * share, to + (to - from) * share]);
    }

    reset() {
      for (const f of peers(this)) {
        f.view = [...f.home];
        f.publish();
        f.touch();
      }
    }

    // Finer data of the visible part, from the server that this page came from.
    fetch() {
      if (!this.remote) return;
      clearTimeout(this.timer);
      this.timer = setTimeout(async () => {
        const [from, to] = this.view;
        const room = (to - from) / 2;
        const range = [from - room, to + room];
        const answer = await fetch(`${this.remote}from=${range[0]}&to=${range[1]}`);
        if (!answer.ok) return;
        const panels = await answer.json();
        panels.forEach((list, p) => list.forEach((json, s) => {
          this.panels[p].series[s].detail = { from: range[0], to: range[1], data: new Data(json) };
        }));
        this.touch();
        this.node.dataset.fetched = String(Number(this.node.dataset.fetched ?? 0) + 1);
      }, 120);
    }
  }

  // ---- pointer and keys ----------------------------------------------------------------------------------

  const at = (panel, event) => {
    const box = panel.canvas.getBoundingClientRect();
    const left = event.clientX - box.left;
    return { left, top: event.clientY - box.top, x: panel.chart ? panel.chart.scales.x.getValueForPixel(left) : 0 };
  };

  const point = (panel, x) => {
    for (const f of peers(panel.figure)) {
      f.cursor = x;
      f.panels.forEach((p) => { if (p.chart && f.inView) p.chart.draw(); });
    }
  };

  const leave = (panel) => {
    panel.tip.hidden = true;
    point(panel, null);
  };

  const hover = (panel, event) => {
    const { left, top, x } = at(panel, event);
    const [from, to] = panel.figure.view;
    if (!panel.chart || x < from || x > to) { leave(panel); return; }
    point(panel, x);
    panel.showTip(x, top, left);
  };

  const pinch = (panel) => {
    const [a, b] = [...panel.pointers.values()];
    return { middle: (a.left + b.left) / 2, distance: Math.max(10, Math.abs(a.left - b.left)) };
  };

  const listen = (panel) => {
    const { canvas, figure } = panel;
    canvas.addEventListener('pointerdown', (event) => {
      if (event.button !== 0 || !panel.chart) return;
      current = figure;
      const spot = at(panel, event);
      panel.pointers.set(event.pointerId, spot);
      canvas.setPointerCapture(event.pointerId);
      if (panel.pointers.size === 2) {
        panel.drag = { mode: 'pinch', ...pinch(panel), view: [...figure.view] };
      } else {
        const mode = event.shiftKey || event.pointerType === 'touch' ? 'pan' : 'select';
        panel.drag = { mode, from: spot.left, to: spot.left, view: [...figure.view] };
      }
    });
    canvas.addEventListener('pointermove', (event) => {
      const { drag } = panel;
      if (!drag) { hover(panel, event); return; }
      const spot = at(panel, event);
      panel.pointers.set(event.pointerId, spot);
      const width = panel.chart.chartArea.width || 1;
      const length = drag.view[1] - drag.view[0];
      if (drag.mode === 'pinch' && panel.pointers.size === 2) {
        const now = pinch(panel);
        const factor = drag.distance / now.distance;
        const middle = drag.view[0] + ((drag.middle - panel.chart.chartArea.left) / width) * length;
        figure.set([middle - (middle - drag.view[0]) * factor, middle + (drag.view[1] - middle) * factor]);
      } else if (drag.mode === 'pan') {
        drag.to = spot.left;
        const by = ((drag.from - spot.left) / width) * length;
        if (!figure.log) figure.set([drag.view[0] + by, drag.view[1] + by]);
      } else {
        drag.to = spot.left;
        panel.tip.hidden = true;
        panel.chart.draw();
      }
    });
    const up = (event) => {
      const { drag } = panel;
      panel.pointers.delete(event.pointerId);
      if (panel.pointers.size > 0) return;
      panel.drag = null;
      if (!drag || !panel.chart) return;
      const moved = Math.abs(drag.to - drag.from);
      if (drag.mode === 'select' && moved > 5) {
        const scale = panel.chart.scales.x;
        const ends = [drag.from, drag.to].map((p) => scale.getValueForPixel(p)).sort((a, b) => a - b);
        figure.set(ends);
      } else if (moved <= 5) {
        hover(panel, event);
      }
      panel.chart.draw();
    };
    canvas.addEventListener('pointerup', up);
    canvas.addEventListener('pointercancel', (event) => {
      panel.pointers.delete(event.pointerId);
      panel.drag = null;
    });
    canvas.addEventListener('pointerleave', (event) => { if (!panel.drag && event.pointerType !== 'touch') leave(panel); });
    canvas.addEventListener('dblclick', () => figure.reset());
    canvas.addEventListener('focus', () => { current = figure; });
    canvas.addEventListener('blur', () => leave(panel));
    // The wheel scrolls the page until the figure has been chosen by a click or a key.
    canvas.addEventListener('wheel', (event) => {
      if (!event.ctrlKey && !event.metaKey && document.activeElement !== canvas) return;
      event.preventDefault();
      figure.zoom(event.deltaY < 0 ? 1 / ZOOM : ZOOM, at(panel, event).x);
    }, { passive: false });
    canvas.addEventListener('keydown', (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const act = keys[event.key];
      if (!act) return;
      event.preventDefault();
      act(figure, panel, event);
    });
  };

  const step = (figure, panel, sign) => {
    const [from, to] = figure.view;
    const x = Math.min(to, Math.max(from, (figure.cursor ?? (from + to) / 2) + (sign * (to - from)) / 100));
    point(panel, x);
    panel.showTip(x, null, panel.px(x));
  };
  // Where the cursor is, if it is visible.
  const place = (f) => (f.cursor !== null && f.view[0] <= f.cursor && f.cursor <= f.view[1] ? f.cursor : undefined);
  const keys = {
    ArrowLeft: (f, p, e) => (e.shiftKey ? step(f, p, -1) : f.pan(-PAN)),
    ArrowRight: (f, p, e) => (e.shiftKey ? step(f, p, 1) : f.pan(PAN)),
    '+': (f) => f.zoom(1 / ZOOM, place(f)),
    '=': (f) => f.zoom(1 / ZOOM, place(f)),
    '-': (f) => f.zoom(ZOOM, place(f)),
    0: (f) => f.reset(),
    Home: (f) => f.reset(),
    n: () => next(1),
    p: () => next(-1),
    l: () => firstLoss(),
    s: () => longestStall(),
    Escape: (f, p) => leave(p),
  };

  // ---- events --------------------------------------------------------------------------------------------

  let events = [];
  let present = -1;

  // Shows an event: all time axes, or those of the figure that has it, in the figure that is finest there.
  const go = (event, hint) => {
    const clockOf = (hint ?? event.owner)?.clock;
    const covering = figures.filter((f) => f.time && (clockOf === undefined || f.clock === clockOf)
      && f.home[0] <= event.from && event.from <= f.home[1]);
    if (covering.length === 0) return;
    const finest = covering.reduce((a, b) => (b.home[1] - b.home[0] < a.home[1] - a.home[0] ? b : a));
    const wanted = hint ?? event.owner;
    const target = covering.includes(wanted) ? wanted : finest;
    const length = event.to - event.from;
    const around = Math.max(length * 2, event.around || (finest.home[1] - finest.home[0]) / 8);
    const middle = (event.from + event.to) / 2;
    target.set([middle - around / 2, middle + around / 2]);
    for (const f of peers(target)) f.cursor = event.from;
    current = target;
    target.node.scrollIntoView({ block: 'center', behavior: 'auto' });
    target.panels[0].canvas.focus({ preventScroll: true });
    const index = events.indexOf(event);
    present = index >= 0 ? index : present;
    const which = index >= 0 ? `Event ${index + 1} of ${events.length}, ` : '';
    status.textContent = `${which}${clock(event.from, 1)}: ${event.text}`;
  };
  const next = (sign) => {
    if (events.length === 0) return;
    present = (present + sign + events.length) % events.length;
    go(events[present]);
  };
  const firstLoss = () => {
    const loss = events.find((e) => e.kind === 'loss') ?? events.find((e) => e.kind === 'timeout');
    if (loss) go(loss);
  };
  const longestStall = () => {
    const stalls = events.filter((e) => e.kind === 'stall');
    if (stalls.length > 0) go(stalls.reduce((a, b) => (b.to - b.from > a.to - a.from ? b : a)));
  };

  // ---- the page ------------------------------------------------------------------------------------------

  let current = null;
  let waiting = false;
  let link = true;
  // The figures that move with one: those of the same clock.
  const peers = (figure) => (figure.time && link
    ? figures.filter((f) => f.time && f.clock === figure.clock) : [figure]);
  const schedule = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      figures.forEach((f) => f.update());
    });
  };
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const figure = figures.find((f) => f.node === entry.target);
      if (figure) figure.inView = entry.isIntersecting;
    }
    schedule();
  }, { rootMargin: '300px' });

  const figures = [...document.querySelectorAll('figure')].flatMap((node) => {
    const data = node.querySelector('script[type="application/json"]');
    return data ? [new Figure(node, JSON.parse(data.textContent))] : [];
  });
  if (figures.length === 0) return;
  const timed = figures.filter((f) => f.time);
  // The same event may be in several figures: it belongs to the finest.
  const keyOf = (e) => `${e.owner.clock} ${e.kind} ${e.from.toFixed(6)} ${e.to.toFixed(6)}`;
  const owned = [...timed].sort((a, b) => (b.home[1] - b.home[0]) - (a.home[1] - a.home[0]))
    .flatMap((owner) => owner.events.map((e) => ({ ...e, owner })));
  events = [...new Map(owned.map((e) => [keyOf(e), e])).values()]
    .sort((a, b) => a.owner.clock - b.owner.clock || a.from - b.from || a.to - b.to);
  current = figures[0];
  readColours();

  const status = element('span', { class: 'status', role: 'status' });
  const button = (text, name, act) => {
    const node = element('button', { type: 'button', title: name }, text);
    if (text.length < 3) node.setAttribute('aria-label', name);
    node.addEventListener('click', act);
    return node;
  };
  const tools = element('div', { class: 'tools', role: 'toolbar', 'aria-label': 'Figures' });
  if (events.some((e) => e.kind === 'loss' || e.kind === 'timeout')) {
    tools.append(button('First loss', 'Go to the first loss (l)', firstLoss));
  }
  if (events.some((e) => e.kind === 'stall')) {
    tools.append(button('Longest stall', 'Go to the longest stall (s)', longestStall));
  }
  if (events.length > 0) {
    tools.append(button('\u2039', 'Previous event (p)', () => next(-1)),
      button('Next event', 'Go to the next event (n)', () => next(1)));
  }
  tools.append(button('\u2212', 'Zoom out (-)', () => current.zoom(ZOOM, place(current))),
    button('+', 'Zoom in (+)', () => current.zoom(1 / ZOOM, place(current))),
    button('\u25c2', 'Move left', () => current.pan(-PAN)), button('\u25b8', 'Move right', () => current.pan(PAN)),
    button('Whole', 'Show all (0)', () => current.reset()));
  if (timed.some((f) => timed.some((g) => f !== g && f.clock === g.clock))) {
    const box = element('input', { type: 'checkbox' });
    box.checked = true;
    box.addEventListener('change', () => { link = box.checked; });
    tools.append(element('label', {}, box, ' Link time axes'));
  }
  tools.append(status);
  main.append(tools);

  figures.forEach((f) => f.build());
  schedule();

  // Places of events in the text.
  document.addEventListener('click', (event) => {
    const place = event.target.closest('a[data-at]');
    if (!place) return;
    const [from, to] = [Number(place.dataset.at), Number(place.dataset.to)];
    const figure = figures.find((f) => `#${f.node.id}` === place.getAttribute('href'));
    event.preventDefault();
    const known = events.find((e) => (!figure || e.owner.clock === figure.clock) && Math.abs(e.from - from) < 1e-6 && Math.abs(e.to - to) < 1e-6);
    go(known ?? { kind: 'other', from, to, around: Number(place.dataset.around), text: place.textContent }, figure);
  });

  const dark = matchMedia('(prefers-color-scheme: dark)');
  dark.addEventListener('change', () => {
    readColours();
    figures.forEach((f) => { f.panels.forEach((p) => p.recolour()); f.touch(); });
  });
})();
