// The grid of chains: one canvas, enlarged smoothly. The newest frame wins: a slow browser drops frames, never lags.
const canvas = find('.gj-canvas');
const GAP = 10, STRIP = 16;
let layout = null;
let drawing = false, waiting = null;
let shown = null; // { frame, bitmaps } on the canvas now

// Where every chain stands. Depends on the number of chains and on the width alone, so nothing moves while streaming.
function arrange(frame, width) {
  const lanes = frame.lanes;
  const stacked = lanes.length > 1 && width < 380;
  const across = stacked ? 1 : lanes.length;
  const title = lanes.length > 1 ? 26 : 0;
  const between = 22;
  const laneWidth = (width - between * (across - 1)) / across;
  const columns = lanes[0].columns;
  const gap = columns > 6 ? 5 : laneWidth < 420 ? 6 : GAP;
  const size = (laneWidth - gap * (columns - 1)) / columns;
  const rows = Math.ceil(lanes[0].n / columns);
  const laneHeight = title + rows * (size + STRIP) + (rows - 1) * Math.max(2, gap - 6);
  const cells = lanes.map((lane, l) => {
    const left = stacked ? 0 : l * (laneWidth + between);
    const top = (stacked ? l * (laneHeight + 12) : 0) + title;
    return Array.from({ length: lane.n }, (_, i) => ({
      x: left + (i % columns) * (size + gap),
      y: top + Math.floor(i / columns) * (size + STRIP + Math.max(2, gap - 6)),
    }));
  });
  const titles = lanes.map((lane, l) => ({ x: stacked ? 0 : l * (laneWidth + between), y: stacked ? l * (laneHeight + 12) : 0, text: lane.title }));
  const height = stacked ? lanes.length * laneHeight + 12 * (lanes.length - 1) : laneHeight;
  return { width, height, size, cells, titles: title ? titles : [], key: lanes.map((lane) => lane.n + '/' + lane.size + '/' + lane.title).join('|') };
}

function relayout(frame) {
  const width = Math.floor(find('.gj-grid').clientWidth);
  const key = frame.lanes.map((lane) => lane.n + '/' + lane.size + '/' + lane.title).join('|');
  if (layout && layout.width === width && layout.key === key) return;
  layout = arrange(frame, width);
  canvas.style.width = layout.width + 'px';
  canvas.style.height = layout.height + 'px';
  buildTiles(frame);
}

// Real buttons over the canvas: a chain can be reached by mouse, finger, keyboard and screen reader.
function buildTiles(frame) {
  const buttons = layout.cells.flatMap((cells, l) => cells.map((cell, i) => {
    const button = make('button', {
      type: 'button', class: 'gj-tile', 'data-lane': l, 'data-chain': i,
      'aria-label': 'Open chain ' + (i + 1) + (frame.lanes.length > 1 ? ' of ' + frame.lanes[l].title : ''),
      onclick: () => openDetail(l, i),
    });
    Object.assign(button.style, { left: cell.x + 'px', top: cell.y + 'px', width: layout.size + 'px', height: layout.size + STRIP - 4 + 'px' });
    return button;
  }));
  find('.gj-tiles').replaceChildren(...buttons);
}

async function showFrame(frame) {
  if (drawing) { waiting = frame; return; }
  drawing = true;
  try {
    const bitmaps = await Promise.all(frame.lanes.map((lane) => bitmap(lane.src)));
    shown?.bitmaps.forEach((one) => one.close());
    shown = { frame, bitmaps };
    paintGrid();
    counters.frames += 1;
    counters.shownStep = frame.step;
    counters.shownOrder = frame.order;
    counters.shownRun = frame.run;
    counters.shownAt = performance.now();
  } catch (error) {
    console.warn('A frame could not be drawn', error);
  } finally {
    drawing = false;
  }
  if (waiting) { const next = waiting; waiting = null; showFrame(next); }
}
const counters = { frames: 0, shownStep: -1, shownOrder: -1, shownRun: '', shownAt: 0 };

function paintGrid() {
  if (!shown || find('.gj-grid').clientWidth === 0) return;
  relayout(shown.frame);
  const context = sharpen(canvas, layout.width, layout.height);
  context.clearRect(0, 0, layout.width, layout.height);
  context.font = '600 13px system-ui, sans-serif';
  context.fillStyle = colours.ink;
  context.textBaseline = 'middle';
  for (const title of layout.titles) context.fillText(title.text, title.x, title.y + 12);
  shown.frame.lanes.forEach((lane, l) => {
    const wishes = wishesOf(shown.frame);
    layout.cells[l].forEach((cell, i) => {
      paintTile(context, shown.bitmaps[l], lane, i, cell.x, cell.y, layout.size);
      paintStrip(context, lane, i, cell, wishes);
    });
  });
}

function paintTile(context, picture, lane, i, x, y, size) {
  const radius = Math.min(10, size / 9);
  context.save();
  context.beginPath();
  context.roundRect(x, y, size, size, radius);
  context.clip();
  context.drawImage(picture, (i % lane.columns) * lane.size, Math.floor(i / lane.columns) * lane.size, lane.size, lane.size, x, y, size, size);
  context.restore();
  if (lane.diverged.includes(i)) {
    context.strokeStyle = colours.bad;
    context.lineWidth = 3;
    context.setLineDash([6, 4]);
    context.beginPath();
    context.roundRect(x + 1.5, y + 1.5, size - 3, size - 3, radius);
    context.stroke();
    context.setLineDash([]);
  }
}

// Under each chain: how sure the model is of each asked attribute, a full bar being quite sure.
function paintStrip(context, lane, i, cell, wishes) {
  if (!wishes.length || !lane.sure) return;
  const gap = 3, top = cell.y + layout.size + 4;
  const room = layout.size - gap * (wishes.length - 1);
  const width = Math.max(1, room / wishes.length);
  wishes.forEach(({ k, wanted }, j) => {
    const p = lane.sure[i * lane.attributes + k] / 255;
    const left = cell.x + j * (width + gap);
    context.fillStyle = colours.track;
    context.beginPath(); context.roundRect(left, top, width, 5, 2.5); context.fill();
    context.fillStyle = seriesColour(j);
    context.beginPath(); context.roundRect(left, top, Math.max(2, width * (wanted ? p : 1 - p)), 5, 2.5); context.fill();
  });
}

function wishesOf(frame) {
  const names = model().names;
  const one = (wanted) => (name) => ({ name, wanted, k: names.indexOf(name) });
  return [...frame.with.map(one(true)), ...frame.without.map(one(false))].filter((wish) => wish.k >= 0);
}
