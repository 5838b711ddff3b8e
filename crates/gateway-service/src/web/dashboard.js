"use strict";
// The gateway's status, once a second, as server-sent events. Nothing that comes from outside becomes markup.

const HISTORY = 120;
const ROWS = 25;
const byId = (id) => document.getElementById(id);
const history = new Map();
let last = null;

function scaled(value, unit, step = 1000) {
  const prefixes = ["", "k", "M", "G", "T"];
  let at = 0;
  while (value >= step && at < prefixes.length - 1) { value /= step; at += 1; }
  return `${at === 0 ? Math.round(value) : value.toPrecision(3)} ${prefixes[at]}${unit}`;
}
const rate = (bits) => (bits === null || bits === undefined ? "-" : scaled(bits, "bit/s"));
const bytes = (count) => scaled(count ?? 0, "B");
const ms = (value) => (value === null || value === undefined ? "-" : `${value.toFixed(1)} ms`);
const share = (value) => (value === null || value === undefined ? "-" : `${(value * 100).toFixed(2)} %`);
const words = (text) => (text ?? "-").replaceAll("_", " ");

function fill(table, rows) {
  const heads = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
  const body = document.createElement("tbody");
  for (const cells of rows) {
    const row = body.insertRow();
    cells.forEach((content, at) => {
      const cell = row.insertCell();
      cell.dataset.label = heads[at];
      if (content instanceof Node) cell.append(content);
      else if (Array.isArray(content)) { cell.textContent = content[0]; cell.className = content[1]; }
      else cell.textContent = content;
    });
  }
  table.replaceChild(body, table.tBodies[0]);
}

function sparkline(values, title) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  const most = Math.max(1, ...values);
  svg.setAttribute("viewBox", `0 0 ${HISTORY} 20`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `${title}: at most ${rate(most)}`);
  const line = document.createElementNS(space, "polyline");
  const from = HISTORY - values.length;
  line.setAttribute("points", values.map((value, at) => `${from + at},${(19 - (18 * value) / most).toFixed(1)}`).join(" "));
  svg.append(line);
  return svg;
}

// Counters of each link: a pair has paths, a gateway alone has devices.
function linksOf(status) {
  if (status.peer) {
    return status.peer.paths.map((path, at) => ({
      name: `${at + 1}: ${path.via}`, up: path.up, state: path.up ? "up" : path.proven ? "down" : "not heard yet",
      out: path.sent_bytes, in: path.received_bytes, rate: path.rate_bit_s, rtt: path.rtt_ms, loss: path.loss, mtu: path.mtu_bytes,
    }));
  }
  const totals = status.totals;
  return [{
    name: status.wan.join(", "), up: true, state: "up", out: totals.wan_sent_bytes, in: totals.payload_bytes.to_lan,
    rate: null, rtt: null, loss: totals.wan_retransmitted_bytes / Math.max(1, totals.wan_sent_bytes), mtu: status.mtu_bytes.wan,
  }];
}

function show(status) {
  const seconds = last ? Math.max(0.2, status.uptime_s - last.uptime_s) : null;
  const before = last ? linksOf(last) : [];
  const rows = linksOf(status).map((link, at) => {
    const perSecond = (key) =>
      seconds && before[at] ? Math.max(0, ((link[key] - before[at][key]) * 8) / seconds) : null;
    const [out, into] = [perSecond("out"), perSecond("in")];
    const past = history.get(link.name) ?? [];
    if (out !== null) past.push(out + into);
    history.set(link.name, past.slice(-HISTORY));
    return [link.name, [link.state, link.up ? "good" : "bad"], rate(out), rate(into), rate(link.rate), ms(link.rtt),
      share(link.loss), `${link.mtu ?? "-"} B`, sparkline(history.get(link.name), `Both directions of ${link.name}`)];
  });
  fill(byId("links"), rows);
  const totals = status.totals;
  const passed = Object.values(totals.passed).reduce((sum, count) => sum + count, 0);
  const facts = [
    ["Split now", totals.connections], ["Split", totals.split], ["Passed", passed], ["Failed", totals.failed],
    ["To the WAN", bytes(totals.payload_bytes.to_wan)], ["To the LAN", bytes(totals.payload_bytes.to_lan)],
    ["Memory", `${bytes(totals.memory_bytes)} of ${bytes(totals.memory_limit_bytes)}`],
  ];
  if (status.peer) {
    facts.push(["Ahead of TCP", status.peer.priority.sent], ["Repaired frames", status.peer.repaired_frames],
      ["Failures of paths", status.peer.path_failures]);
  }
  byId("totals").replaceChildren(...facts.map(([name, value]) => {
    const group = document.createElement("div");
    const term = document.createElement("dt");
    const fact = document.createElement("dd");
    term.textContent = name;
    fact.textContent = value;
    group.append(term, fact);
    return group;
  }));
  const compared = status.control_group > 0;
  byId("gain-section").hidden = !compared;
  if (compared) {
    byId("gain-state").textContent = `${(status.control_group * 100).toPrecision(2)} % of the connections pass unsplit, `
      + `${totals.passed.control_group} so far. Median rates, number of connections, and the ratio with its interval.`;
    const group = (of) => `${rate(of.median_bit_s)} (${of.connections})`;
    fill(byId("gain"), status.gain.map((row) => [
      row.direction === "to_wan" ? "to the WAN" : "to the LAN", row.size, group(row.split), group(row.unsplit),
      row.gain === null ? "too few" : [
        `${row.gain.toFixed(2)} (${row.gain_interval.map((bound) => bound.toFixed(2)).join(" to ")})`,
        row.gain_interval[0] > 1 ? "good" : row.gain_interval[1] < 1 ? "bad" : ""],
    ]));
  }
  const moves = (flow) => flow.rate_bit_s.up + flow.rate_bit_s.down;
  const again = (flow) => (flow.wan_leg ? flow.wan_leg.retransmitted_bytes / Math.max(1, flow.wan_leg.sent_bytes) : 0);
  const flows = [...status.connections].sort((a, b) => moves(b) - moves(a));
  const suffering = flows.filter((flow) => again(flow) > 0.01 || (flow.wan_leg && flow.wan_leg.timeouts > 0));
  byId("suffering").textContent = suffering.length === 0 ? "None loses more than 1 %."
    : `${suffering.length} lose more than 1 %, or have timed out.`;
  fill(byId("connections"), flows.slice(0, ROWS).map((flow) => [
    flow.lan, flow.wan, rate(flow.rate_bit_s.up), rate(flow.rate_bit_s.down), ms(flow.wan_leg?.srtt_ms),
    [share(again(flow)), again(flow) > 0.01 ? "bad" : ""],
    bytes(flow.undelivered_bytes.up + flow.undelivered_bytes.down),
    words(flow.wan_leg?.limited_by), words(flow.lan_leg?.limited_by),
  ]));
  const far = status.peer ? `${status.peer.site} to ${status.peer.name}` : `${status.lan.join(", ")} to ${status.wan.join(", ")}`;
  const open = status.peer && !status.peer.caught ? "; the peer does not answer" : "";
  byId("state").textContent = `${far}, up for ${Math.round(status.uptime_s)} s${open}`;
  last = status;
}

async function listen() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  for (;;) {
    try {
      const answer = await fetch("events", { headers, cache: "no-store" });
      if (answer.status === 401) {
        byId("state").textContent = "The token is missing or wrong: the gateway has said at its start where it is.";
        return;
      }
      if (!answer.ok) throw new Error(`${answer.status}`);
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        const events = (text + value).split("\n\n");
        text = events.pop();
        for (const event of events) {
          if (event.startsWith("data: ")) show(JSON.parse(event.slice(6)));
        }
      }
    } catch (error) {
      byId("state").textContent = "The gateway does not answer.";
    }
    last = null;
    await new Promise((resolve) => setTimeout(resolve, 2000));
  }
}
listen();
