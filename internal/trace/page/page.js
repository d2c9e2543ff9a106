"use strict";
// The page of a trace. Texts of the trace become text nodes or go to the canvas, never markup.

const $ = id => document.getElementById(id);
const OP = 1, WAIT = 2, STALL = 3;
const GUTTER = 190, RULER = 24, TRACK = 20, SPACE = 8, HEAD = 26, STRIP = 7; // in pixels
let CURVE;                         // height of the curves, one for each side
let H;                             // the header of the data
let B, D, Q, BY, IDLE, KIND, SKIPPED, NAME, PLACE, RESULT, BYTES, STREAM, SEQ; // of each slice: begin, duration, how long it was in the queue, ...
let FROM, REFS;                    // what slice i waits for: REFS[FROM[i]] to REFS[FROM[i+1]-1]; -1: it is not in the trace
let SUM;                           // SUM[i]: durations of slices before i
let MT, MB, PEAK;                  // bytes in flight, and the largest of each 64
let LANE;                          // of each slice
let view = {from: 0, to: 1}, scroll = 0;
let picked = -1, range = null, hits = null, drag = null;
let theme = {}, colours = [];      // of the page, and of each name
const canvas = $("timeline"), pen = canvas.getContext("2d");

const end = i => B[i] + D[i];
const isOp = i => KIND[i] === OP;
const clamp = (x, low, high) => Math.max(low, Math.min(high, x));

// lower returns the first i of from to to-1 where reached(i); to: none. Once reached, it stays so.
function lower(from, to, reached) {
  while (from < to) {
    const middle = (from + to) >> 1;
    if (reached(middle)) to = middle; else from = middle + 1;
  }
  return from;
}

const UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];

// time shows a duration with three digits, bytes a size.
function time(ns) {
  let x = ns, unit = "ns";
  for (const u of ["µs", "ms", "s"]) {
    if (Math.abs(x) < 999.5) break;
    x /= 1000; unit = u;
  }
  const size = Math.abs(x);
  return x.toFixed(unit === "ns" && Number.isInteger(x) || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2) + " " + unit;
}
function bytes(n) {
  if (Math.abs(n) < 1024) return n + " B";
  let x = n, unit = "";
  for (const u of ["KiB", "MiB", "GiB", "TiB"]) {
    if (Math.abs(x) < 1024) break;
    x /= 1024; unit = u;
  }
  return x.toFixed(x < 10 ? 2 : x < 100 ? 1 : 0) + " " + unit;
}
const percent = (part, whole) => { const x = 100 * part / Math.max(whole, 1); return x.toFixed(x < 9.95 && x !== 0 ? 1 : 0) + " %"; };
const count = n => n.toLocaleString("en");
const when = t => { // with more digits
  const ns = t - H.Begin, [unit, name] = UNITS.find(u => Math.abs(ns) >= u[0]) || UNITS[3];
  return Number((ns / unit).toPrecision(8)) + " " + name;
};
const where = p => p ? H.Places[p].File + ":" + H.Places[p].Line : H.Places[0].File;

// Reading.

async function load(picture) {
  const letters = atob($("data" + picture).textContent.trim()), packed = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) packed[i] = letters.charCodeAt(i);
  const data = new Uint8Array(await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer());
  let at = 0;
  const number = () => {
    let x = 0, unit = 1, b;
    do { b = data[at++]; x += (b & 127) * unit; unit *= 128; } while (b > 127);
    return x % 2 ? -(x + 1) / 2 : x / 2;
  };
  const column = into => { for (let i = 0; i < into.length; i++) into[i] = number(); return into; };
  const running = into => { for (let i = 0, x = 0; i < into.length; i++) into[i] = x += number(); return into; };
  const length = number();
  H = JSON.parse(new TextDecoder().decode(data.subarray(at, at += length)));
  const n = H.Count;
  B = running(new Float64Array(n)); D = column(new Float64Array(n)); Q = column(new Float64Array(n)); BY = column(new Int32Array(n)); IDLE = column(new Float64Array(n));
  KIND = column(new Uint8Array(n)); NAME = column(new Int32Array(n)); PLACE = column(new Int32Array(n)); RESULT = column(new Int32Array(n));
  BYTES = column(new Float64Array(n)); STREAM = column(new Uint16Array(n)); SEQ = running(new Float64Array(n));
  SKIPPED = KIND.map(kind => kind >> 2); KIND = KIND.map(kind => kind & 3);
  FROM = new Int32Array(n + 1);
  for (let i = 0; i < n; i++) FROM[i + 1] = FROM[i] + number();
  REFS = column(new Int32Array(H.Refs));
  for (let i = 0; i < n; i++) for (let k = FROM[i]; k < FROM[i + 1]; k++) REFS[k] = REFS[k] === 0 ? -1 : i - REFS[k];
  MT = running(new Float64Array(H.Samples)); MB = column(new Float64Array(H.Samples));
  PEAK = new Float64Array((H.Samples >> 6) + 1);
  for (let i = 0; i < MB.length; i++) PEAK[i >> 6] = Math.max(PEAK[i >> 6], MB[i]);
  SUM = new Float64Array(n + 1);
  for (let i = 0; i < n; i++) SUM[i + 1] = SUM[i] + D[i];
  LANE = new Int32Array(n);
  const enqueued = H.Lanes.map(() => []); // by each lane
  for (let i = 0; i < n; i++) if (BY[i]) enqueued[BY[i] - 1].push(i);
  let y = SPACE / 2;
  H.Sides.forEach((side, s) => {
    side.y = y;
    if (hasSides()) y += HEAD;
    H.Lanes.forEach((lane, l) => {
      if (lane.Side !== s) return;
      lane.y = y;
      for (const track of lane.Tracks) { track.y = y; y += TRACK; LANE.fill(l, track.From, track.To); }
      lane.strip = y;
      lane.enqueued = Float64Array.from(enqueued[l], i => B[i] - Q[i]).sort();
      if (lane.enqueued.length) y += lane.Tracks.length ? STRIP : TRACK;
      lane.tall = y - lane.y;
      y += SPACE;
    });
    side.bottom = y;
  });
  H.height = y;
  CURVE = Math.max(64, 50 * H.Sides.length);
}

// hasSides: there are two forms of a program.
const hasSides = () => H.Sides.length > 1;
const sideOf = i => H.Lanes[LANE[i]].Side;

// Time and place on the canvas.

let width = 0, height = 0;
const scale = () => (width - GUTTER) / (view.to - view.from);
const xOf = t => GUTTER + (t - view.from) * scale();
const tOf = x => view.from + (x - GUTTER) / scale();

function look(from, to) {
  const whole = Math.max(H.End - H.Begin, 1), span = clamp(to - from, Math.min(50, whole), whole * 1.04);
  const middle = clamp((from + to) / 2, H.Begin + span * 0.48, H.End - span * 0.48);
  view = {from: middle - span / 2, to: middle + span / 2};
  redraw();
}
function zoom(factor, x = (width + GUTTER) / 2) {
  const t = tOf(x), whole = (H.End - H.Begin) * 1.04;
  factor = Math.min(factor, whole / (view.to - view.from));
  look(t - (t - view.from) * factor, t + (view.to - t) * factor);
}
const pan = share => look(view.from + share * (view.to - view.from), view.to + share * (view.to - view.from));
const whole = () => look(-1e300, 1e300);
const roomForLanes = () => height - RULER - CURVE;
function scrollTo(y) { scroll = clamp(y, 0, Math.max(0, H.height - roomForLanes())); redraw(); }

// Drawing.

let asked = false;
function redraw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => { asked = false; draw(); });
}

function paint() {
  const css = getComputedStyle(document.documentElement);
  for (const name of ["back", "text", "dim", "line", "wait", "help", "late", "input", "idle", "pick", "range", "memory", "panel"]) {
    theme[name] = css.getPropertyValue("--" + name).trim();
  }
  theme.isDark = document.documentElement.classList.contains("dark");
  const hues = [212, 145, 42, 275, 182, 85, 318, 25, 240, 115, 60, 295, 165, 200];
  H.Names.forEach((_, i) => {
    const rank = H.rank[i], hue = hues[rank % hues.length], step = Math.floor(rank / hues.length) % 3;
    colours[i] = theme.isDark ? `hsl(${hue} ${52 - 9 * step}% ${30 - 4 * step}%)` : `hsl(${hue} ${70 - 14 * step}% ${80 - 5 * step}%)`;
  });
  labels.clear();
  redraw();
}

const labels = new Map(); // widths
function label(text, x, w, y, colour) {
  if (w < 22) return;
  let wide = labels.get(text);
  if (wide === undefined) labels.set(text, wide = pen.measureText(text).width);
  if (wide > w - 6) {
    const keep = Math.floor(text.length * (w - 14) / wide);
    if (keep < 2) return;
    text = text.slice(0, keep) + "…";
  }
  pen.fillStyle = colour;
  pen.fillText(text, x + 4, y + TRACK / 2);
}

function colourOf(i) { return isOp(i) ? colours[NAME[i]] : IDLE[i] * 2 >= D[i] ? theme.wait : theme.help; }
const inkOf = i => theme.isDark || !isOp(i) && IDLE[i] * 2 >= D[i] ? "#fff" : "#111";

function draw() {
  const ratio = window.devicePixelRatio || 1;
  width = canvas.clientWidth; height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    scroll = clamp(scroll, 0, Math.max(0, H.height - roomForLanes()));
  }
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.fillStyle = theme.back;
  pen.fillRect(0, 0, width, height);
  pen.font = '12px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
  pen.textBaseline = "middle";
  drawRuler();
  pen.save();
  pen.beginPath();
  pen.rect(0, RULER, width, roomForLanes());
  pen.clip();
  for (const lane of H.Lanes) drawLane(lane);
  if (hasSides()) H.Sides.forEach(drawHead);
  if (picked >= 0) drawPicked();
  if (H.height > roomForLanes()) { // there are more lanes
    const part = roomForLanes() / H.height;
    pen.fillStyle = theme.idle;
    pen.fillRect(width - 5, RULER + scroll * part, 4, roomForLanes() * part);
  }
  pen.restore();
  pen.fillStyle = theme.back;
  pen.fillRect(0, height - CURVE, width, CURVE);
  H.Sides.forEach(drawCurve);
  if (range) {
    pen.fillStyle = theme.range;
    pen.fillRect(Math.max(GUTTER, xOf(range.from)), 0, Math.max(1, xOf(range.to) - Math.max(GUTTER, xOf(range.from))), height);
  }
}

function drawRuler() {
  const span = view.to - view.from, least = span * 90 / Math.max(1, width - GUTTER);
  let step = 10 ** Math.ceil(Math.log10(least));
  for (const part of [5, 2]) if (step / part >= least) { step /= part; break; }
  step = Math.max(step, 1);
  const [unit, name] = UNITS.find(u => Math.max(Math.abs(view.to - H.Begin), span) >= u[0]) || UNITS[3];
  const digits = Math.max(0, Math.ceil(-Math.log10(step / unit) - 1e-9));
  pen.textAlign = "left";
  for (let k = Math.ceil((view.from - H.Begin) / step); k * step + H.Begin < view.to; k++) {
    const x = Math.round(xOf(k * step + H.Begin)) + 0.5;
    pen.fillStyle = theme.line;
    pen.fillRect(x, 0, 1, height - CURVE);
    pen.fillStyle = theme.dim;
    pen.fillText((k * step / unit).toFixed(digits) + " " + name, x + 4, RULER / 2);
  }
  pen.fillStyle = theme.line;
  pen.fillRect(0, RULER - 1, width, 1);
}

function drawLane(lane) {
  const top = RULER + lane.y - scroll, tall = lane.tall;
  if (top > height - CURVE || top + tall + SPACE < RULER) return;
  for (const track of lane.Tracks) {
    const y = RULER + track.y - scroll;
    if (y < height - CURVE && y + TRACK > RULER) drawTrack(track, y);
  }
  drawEnqueued(lane.enqueued, RULER + lane.strip - scroll, top + tall);
  pen.fillStyle = theme.back;
  pen.fillRect(0, top - SPACE / 2, GUTTER, tall + SPACE);
  pen.fillStyle = theme.line;
  pen.fillRect(0, top + tall + SPACE / 2, width, 1);
  pen.fillStyle = theme.text;
  pen.fillText(fit(lane.Name, GUTTER - 94), 8, top + TRACK / 2);
  pen.textAlign = "right";
  pen.fillStyle = theme.dim;
  pen.fillText(lane.note, GUTTER - 8, top + TRACK / 2);
  pen.textAlign = "left";
}

// drawEnqueued draws a line for each operation that a lane enqueued, one for those that are closer than two pixels.
function drawEnqueued(times, y, bottom) {
  const k = scale();
  pen.fillStyle = theme.dim;
  for (let i = lower(0, times.length, i => times[i] >= view.from); i < times.length && times[i] < view.to;) {
    pen.fillRect(Math.max(GUTTER, xOf(times[i])), y, 1, bottom - y - 2);
    const until = times[i] + 2 / k;
    i = lower(i + 1, times.length, i => times[i] >= until);
  }
}

// drawHead draws the heading of a side, and that nothing is after its end.
function drawHead(side) {
  const y = RULER + side.y - scroll, x = Math.max(GUTTER, xOf(side.End));
  if (x < width) {
    pen.fillStyle = theme.panel;
    pen.fillRect(x, y + HEAD, width - x, side.bottom - side.y - HEAD);
    pen.fillStyle = theme.idle;
    pen.fillRect(x, y + HEAD, 1, side.bottom - side.y - HEAD);
  }
  pen.fillStyle = theme.panel;
  pen.fillRect(0, y - SPACE / 2 + 1, width, HEAD);
  pen.fillStyle = theme.text;
  const font = pen.font;
  pen.font = "bold " + font;
  pen.fillText(side.title, 8, y + HEAD / 2 - 3);
  pen.font = font;
}

function fit(text, w) {
  while (text.length > 2 && pen.measureText(text).width > w) text = text.slice(0, -2) + "…";
  return text;
}

// drawTrack draws what is in view. What is thinner than a pixel is drawn together, as high as that pixel is busy.
function drawTrack(track, y) {
  const k = scale(), tall = TRACK - 3;
  let i = lower(track.From, track.To, i => end(i) > view.from);
  pen.globalAlpha = hits ? 0.22 : 1;
  while (i < track.To && B[i] < view.to) {
    const w = D[i] * k, next = i + 1 < track.To ? B[i + 1] : Infinity;
    if (track.IsOps && i > track.From && (B[i] - end(i - 1)) * k > 6) drawGap(i, idleFrom(i), y);
    if (w >= 1 || (next - B[i]) * k >= 1) {
      const x = Math.max(GUTTER, xOf(B[i])), to = Math.min(width, xOf(end(i)));
      drawSlice(i, x, Math.max(to - x - (w > 4 ? 0.5 : 0), 1), y, tall);
      i++;
      continue;
    }
    const column = Math.floor(B[i] * k), until = (column + 1) / k;
    let reach = 1;
    while (i + reach < track.To && B[i + reach] < until) reach *= 2;
    const j = lower(i + 1, Math.min(track.To, i + reach), i => B[i] >= until);
    let most = i;
    for (let n = i; n < Math.min(j, i + 8); n++) if (D[n] > D[most]) most = n;
    const busy = clamp((SUM[j] - SUM[i]) * k, 0.15, 1);
    pen.fillStyle = colourOf(most);
    pen.fillRect(GUTTER + column - view.from * k, y + tall * (1 - busy), 1, tall * busy);
    i = j;
  }
  pen.globalAlpha = 1;
  if (hits) drawHits(track, y, tall);
}

function drawSlice(i, x, w, y, tall) {
  pen.fillStyle = colourOf(i);
  pen.fillRect(x, y, w, tall);
  if (w >= 22) label(H.Names[NAME[i]], x, w, y - 1.5, inkOf(i));
}

function drawHits(track, y, tall) {
  const k = scale();
  let n = lower(0, hits.length, n => hits[n] >= track.From && end(hits[n]) > view.from || hits[n] >= track.To);
  while (n < hits.length && hits[n] < track.To && B[hits[n]] < view.to) {
    const i = hits[n], x = Math.max(GUTTER, xOf(B[i])), w = Math.max(2, Math.min(width, xOf(end(i))) - x);
    drawSlice(i, x, w, y, tall);
    const until = B[i] + Math.max(D[i], 1 / k);
    n = lower(n + 1, hits.length, n => hits[n] >= track.To || B[hits[n]] >= until);
  }
}

// drawGap draws what an operation waited for, from a time on at which its lane had nothing to do.
function drawGap(i, from, y) {
  for (const c of causes(i, from)) {
    const x = Math.max(GUTTER, xOf(c.from) + 1), to = Math.min(width, xOf(c.to) - 1);
    if (to <= x) continue;
    pen.fillStyle = theme[c.kind];
    pen.fillRect(x, y + TRACK / 2 - 3, to - x, 3);
  }
}

function drawPicked() {
  const track = trackOf(picked), y = RULER + track.y - scroll;
  pen.lineWidth = 2;
  pen.strokeStyle = theme.pick;
  const x = Math.max(GUTTER, xOf(B[picked])), w = Math.max(2, Math.min(width + 4, xOf(end(picked))) - x);
  if (xOf(end(picked)) >= GUTTER) pen.strokeRect(x - 1, y - 1, w + 2, TRACK - 1);
  const last = latest(picked);
  pen.save();
  pen.beginPath();
  pen.rect(GUTTER, RULER, width, roomForLanes());
  pen.clip();
  for (let k = FROM[picked]; k < FROM[picked + 1]; k++) {
    const r = REFS[k];
    if (r < 0) continue;
    const fromY = RULER + trackOf(r).y - scroll + TRACK / 2, toY = y + TRACK / 2;
    const arc = fromY === toY ? 22 : 0, x1 = xOf(end(r)), x2 = isOp(picked) ? xOf(B[picked]) : xOf(end(picked));
    pen.strokeStyle = r === last ? theme.input : theme.idle;
    pen.lineWidth = r === last ? 2 : 1;
    pen.beginPath();
    pen.moveTo(x1, fromY);
    pen.bezierCurveTo(x1 + 30, fromY - arc, x2 - 30, toY - arc, x2, toY);
    pen.stroke();
  }
  pen.restore();
}

// drawCurve draws the bytes in flight of a side, by the same measure as those of the others.
function drawCurve(side, n) {
  const high = CURVE / H.Sides.length, top = height - CURVE + n * high, tall = high - 10, k = scale();
  const seen = side => [Math.max(side.From, lower(side.From, side.To, i => MT[i] > view.from) - 1), lower(side.From, side.To, i => MT[i] > view.to)];
  const most = Math.max(...H.Sides.map(side => peak(...seen(side))));
  const [from, to] = seen(side);
  pen.fillStyle = theme.line;
  pen.fillRect(0, top, width, 1);
  pen.fillStyle = theme.memory;
  for (let i = from; i < to;) {
    const x = Math.round(Math.max(GUTTER, xOf(MT[i])));
    const until = Math.max(MT[i], view.from) + 1 / k, j = Math.max(i + 1, lower(i + 1, to, i => MT[i] >= until));
    const right = Math.round(Math.min(width, xOf(j < side.To ? MT[j] : side.End))), h = most > 0 ? tall * peak(i, j) / most : 0;
    pen.fillRect(x, top + high - h, Math.max(1, right - x), h);
    i = j;
  }
  pen.fillStyle = theme.back;
  pen.fillRect(0, top + 1, GUTTER, high - 1);
  pen.textAlign = "left";
  pen.fillStyle = theme.text;
  pen.fillText(hasSides() ? "in flight, " + side.Name : "bytes in flight", 8, top + 16);
  pen.fillStyle = theme.dim;
  pen.fillText(side.To > side.From ? "up to " + bytes(peak(from, to)) : "none noted", 8, top + 34);
}
function peak(from, to) {
  let most = 0;
  for (let i = from; i < to;) {
    if ((i & 63) === 0 && i + 64 <= to) { most = Math.max(most, PEAK[i >> 6]); i += 64; } else most = Math.max(most, MB[i++]);
  }
  return most;
}

// What caused what.

const trackOf = i => H.Lanes[LANE[i]].Tracks.find(t => i >= t.From && i < t.To);

// latest is what slice i waits for that ended last; -1: nothing that is known.
function latest(i) {
  let last = -1;
  for (let k = FROM[i]; k < FROM[i + 1]; k++) if (REFS[k] >= 0 && (last < 0 || end(REFS[k]) > end(last))) last = REFS[k];
  return last;
}

// causes says why operation i did not begin at a time from: parts of the time until it began, in order.
function causes(i, from, lane = -1) {
  const list = [], add = (kind, until, ref) => {
    until = Math.min(until, B[i]);
    if (until > from) { list.push({kind, from, to: until, ref}); from = until; }
  };
  const input = latest(i);
  add("late", B[i] - Q[i], -1);
  if (input >= 0) add("input", end(input), input);
  if (lane >= 0) add("busy", end(lane), lane);
  add("idle", B[i], -1);
  return list;
}

// before is the operation before i in its track; -1: none.
const before = i => i > trackOf(i).From ? i - 1 : -1;

// idleFrom is since when the lane of operation i had nothing to do before it. A goroutine of the program executes
// operations in its waits only; between them it has other things to do.
function idleFrom(i) {
  const lane = H.Lanes[LANE[i]], prior = before(i) < 0 ? H.Begin : end(i - 1);
  if (lane.Kind > 0) return prior;
  for (const track of lane.Tracks) {
    const wait = lower(track.From, track.To, k => end(k) > B[i]);
    if (!track.IsOps && wait < track.To && B[wait] <= B[i]) return Math.max(prior, B[wait]);
  }
  return B[i];
}

// blockedDuring is the wait of a side that took most of a time, if one goroutine only has waits; -1: none.
function blockedDuring(side, from, to) {
  const waits = H.Lanes.filter(l => l.Side === side && l.Tracks.some(t => !t.IsOps));
  if (waits.length !== 1) return -1;
  let most = -1, longest = 0;
  for (const track of waits[0].Tracks) {
    if (track.IsOps) continue;
    for (let i = lower(track.From, track.To, i => end(i) > from); i < track.To && B[i] < to; i++) {
      const common = Math.min(end(i), to) - Math.max(B[i], from);
      if (common > longest) { most = i; longest = common; }
    }
  }
  return most;
}

// Elements.

function el(tag, props, ...inside) {
  const e = document.createElement(tag);
  Object.assign(e, props);
  e.append(...inside);
  return e;
}
const link = (i, text) => el("button", {className: "link", onclick: () => { pick(i, true); $("selection").focus(); }}, text || title(i));
const title = i => H.Names[NAME[i]] + (isOp(i) ? " " + STREAM[i] + "." + SEQ[i] : "");
const linkOf = i => el("span", {}, link(i), " at " + where(PLACE[i]));

function table(heads, rows) {
  const shown = rows.slice(0, 200), row = (tag, cells) => el("tr", {}, ...cells.map((cell, c) => el(tag, {className: heads[c][1] || ""}, cell)));
  const t = el("table", {}, heads[0][0] && el("thead", {}, row("th", heads.map(h => h[0]))), el("tbody", {}, ...shown.map(cells => row("td", cells))));
  return rows.length > shown.length ? el("div", {}, t, el("p", {className: "dim"}, `and ${rows.length - shown.length} more`)) : t;
}

function show(id, ...inside) { $(id).replaceChildren(...inside); }

// pick selects a slice; -1: none. If reveal is set, it is brought into view.
function pick(i, reveal) {
  picked = i;
  if (i >= 0 && reveal) bring(i);
  describe();
  redraw();
}
function bring(i) {
  const span = view.to - view.from, w = D[i] * scale();
  if (end(i) < view.from || B[i] > view.to || w < 3) {
    const wide = w < 3 ? Math.max(D[i] * 40, 500) : span;
    const middle = B[i] + D[i] / 2;
    look(middle - wide / 2, middle + wide / 2);
  }
  const y = trackOf(i).y;
  if (y < scroll || y + TRACK > scroll + roomForLanes()) scrollTo(y - roomForLanes() / 2);
}

function describe() {
  if (picked < 0) {
    show("selection", el("h2", {}, "Select a slice"),
      el("p", {className: "dim"}, "Click on one, or press . and j. Thin bars in gaps say why a lane did nothing:"),
      el("ul", {}, ...["late", "input", "idle"].map(kind => el("li", {className: kind}, REASON[kind]))),
      el("p", {className: "dim"}, "Thin lines below a goroutine's slices are the operations that it enqueued."));
    return;
  }
  const i = picked, p = PLACE[i], facts = [];
  const fact = (name, ...value) => facts.push([name, el("span", {}, ...value)]);
  const kind = isOp(i) ? "operation" : KIND[i] === WAIT ? "wait for a value" : "wait for room: too much was in flight";
  fact("what", kind + (SKIPPED[i] ? ", which did not run: what it needs had failed" : ""));
  fact("duration", time(D[i]), el("span", {className: "dim"}, `, from ${when(B[i])} to ${when(end(i))}`));
  if (isOp(i)) {
    fact("result", H.Names[RESULT[i]] || "unknown", `, ${bytes(BYTES[i])}`);
    fact("executed by", H.Lanes[LANE[i]].Name);
    fact("enqueued", `${time(Q[i])} before it began, at ${when(B[i] - Q[i])}`, BY[i] ? `, by ${H.Lanes[BY[i] - 1].Name}` : "");
  } else {
    fact("blocked", `${time(IDLE[i])} (${percent(IDLE[i], D[i])})`, IDLE[i] < D[i] ? "; in the rest it executed operations itself" : "");
    fact("goroutine", H.Lanes[LANE[i]].Name);
  }
  if (hasSides()) fact("program", H.Sides[sideOf(i)].Name);
  fact("line", where(p), H.Places[p].Func ? el("span", {className: "dim"}, " in " + H.Places[p].Func) : "");
  for (const found of H.Places[p].Found || []) fact("found", codeOf(found), ": " + found.Text);
  const why = isOp(i) ? whyNotBefore(i) : [];
  show("selection", el("h2", {}, title(i)), table([["", ""], ["", ""]], facts), ...why, ...inputs(i), ...users(i), ...code(p));
}

// codeOf leads to what the code of a finding means, and explain shows it.
const codeOf = found => el("button", {className: "link", onclick: () => explain(H.Codes[found.Code])}, H.Codes[found.Code].Name);
function explain(code) {
  show("selection", el("h2", {}, "asyncgen explain " + code.Name), el("pre", {className: "prose", tabIndex: 0}, code.Page));
  $("selection").focus();
}

// codes are those of what is found at a line, each once.
const codes = p => [...new Map((H.Places[p].Found || []).map(found => [found.Code, found])).values()].flatMap((found, k, all) => [el("span", {className: "s"}, codeOf(found), k < all.length - 1 ? "," : ""), " "]);

// code is the text around a line.
function code(p) {
  const place = H.Places[p];
  if (!place.Text) return p ? [el("p", {className: "dim"}, place.Full + " could not be read when the page was made.")] : [];
  const digits = String(place.From + place.Text.length).length;
  return [el("pre", {tabIndex: 0, title: place.Full}, ...place.Text.map((text, k) => {
    const n = place.From + k;
    return el("div", {className: n === place.Line ? "here" : ""}, String(n).padStart(digits) + "  " + text);
  }))];
}

const REASON = {
  late: "the program had not enqueued it yet", input: "an input was not ready",
  busy: "its lane was busy with other operations", idle: "nothing that the trace knows held it up",
};

// whyNotBefore explains the time in the queue, and the gap before an operation.
function whyNotBefore(i) {
  const prior = before(i), parts = [];
  const item = c => {
    const li = el("li", {className: c.kind}, `${time(c.to - c.from)}: ${REASON[c.kind]}`);
    if (c.ref >= 0) li.append(c.kind === "input" ? ": " : ", the last of them ", linkOf(c.ref));
    if (c.kind === "late") {
      const wait = blockedDuring(sideOf(i), c.from, c.to);
      if (wait >= 0) li.append("; meanwhile it waited in ", linkOf(wait));
    }
    return li;
  };
  const queued = causes(i, B[i] - Q[i], prior);
  if (queued.length) parts.push(el("h3", {}, `In the queue for ${time(Q[i])}`), el("ul", {}, ...queued.map(item)));
  const from = idleFrom(i);
  if (B[i] > from) {
    parts.push(el("h3", {}, `${H.Lanes[LANE[i]].Name} did nothing for ${time(B[i] - from)} before it`), el("ul", {}, ...causes(i, from).map(item)));
  }
  return parts;
}

function inputs(i) {
  const from = FROM[i], to = FROM[i + 1], last = latest(i), items = [];
  for (let k = from; k < to; k++) {
    const r = REFS[k];
    if (r < 0) {
      items.push(el("li", {}, "something outside of this trace"));
      continue;
    }
    const ready = end(r) <= B[i] ? `ready ${time(B[i] - end(r))} before` : `ready ${time(end(i) - end(r))} before the end`;
    const isLast = isOp(i) && to - from > 1 && r === last;
    items.push(el("li", {className: r === last ? "input" : ""}, linkOf(r), ` (${H.Names[RESULT[r]] || "?"}), ${ready}${isLast ? ", the last" : ""}`));
  }
  if (!items.length) return isOp(i) ? [] : [el("p", {className: "dim"}, "It waited for more than one operation, or for one that is not named.")];
  return [el("h3", {}, isOp(i) ? "Reads the results of" : "Waited for"), el("ul", {}, ...items)];
}

// users are slices that wait for i.
function users(i) {
  const items = [];
  let n = 0;
  for (let k = 0, j = 0; k < REFS.length; k++) {
    if (REFS[k] !== i) continue;
    while (FROM[j + 1] <= k) j++;
    if (++n <= 10) items.push(el("li", {}, linkOf(j)));
  }
  return n ? [el("h3", {}, `What waits for it: ${n}`), el("ul", {}, ...items)] : [];
}

// Totals.

// totals adds up the operations between two times, by name, by line and by lane. Counts and times of names and lines are
// those of each side.
function totals(from, to) {
  const names = new Map(), lines = new Map(), lanes = [], sides = H.Sides.length;
  const add = (map, key, side, d) => {
    let sums = map.get(key);
    if (!sums) map.set(key, sums = {all: 0, count: new Array(sides).fill(0), time: new Array(sides).fill(0)});
    sums.all += d; sums.count[side]++; sums.time[side] += d;
  };
  let all = 0;
  for (const lane of H.Lanes) {
    const spans = [];
    let busy = 0;
    const tracks = lane.Tracks.filter(t => t.IsOps);
    for (const track of tracks) {
      for (let i = lower(track.From, track.To, i => end(i) > from); i < track.To && B[i] < to; i++) {
        const d = Math.min(end(i), to) - Math.max(B[i], from);
        add(names, NAME[i], lane.Side, d);
        add(lines, PLACE[i], lane.Side, d);
        busy += d;
        all += d;
        if (tracks.length > 1) spans.push([Math.max(B[i], from), Math.min(end(i), to)]);
      }
    }
    lanes.push(tracks.length > 1 ? union(spans) : busy);
  }
  const sorted = map => [...map].sort((a, b) => b[1].all - a[1].all);
  return {names: sorted(names), lines: sorted(lines), lanes, all};
}
function union(spans) {
  let sum = 0, last = -Infinity;
  for (const [from, to] of spans.sort((a, b) => a[0] - b[0])) {
    sum += Math.max(0, to - Math.max(from, last));
    last = Math.max(last, to);
  }
  return sum;
}

function showTotals(sums) {
  const from = range ? range.from : H.Begin, span = range ? range.to - range.from : H.End - H.Begin;
  const finds = text => el("button", {className: "link", onclick: () => search(text)}, text);
  const heads = hasSides() ? H.Sides.flatMap(side => [[side.Name, "n"], ["count", "n"]]) : [["time", "n"], ["share", "n"], ["count", "n"]];
  const figures = s => hasSides() ? H.Sides.flatMap((_, k) => [time(s.time[k]), count(s.count[k])]) : [time(s.all), percent(s.all, sums.all), count(s.count[0])];
  const part = (what, rows, nameOf) => table([...heads, [what]], rows.map(([key, s]) => [...figures(s), finds(nameOf(key))]));
  const spanOf = lane => range || !hasSides() ? span : H.Sides[lane.Side].End;
  show("totals", el("h2", {}, range ? `Range: ${time(span)} from ${when(from)}` : "Operations"),
    part("operation", sums.names, name => H.Names[name]), el("h3", {}, "by line"), part("line", sums.lines, where), el("h3", {}, "busy"),
    table([["time", "n"], ["share", "n"], ...withSides([["program", "s"]]), ["lane"]],
      H.Lanes.map((lane, l) => [time(sums.lanes[l]), percent(sums.lanes[l], spanOf(lane)), ...withSides([H.Sides[lane.Side].Name]), lane.Name])));
}
const withSides = cells => hasSides() ? cells : [];

function setRange(from, to) {
  range = to > from ? {from: Math.max(from, H.Begin), to: Math.min(to, H.End)} : null;
  showTotals(totals(range ? range.from : H.Begin, range ? range.to : H.End));
  redraw();
}

function showLines() {
  const sums = H.Sides.map(() => 0), hasCodes = H.Codes.length > 0;
  for (const b of H.Blocked) sums[b.Side] += b.Time;
  const heads = [["time", "n"], ["share", "n"], ["waits", "n"], ...withSides([["program", "s"]]), ["call"], ["line: its longest wait"], ...hasCodes ? [["found"]] : []];
  const rows = [...H.Blocked].sort((a, b) => b.Time - a.Time).map(b => [time(b.Time), percent(b.Time, sums[b.Side]), count(b.Waits),
    ...withSides([H.Sides[b.Side].Name]), b.Call, link(b.Longest, where(b.Place)), ...hasCodes ? [el("span", {}, ...codes(b.Place))] : []]);
  show("lines", el("h2", {}, "Blocked by source line"), rows.length ? table(heads, rows) : el("p", {}, "No call waited."));
}

// Search.

function search(text) {
  if ($("search").value !== text) $("search").value = text;
  text = text.toLowerCase();
  hits = null;
  if (text) {
    const names = H.Names.map(name => name.toLowerCase().includes(text));
    const places = H.Places.map((p, k) => k > 0 && (where(k).toLowerCase().includes(text) || p.Func.toLowerCase().includes(text)));
    const id = /^\d+\.\d+$/.test(text) ? text.split(".").map(Number) : null, list = [];
    for (let i = 0; i < B.length; i++) {
      if (names[NAME[i]] || places[PLACE[i]] || id && isOp(i) && STREAM[i] === id[0] && SEQ[i] === id[1]) list.push(i);
    }
    hits = Int32Array.from(list);
  }
  $("found").textContent = hits ? count(hits.length) + " found" : "";
  redraw();
}

// jump selects the match that begins after what is selected, or before; after the last comes the first.
function jump(forward) {
  if (!hits || !hits.length) return;
  const now = picked >= 0 ? B[picked] : view.from, sign = forward ? 1 : -1;
  const isAfter = (a, b) => sign * (B[a] - B[b]) > 0 || B[a] === B[b] && sign * (a - b) > 0;
  let next = -1, first = hits[0];
  for (const i of hits) {
    if (isAfter(first, i)) first = i;
    const later = picked >= 0 ? isAfter(i, picked) : sign * (B[i] - now) >= 0;
    if (later && (next < 0 || isAfter(next, i))) next = i;
  }
  pick(next >= 0 ? next : first, true);
}

// Input.

function sliceAt(x, y) {
  if (x < GUTTER || y < RULER || y > height - CURVE) return -1;
  for (const lane of H.Lanes) {
    for (const track of lane.Tracks) {
      const top = RULER + track.y - scroll;
      if (y < top || y >= top + TRACK) continue;
      const t = tOf(x), near = 3 / scale(), next = lower(track.From, track.To, i => B[i] > t);
      if (next > track.From && end(next - 1) > t) return next - 1;
      if (next > track.From && t - end(next - 1) < near) return next - 1;
      if (next < track.To && (B[next] - t < near || track.IsOps && next > track.From)) return next; // in a gap: what it is before
      return -1;
    }
  }
  return -1;
}

function step(by) {
  if (picked < 0) return pickMiddle(0);
  const track = trackOf(picked), i = picked + by;
  if (i >= track.From && i < track.To) pick(i, true);
}
function stepLane(by) {
  if (picked < 0) return pickMiddle(0);
  const tracks = H.Lanes.flatMap(l => l.Tracks), at = tracks.indexOf(trackOf(picked)) + by;
  if (tracks[at]) pick(nearest(tracks[at], B[picked] + D[picked] / 2), true);
}
function nearest(track, t) {
  const i = lower(track.From, track.To, i => end(i) > t);
  return i === track.To || i > track.From && t - end(i - 1) < B[i] - t ? i - 1 : i;
}
function pickMiddle() {
  const track = H.Lanes.flatMap(l => l.Tracks).find(t => t.y + TRACK > scroll);
  if (track) pick(nearest(track, (view.from + view.to) / 2), true);
}

const closer = () => zoom(1 / 1.4), farther = () => zoom(1.4), left = () => pan(-0.15), right = () => pan(0.15);
const KEYS = {
  w: closer, "+": closer, "=": closer, s: farther, "-": farther, a: left, d: right, ArrowLeft: left, ArrowRight: right,
  ArrowUp: () => scrollTo(scroll - 2 * TRACK), ArrowDown: () => scrollTo(scroll + 2 * TRACK), 0: whole,
  f: () => picked >= 0 && look(B[picked] - D[picked], end(picked) + D[picked]), ",": () => step(-1), ".": () => step(1),
  k: () => stepLane(-1), j: () => stepLane(1), g: () => picked >= 0 && latest(picked) >= 0 && pick(latest(picked), true),
  r: () => setRange(view.from, view.to), "/": () => $("search").focus(), n: () => jump(true), N: () => jump(false), t: toggle,
  Escape: () => { setRange(0, 0); pick(-1); },
};

function toggle() {
  document.documentElement.classList.toggle("dark");
  paint();
}

function listen() {
  document.addEventListener("keydown", e => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const inField = e.target === $("search"), scrolls = e.target.closest && e.target.closest("section, pre") && e.key.startsWith("Arrow");
    if (inField && e.key === "Enter") return jump(!e.shiftKey);
    if (inField && e.key === "Escape") { search(""); canvas.focus(); return; }
    if (inField || scrolls || !Object.hasOwn(KEYS, e.key)) return;
    e.preventDefault();
    KEYS[e.key]();
  });
  canvas.addEventListener("wheel", e => {
    e.preventDefault();
    const unit = e.deltaMode === 1 ? 16 : e.deltaMode === 2 ? 400 : 1, dx = e.deltaX * unit, dy = e.deltaY * unit;
    if (e.shiftKey || Math.abs(dx) > Math.abs(dy)) pan((dx || dy) / (width - GUTTER));
    else if (e.offsetX < GUTTER) scrollTo(scroll + dy);
    else zoom(Math.exp(clamp(dy, -300, 300) * 0.003), e.offsetX);
  }, {passive: false});
  canvas.addEventListener("pointerdown", e => {
    if (e.button !== 0) return;
    canvas.setPointerCapture(e.pointerId);
    drag = {x: e.offsetX, y: e.offsetY, view, scroll, t: tOf(e.offsetX), isRange: e.shiftKey, moved: false};
  });
  canvas.addEventListener("pointermove", e => {
    if (!drag) return hover(e);
    const dx = e.offsetX - drag.x, dy = e.offsetY - drag.y;
    if (!drag.moved && Math.hypot(dx, dy) < 4) return;
    drag.moved = true;
    $("tip").hidden = true;
    if (drag.isRange) {
      const t = tOf(e.offsetX);
      range = {from: Math.min(t, drag.t), to: Math.max(t, drag.t)};
      redraw();
    } else {
      const k = (width - GUTTER) / (drag.view.to - drag.view.from);
      look(drag.view.from - dx / k, drag.view.to - dx / k);
      scrollTo(drag.scroll - dy);
    }
  });
  canvas.addEventListener("pointerup", e => {
    if (!drag) return;
    const {moved, isRange} = drag;
    drag = null;
    if (moved && isRange) setRange(range.from, range.to);
    else if (!moved) pick(sliceAt(e.offsetX, e.offsetY), false);
  });
  canvas.addEventListener("pointercancel", () => { drag = null; });
  canvas.addEventListener("pointerleave", () => { $("tip").hidden = true; });
  new ResizeObserver(redraw).observe(canvas);
  const press = (id, f) => $(id).addEventListener("click", f);
  press("next", () => jump(true)); press("previous", () => jump(false));
  press("in", closer); press("out", farther); press("all", whole); press("theme", toggle);
  $("search").addEventListener("input", e => search(e.target.value));
}

function hover(e) {
  const tip = $("tip"), i = sliceAt(e.offsetX, e.offsetY);
  tip.hidden = i < 0;
  if (i < 0) return;
  const t = tOf(e.offsetX), inGap = t < B[i] - 3 / scale(), why = inGap && causes(i, idleFrom(i)).find(c => t < c.to);
  tip.textContent = !why ? `${title(i)}: ${time(D[i])}\n${where(PLACE[i])}` :
    `nothing to do for ${time(why.to - why.from)}: before ${title(i)},\n${REASON[why.kind]}${why.ref >= 0 ? ": " + title(why.ref) : ""}`;
  tip.style.left = Math.min(e.offsetX + 14, width - 260) + "px";
  tip.style.top = e.offsetY + 18 + "px";
}

async function start() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  document.documentElement.classList.toggle("dark", dark.matches);
  await open(0);
  dark.addEventListener("change", e => { document.documentElement.classList.toggle("dark", e.matches); paint(); });
  if ($("data1")) {
    for (let k = 0; $("data" + k); k++) $("pictures").append(el("option", {value: k}, $("data" + k).dataset.name));
    $("pictures").hidden = false;
    $("pictures").addEventListener("change", e => open(e.target.value));
  }
  listen();
  performance.mark("ready");
}

// open shows one of the pictures.
async function open(picture) {
  await load(picture);
  picked = -1; range = hits = drag = null; scroll = 0;
  $("search").value = $("found").textContent = "";
  const program = side => side.Program.split(/[/\\]/).pop();
  const opsOf = s => H.Lanes.filter(l => l.Side === s).reduce((n, lane) => lane.Tracks.reduce((n, t) => n + (t.IsOps ? t.To - t.From : 0), n), 0);
  const waitsOf = s => H.Lanes.filter(l => l.Side === s).reduce((n, lane) => lane.Tracks.reduce((n, t) => n + (t.IsOps ? 0 : t.To - t.From), n), 0);
  document.title = H.Title || "Trace of " + (H.Sides.length ? program(H.Sides[0]) : "nothing");
  $("verdict").textContent = H.Verdict;
  const about = H.Sides.map((side, s) => `${[side.Name || program(side), side.Go].filter(Boolean).join(", ")}: ` +
    `${time(side.End - side.Begin)}, ${count(opsOf(s))} operations, ${count(waitsOf(s))} waits.`);
  about.push("Blocked is the time in which a call waited and its goroutine executed nothing.");
  if (H.Sides.some(side => side.IsCut)) about.push("The last moments may be missing: the program did not end the trace.");
  const lost = H.Sides.reduce((n, side) => n + side.Lost, 0);
  if (lost) about.push(`${count(lost)} events are lost: they came too fast to be written.`);
  $("about").textContent = about.join(" ");
  const sums = totals(H.Begin, H.End);
  H.rank = new Int32Array(H.Names.length).fill(H.Names.length);
  sums.names.forEach((row, rank) => { H.rank[row[0]] = rank; });
  const blocked = H.Sides.map(() => 0); // of the goroutine that was blocked the longest
  H.Lanes.forEach((lane, l) => {
    const waits = lane.Tracks.filter(t => !t.IsOps), side = H.Sides[lane.Side];
    let sum = waits.length ? 0 : sums.lanes[l];
    for (const track of waits) for (let i = track.From; i < track.To; i++) sum += IDLE[i];
    if (waits.length) blocked[lane.Side] = Math.max(blocked[lane.Side], sum);
    lane.note = !lane.Tracks.length && lane.enqueued.length ? count(lane.enqueued.length) + " enqueued" : percent(sum, side.End - side.Begin) + (waits.length ? " blocked" : " busy");
  });
  H.Sides.forEach((side, s) => { side.title = `${side.Name}: ${time(side.End - side.Begin)}, ${percent(blocked[s], side.End - side.Begin)} blocked`; });
  document.querySelector("footer").classList.toggle("both", hasSides());
  document.querySelector("main").style.height = H.height + RULER + CURVE + 8 + "px";
  showTotals(sums);
  showLines();
  describe();
  width = canvas.clientWidth; height = canvas.clientHeight;
  whole();
  paint();
  draw();
}

// ready is fulfilled when the page can be used.
const ready = start().catch(err => { $("verdict").textContent = "The trace can't be shown: " + err.message; throw err; });
