// Traces of the run, and the two live plots, drawn on canvases a few times a second: the grid needs the time more.
const DRAWN = 150; // points of a line on screen
const LONGEST = 600; // points kept of each trace; when full, every second one goes
const traces = { lanes: [], means: [], turns: [] };
const history_ = { frames: [], stride: 1 }; // pictures of the run for the scrubber
let plotDue = 0;

function forgetTraces() {
  traces.lanes = []; traces.means = []; traces.turns = [];
  history_.frames = []; history_.stride = 1;
}

const some = (list) => { const every = Math.ceil(list.length / DRAWN); return every < 2 ? list : list.filter((_, i) => i % every === 0 || i === list.length - 1); };
const thin = (list) => (list.length > LONGEST ? list.filter((_, i) => i % 2 === 0 || i === list.length - 1) : list);

// Unpack what the frame brought and add it to the traces.
function remember(frame) {
  const K = model().names.length;
  frame.lanes.forEach((lane, l) => {
    lane.attributes = K;
    lane.sure = lane.p ? bytes(lane.p) : null;
    const trace = traces.lanes[l] ??= { points: [], flips: [], labels: null };
    if (!lane.energy) return;
    const energy = floats(lane.energy), grad = floats(lane.grad), labels = bytes(lane.y);
    const rowBytes = Math.ceil(K / 8) * lane.n;
    frame.steps.forEach((step, t) => {
      trace.points.push({ step, energy: energy.subarray(t * lane.n, (t + 1) * lane.n), grad: grad.subarray(t * lane.n, (t + 1) * lane.n) });
      const row = labels.subarray(t * rowBytes, (t + 1) * rowBytes);
      noteFlips(trace, row, step, lane.n, K);
      trace.labels = row;
    });
    trace.points = thin(trace.points);
  });
  const means = frame.lanes.map((lane) => (lane.sure ? meanOf(lane, K) : null));
  if (means[0]) { traces.means.push({ step: frame.step, means }); traces.means = thin(traces.means); }
  const wish = JSON.stringify([frame.with, frame.without]);
  if (traces.turns.at(-1)?.wish !== wish) traces.turns.push({ step: frame.step, wish });
  const last = history_.frames.at(-1);
  if (!last || frame.step >= last.step + history_.stride) {
    history_.frames.push({ step: frame.step, src: frame.lanes.map((lane) => lane.src), sure: frame.lanes.map((lane) => lane.sure) });
    if (history_.frames.length > 160) { history_.frames = history_.frames.filter((_, i) => i % 2 === 0); history_.stride *= 2; }
  }
  return means;
}

const bit = (row, chain, k, K) => (row[chain * Math.ceil(K / 8) + (k >> 3)] >> (7 - (k & 7))) & 1;

function noteFlips(trace, row, step, n, K) {
  const before = trace.labels;
  if (!before || before.length !== row.length) return;
  for (let chain = 0; chain < n; chain++) {
    for (let k = 0; k < K; k++) {
      const on = bit(row, chain, k, K);
      if (on !== bit(before, chain, k, K)) trace.flips.push({ step, chain, k, on });
    }
  }
  if (trace.flips.length > 40000) trace.flips = trace.flips.slice(-20000);
}

function meanOf(lane, K) {
  const mean = new Float32Array(K);
  for (let i = 0; i < lane.n; i++) for (let k = 0; k < K; k++) mean[k] += lane.sure[i * K + k] / (255 * lane.n);
  return mean;
}

function paintPlots(now = performance.now(), force = false) {
  if (!force && now < plotDue) return;
  plotDue = now + 220;
  if (traces.lanes.length) { plotEnergy(); plotAsked(); }
}

// Axes, and functions from data to pixels.
function axes(node, { x, y, format, ticks, right = 0 }) {
  const width = node.clientWidth, height = node.clientHeight;
  if (!width || !height) return null;
  const context = sharpen(node, width, height);
  context.clearRect(0, 0, width, height);
  const box = { left: 34, top: 6, right: width - 8 - right, bottom: height - 18 };
  const spanX = Math.max(1, x[1] - x[0]), spanY = y[1] - y[0] || 1;
  const toX = (value) => box.left + ((value - x[0]) / spanX) * (box.right - box.left);
  const toY = (value) => box.bottom - ((value - y[0]) / spanY) * (box.bottom - box.top);
  context.font = '11px system-ui, sans-serif';
  context.lineWidth = 1;
  for (const tick of ticks) {
    context.strokeStyle = colours.line;
    context.beginPath(); context.moveTo(box.left, toY(tick)); context.lineTo(box.right, toY(tick)); context.stroke();
    context.fillStyle = colours.muted; context.textAlign = 'right'; context.textBaseline = 'middle';
    context.fillText(format(tick), box.left - 5, toY(tick));
  }
  context.textBaseline = 'alphabetic';
  context.textAlign = 'left'; context.fillText('step ' + x[0], box.left, height - 4);
  context.textAlign = 'right'; context.fillText(String(x[1]), box.right, height - 4);
  return { context, box, toX, toY };
}

function paintTurns(plot) {
  plot.context.strokeStyle = colours.muted;
  plot.context.setLineDash([2, 3]);
  for (const turn of traces.turns.slice(1)) {
    const x = plot.toX(turn.step);
    if (x < plot.box.left) continue;
    plot.context.beginPath(); plot.context.moveTo(x, plot.box.top); plot.context.lineTo(x, plot.box.bottom); plot.context.stroke();
  }
  plot.context.setLineDash([]);
}

function line(plot, points, colour, width, alpha = 1) {
  const { context } = plot;
  context.strokeStyle = colour; context.lineWidth = width; context.globalAlpha = alpha; context.lineJoin = 'round';
  context.beginPath();
  let pen = false;
  for (const [x, y] of points) {
    if (!Number.isFinite(y)) { pen = false; continue; }
    if (pen) context.lineTo(plot.toX(x), plot.toY(y)); else context.moveTo(plot.toX(x), plot.toY(y));
    pen = true;
  }
  context.stroke();
  context.globalAlpha = 1;
}

function niceTicks(low, high, count = 4) {
  const raw = (high - low) / count || 1, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
  const ticks = [];
  for (let t = Math.ceil(low / step) * step; t <= high + 1e-9; t += step) ticks.push(t);
  return ticks;
}
const compact = (value) => (Math.abs(value) >= 1000 ? (value / 1000).toPrecision(3) + 'k' : String(+value.toPrecision(3)));

// The middle nineteen twentieths of all values: one chain that diverges must not flatten the others.
function robustRange(values) {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  if (!sorted.length) return [0, 1];
  const low = sorted[Math.floor(0.01 * (sorted.length - 1))], high = sorted[Math.ceil(0.985 * (sorted.length - 1))];
  const pad = 0.06 * (high - low || 1);
  return [low - pad, high + pad];
}

function plotEnergy() {
  const points = traces.lanes[0].points;
  const node = find('[data-plot=energy]');
  const span = points.length ? [points[0].step, Math.max(points.at(-1).step, points[0].step + 1)] : [0, 1];
  const lanes = traces.lanes.map((lane) => some(lane.points));
  const range = robustRange(lanes.flatMap((few) => few.filter((_, i) => i % 3 === 0).flatMap((point) => [...point.energy])));
  const plot = axes(node, { x: span, y: range, format: compact, ticks: niceTicks(...range) });
  if (!plot || !points.length) return;
  paintTurns(plot);
  plot.context.save();
  plot.context.beginPath(); plot.context.rect(plot.box.left, plot.box.top, plot.box.right - plot.box.left, plot.box.bottom - plot.box.top); plot.context.clip();
  lanes.forEach((few, l) => {
    const n = few[0]?.energy.length || 0;
    for (let i = 0; i < n; i++) line(plot, few.map((p) => [p.step, p.energy[i]]), seriesColour(l), 1, n > 30 ? 0.18 : 0.3);
    line(plot, few.map((p) => [p.step, finiteMean(p.energy)]), seriesColour(l), 2);
  });
  plot.context.restore();
  if (traces.lanes.length > 1) legend(plot, shown?.frame.lanes.map((lane, l) => ({ text: lane.title, colour: seriesColour(l) })) || []);
}

function finiteMean(values) {
  const good = [...values].filter(Number.isFinite);
  return good.reduce((sum, value) => sum + value, 0) / (good.length || 1);
}

function plotAsked() {
  const means = some(traces.means), names = model().names;
  const node = find('[data-plot=asked]');
  const span = means.length ? [means[0].step, Math.max(means.at(-1).step, means[0].step + 1)] : [0, 1];
  const plot = axes(node, { x: span, y: [0, 1], format: (v) => String(v), ticks: [0, 0.5, 1] });
  if (!plot || !means.length) return;
  paintTurns(plot);
  let series = asked().map(({ name, wanted }, j) => ({ k: names.indexOf(name), wanted, colour: seriesColour(j), text: (wanted ? '' : 'not ') + labelOf(name) }));
  if (!series.length) { // nothing is asked: what the chains seem to be by themselves
    const last = means.at(-1).means[0];
    series = [...last.keys()].sort((a, b) => last[b] - last[a]).slice(0, 3).map((k, j) => ({ k, wanted: true, colour: seriesColour(j), text: labelOf(names[k]) }));
  }
  for (const { k, wanted, colour } of series) {
    means[0].means.forEach((_, l) => {
      plot.context.setLineDash(l ? [5, 4] : []);
      line(plot, means.map((m) => [m.step, m.means[l] ? (wanted ? m.means[l][k] : 1 - m.means[l][k]) : NaN]), colour, 2);
    });
  }
  plot.context.setLineDash([]);
  legend(plot, series);
  const second = shown?.frame.lanes[1]?.title;
  setText(node.parentElement.querySelector('small'), second ? 'mean probability; dashed: ' + second : 'mean probability');
}

function legend(plot, entries) {
  const { context, box } = plot;
  context.font = '600 11px system-ui, sans-serif'; context.textAlign = 'left'; context.textBaseline = 'middle';
  let x = box.left + 6, y = box.bottom - 10;
  for (const { text, colour } of entries) {
    const width = context.measureText(text).width;
    if (x + width + 16 > box.right) { x = box.left + 6; y -= 15; }
    context.fillStyle = colours.card; context.globalAlpha = 0.85; context.fillRect(x - 3, y - 7, width + 18, 14); context.globalAlpha = 1;
    context.fillStyle = colour; context.beginPath(); context.arc(x + 4, y, 3.5, 0, 7); context.fill();
    context.fillStyle = colours.ink; context.fillText(text, x + 11, y);
    x += width + 24;
  }
}
