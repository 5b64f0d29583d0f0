// Pointer and keyboard.
function listen(chart) {
  const plot = chart.plot;
  let held = null;
  const place = (event) => {
    const box = plot.getBoundingClientRect();
    const k = view.width / Math.max(1, box.width);
    return { x: (event.clientX - box.left) * k, y: (event.clientY - box.top) * k - chart.y0 };
  };
  plot.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    held = { x: place(event).x, from: view.from, to: view.to, moved: false };
  });
  plot.addEventListener("pointermove", (event) => {
    const at = place(event);
    if (held && event.buttons !== 0) dragTo(plot, held, at.x, event.pointerId);
    else if (at.x >= view.gutter) setCursor(blockAt(timeAt(at.x)), false);
  });
  const release = (event) => {
    if (held && !held.moved && event.type === "pointerup") clickAt(chart, place(event));
    held = null;
  };
  plot.addEventListener("pointerup", release);
  plot.addEventListener("pointercancel", release);
  plot.addEventListener("dblclick", () => openChosen(chart));
  plot.addEventListener("focus", () => { chart.near = true; drawChart(chart); });
  plot.addEventListener("keydown", (event) => onKey(event, chart));
  plot.addEventListener("wheel", (event) => onWheel(event, place(event).x), { passive: false });
}

function dragTo(plot, held, x, pointer) {
  if (!held.moved && Math.abs(x - held.x) < 4) return;
  if (!held.moved) plot.setPointerCapture(pointer);
  held.moved = true;
  const shift = ((held.x - x) / plotWidth()) * (held.to - held.from);
  setView(held.from + shift, held.to + shift);
}

function clickAt(chart, at) {
  chart.row = chart.spec.rowAt ? chart.spec.rowAt(at.y) : null;
  if (at.x >= view.gutter) setCursor(blockAt(timeAt(at.x)), false);
  else moveCursor(chart);
}

function onWheel(event, x) {
  const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
  if (event.ctrlKey || event.metaKey) zoom(Math.exp(-clamp(event.deltaY, -200, 200) / 200), timeAt(x));
  else if (sideways && view.to - view.from < story.end) pan(event.deltaX / plotWidth());
  else return;
  event.preventDefault();
}

function onKey(event, chart) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const act = keyAction(event.key, event.shiftKey, chart);
  if (!act) return;
  event.preventDefault();
  act();
  if (!byId("details").open) byId("announce").textContent = readOut(chart) || "";
}

function keyAction(key, shift, chart) {
  const step = shift ? 10 * columns().per : 1;
  const page = Math.max(1, columns().cols.length * columns().per >> 1);
  const start = upperBound(story.times, view.from - 1e-6); // The first block that begins in sight.
  const move = (by) => () => setCursor(view.cursor === null ? start : view.cursor + by, true);
  const actions = {
    ArrowLeft: move(-step), ArrowRight: move(step), PageUp: move(-page), PageDown: move(page),
    Home: () => setCursor(0, true), End: () => setCursor(story.blocks.length - 1, true),
    "+": () => zoom(2), "=": () => zoom(2), "-": () => zoom(0.5), _: () => zoom(0.5), 0: () => setView(0, story.end),
    Enter: () => openChosen(chart),
    Escape: () => { chart.row = null; setCursor(null, false); },
  };
  if (chart.spec.rows) {
    const last = chart.spec.rows() - 1;
    const row = (by) => () => { chart.row = clamp((chart.row ?? (by > 0 ? -1 : last + 1)) + by, 0, last); moveCursor(chart); };
    actions.ArrowDown = row(1);
    actions.ArrowUp = row(-1);
  }
  return Object.hasOwn(actions, key) ? actions[key] : null;
}

function openChosen(chart) {
  if (chart.row !== null && chart.spec.openRow) chart.spec.openRow(chart.row);
  else if (view.cursor !== null) openBlock(view.cursor);
}
