// Opens pages in headless Chromium and fails on what a reader would trip over: `node check.js [sample or FILE.html …]`;
// without arguments, all samples. Speaks the DevTools protocol over a pipe; needs no package. `PICTURES=FOLDER` keeps a
// picture of each page, width and scheme; `UPDATE_SNAPSHOTS=1` writes the snapshots instead of comparing with them.
"use strict";

const fs = require("fs");
const os = require("os");
const path = require("path");
const { spawn } = require("child_process");
const { SAMPLES, join, read, script } = require("./samples.js");
const { checkSnapshots } = require("./snapshots.js");

const OUT = fs.mkdtempSync(path.join(os.tmpdir(), "pages-"));

const WIDTHS = [360, 900, 1600];
const failures = [];
let checked = 0;

function expect(condition, text) {
  checked++;
  if (!condition) { failures.push(text); console.log(`FAILED ${text}`); }
}

// ---- The browser ---------------------------------------------------------------------------------

function launch() {
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), "page-check-"));
  const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--remote-debugging-pipe", `--user-data-dir=${profile}`, "about:blank"];
  const child = spawn(process.env.CHROMIUM || "chromium", flags, { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
  const waiting = new Map(), listeners = [];
  let id = 0, rest = "";
  child.stdio[4].setEncoding("utf8");
  child.stdio[4].on("data", (chunk) => {
    const parts = (rest + chunk).split("\0");
    rest = parts.pop();
    for (const part of parts) receive(JSON.parse(part));
  });
  function receive(message) {
    if (message.id === undefined) return listeners.forEach((listen) => listen(message));
    const { resolve, reject } = waiting.get(message.id);
    waiting.delete(message.id);
    if (message.error) reject(new Error(message.error.message)); else resolve(message.result);
  }
  const send = (method, params = {}, sessionId) => new Promise((resolve, reject) => {
    waiting.set(++id, { resolve, reject });
    child.stdio[3].write(JSON.stringify({ id, method, params, sessionId }) + "\0");
  });
  const close = async () => {
    const gone = new Promise((resolve) => child.once("exit", resolve));
    await send("Browser.close").catch(() => child.kill());
    await gone;
    fs.rmSync(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  };
  return { send, listeners, close };
}

async function openTab(browser) {
  const { targetId } = await browser.send("Target.createTarget", { url: "about:blank" });
  const { sessionId } = await browser.send("Target.attachToTarget", { targetId, flatten: true });
  const tab = { errors: [], requests: [] };
  tab.send = (method, params) => browser.send(method, params, sessionId);
  browser.listeners.push(({ method, params, sessionId: from }) => {
    if (from !== sessionId) return;
    if (method === "Runtime.exceptionThrown") tab.errors.push(params.exceptionDetails.exception?.description || params.exceptionDetails.text);
    if (method === "Runtime.consoleAPICalled" && ["error", "warning", "assert"].includes(params.type)) tab.errors.push(`console: ${params.args.map((a) => a.value).join(" ")}`);
    if (method === "Log.entryAdded" && ["error", "warning"].includes(params.entry.level)) tab.errors.push(`log: ${params.entry.text}`);
    if (method === "Network.requestWillBeSent") tab.requests.push(params.request.url);
    if (method === "Page.loadEventFired" && tab.loaded) tab.loaded();
  });
  for (const domain of ["Page", "Runtime", "Log", "Network"]) await tab.send(`${domain}.enable`);
  tab.eval = async (expression) => {
    const { result, exceptionDetails } = await tab.send("Runtime.evaluate", { expression, returnByValue: true, awaitPromise: true });
    if (exceptionDetails) throw new Error(`${exceptionDetails.text} ${exceptionDetails.exception?.description || ""} in ${expression}`);
    return result.value;
  };
  tab.key = async (key, modifiers = 0) => {
    const code = { " ": 32, Enter: 13, Escape: 27, Tab: 9 }[key] || 0;
    const text = key === "Enter" ? "\r" : key.length === 1 ? key : undefined;
    await tab.send("Input.dispatchKeyEvent", { type: text ? "keyDown" : "rawKeyDown", key, text, modifiers, windowsVirtualKeyCode: code });
    await tab.send("Input.dispatchKeyEvent", { type: "keyUp", key, modifiers, windowsVirtualKeyCode: code });
  };
  tab.frame = () => tab.eval("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
  return tab;
}

async function visit(tab, name, width, scheme) {
  tab.errors.length = tab.requests.length = 0;
  await tab.send("Emulation.setDeviceMetricsOverride", { width, height: 900, deviceScaleFactor: 1, mobile: width < 500 });
  await tab.send("Emulation.setEmulatedMedia", { media: "screen", features: [{ name: "prefers-color-scheme", value: scheme }] });
  const loaded = new Promise((resolve) => { tab.loaded = resolve; });
  const began = Date.now();
  await tab.send("Page.navigate", { url: `file://${path.join(OUT, `${name}.html`)}` });
  await loaded;
  await tab.frame();
  return Date.now() - began;
}

async function screenshot(tab, name) {
  const { data } = await tab.send("Page.captureScreenshot", { format: "png" });
  fs.writeFileSync(path.join(process.env.PICTURES, `${name}.png`), Buffer.from(data, "base64"));
}

// ---- What every page must hold ---------------------------------------------------------------------

// Runs in the page. Opens every table, scrolls to every chart, and reports what is wrong.
const INSPECT = `(async () => {
  const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const problems = [];
  for (const details of document.querySelectorAll("details")) details.open = true;
  for (const section of document.querySelectorAll("section")) { section.scrollIntoView({ behavior: "instant" }); await frame(); }
  await frame();
  const root = document.scrollingElement;
  if (root.scrollWidth > root.clientWidth) {
    const wide = [...document.querySelectorAll("body *")].filter((n) => n.getBoundingClientRect().right > root.clientWidth + 1 && !n.closest(".scroll, .lines, svg, .skip")).slice(0, 3);
    problems.push("the body is " + root.scrollWidth + " px wide: " + wide.map((n) => n.tagName + "." + n.getAttribute("class")).join(", "));
  }
  if (window.broken) problems.push("text from the data ran as a script");
  if (document.querySelector(".from-data, main img, main script, header img, [onerror], [onload]")) problems.push("text from the data became markup");
  if (document.scripts.length !== 2) problems.push("there are " + document.scripts.length + " scripts");
  for (const svg of document.querySelectorAll(".plot > svg")) {
    if (svg.getAttribute("role") !== "img" || !svg.querySelector("title").textContent) problems.push("a chart has no role or title");
    if (/NaN|Infinity|undefined/.test(svg.outerHTML.replace(/<text[^]*?<\\/text>|<title[^]*?<\\/title>/g, ""))) problems.push("a chart has a coordinate that is not a number: " + svg.querySelector("title").textContent);
    if (!svg.querySelector(".layer-axes").childElementCount && !svg.querySelector(".layer-data").childElementCount) problems.push("a chart is empty: " + svg.querySelector("title").textContent);
  }
  for (const plot of document.querySelectorAll(".plot")) if (plot.tabIndex !== 0 || !plot.getAttribute("aria-label")) problems.push("a chart cannot be focused");
  for (const figure of document.querySelectorAll("#main figure")) if (!figure.closest("#time") && !figure.querySelector("details table")) problems.push("a chart has no table");
  for (const cell of document.querySelectorAll("th")) if (!cell.scope) problems.push("a heading cell has no scope");
  for (const control of document.querySelectorAll("button, select, input")) {
    if (!(control.textContent.trim() || control.getAttribute("aria-label") || control.labels?.length)) problems.push("a control has no name");
  }
  const ids = [...document.querySelectorAll("[id]")].map((n) => n.id);
  if (new Set(ids).size !== ids.length) problems.push("an id is used twice: " + ids.filter((id, i) => ids.indexOf(id) !== i).slice(0, 3));
  scrollTo({ top: 0, behavior: "instant" });
  await frame();
  return problems;
})()`;

// The contrast of every visible text node with the nearest opaque background, for WCAG AA.
const CONTRAST = `(() => {
  const rgb = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ground = (node) => { for (let n = node; n; n = n.parentElement) { const c = rgb(getComputedStyle(n).backgroundColor); if (c.length === 3 || c[3] === 1) return c.slice(0, 3); } return [255, 255, 255]; };
  const poor = new Set();
  for (const node of document.querySelectorAll("h1, h2, h3, p, li, dt, dd, th, td, a, button, summary, label, strong, b, span, text")) {
    if (!node.textContent.trim() || node.disabled || node.closest(".hidden, .skip")) continue;
    const style = getComputedStyle(node);
    const a = light(rgb(node.namespaceURI.endsWith("svg") ? style.fill : style.color).slice(0, 3)), b = light(ground(node));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.add(node.tagName + "." + node.getAttribute("class") + " " + ratio.toFixed(2));
  }
  return [...poor].slice(0, 5);
})()`;

async function checkPage(tab, name, width, scheme) {
  const where = `${name} at ${width} px, ${scheme}`;
  const took = await visit(tab, name, width, scheme);
  if (process.env.PICTURES) await screenshot(tab, `${name}-${width}-${scheme}`);
  for (const problem of await tab.eval(INSPECT)) expect(false, `${where}: ${problem}`);
  const poor = await tab.eval(CONTRAST);
  expect(poor.length === 0, `${where}: low contrast: ${poor.join("; ")}`);
  expect(await tab.eval(`document.documentElement.hasAttribute("data-dark")`) === (scheme === "dark"), `${where}: the theme follows the system`);
  expect(tab.errors.length === 0, `${where}: ${tab.errors.slice(0, 3).join(" | ")}`);
  const foreign = tab.requests.filter((url) => !url.startsWith("file://") && !url.startsWith("data:"));
  expect(foreign.length === 0, `${where}: requests ${foreign.slice(0, 3)}`);
  console.log(`${where}: opened in ${took} ms`);
}

// ---- The keyboard ------------------------------------------------------------------------------------

// `word` is in some lines of the log.
async function checkKeyboard(tab, name, word) {
  await visit(tab, name, 900, "light");
  const say = (text) => `${name}, keyboard: ${text}`;
  const plots = await tab.eval(`[...document.querySelectorAll(".plot")].map((p) => p.id)`);
  await tab.key("Tab");
  expect(await tab.eval(`document.activeElement.className`) === "skip", say("the first stop is the skip link"));
  await tab.key("Enter");
  expect(await tab.eval(`document.activeElement.id`) === "main", say("the skip link goes to the report"));
  const read = (id) => tab.eval(`document.getElementById("${id}").closest("figure").querySelector(".readout").textContent`);
  for (const id of plots) {
    await tab.eval(`document.getElementById("${id}").focus()`);
    await tab.frame();
    await tab.key("Home");
    const first = await read(id);
    await tab.key("ArrowRight");
    const second = await read(id);
    await tab.key("End");
    const last = await read(id);
    await tab.key("ArrowLeft");
    const before = await read(id);
    expect(/^Block 1 /.test(first) && /^Block 2 /.test(second) && last !== second && before !== last, say(`${id} moves over blocks: ${[first, second, last, before].join(" / ")}`));
    expect(await tab.eval(`document.getElementById("announce").textContent`) === before, say(`${id} announces the block`));
    await tab.key("Enter");
    expect(await tab.eval(`document.getElementById("details").open`), say(`${id}: Enter opens the block`));
    await tab.key("Escape");
    expect(!(await tab.eval(`document.getElementById("details").open`)), say(`${id}: Esc closes it`));
    expect(await tab.eval(`document.activeElement.id`) === id, say(`${id}: the focus returns`));
    const outline = await tab.eval(`getComputedStyle(document.activeElement).outlineStyle`);
    expect(outline !== "none", say(`${id}: the focus is visible`));
  }
  await checkRows(tab, say);
  await checkZoom(tab, say, plots[1]);
  await checkLogKeys(tab, say, word);
  await checkThemeButton(tab, say);
  expect(tab.errors.length === 0, say(tab.errors.slice(0, 3).join(" | ")));
}

async function checkRows(tab, say) {
  const id = await tab.eval(`document.querySelector("#jobs .plot").id`);
  await tab.eval(`document.getElementById("${id}").focus()`);
  await tab.frame();
  await tab.key("ArrowDown");
  await tab.key("ArrowDown");
  await tab.key("Enter");
  expect(/^Job /.test(await tab.eval(`document.getElementById("details-title").textContent`)), say("Enter on a row opens the job"));
  const title = await tab.eval(`document.getElementById("details-title").textContent`);
  await tab.key("ArrowRight");
  expect(title !== await tab.eval(`document.getElementById("details-title").textContent`), say("right goes to the next job"));
  await tab.key("Escape");
}

async function checkZoom(tab, say, id) {
  const range = () => tab.eval(`document.querySelector("#time .range").textContent`);
  await tab.eval(`document.getElementById("${id}").focus()`);
  await tab.frame();
  const whole = await range();
  await tab.key("+");
  await tab.key("+");
  await tab.frame();
  const zoomed = await range();
  expect(zoomed !== whole, say("plus zooms in"));
  await tab.key("Home");
  await tab.frame();
  const home = await range();
  expect(home !== zoomed && /^0 ms/.test(home), say(`Home moves the view: ${home}`));
  await tab.key("0");
  await tab.frame();
  expect(await range() === whole, say("0 shows the whole run"));
  const box = await tab.eval(`(() => { const b = document.getElementById("${id}").getBoundingClientRect(); return { x: b.left + b.width * 0.6, y: b.top + b.height / 2 }; })()`);
  await tab.send("Input.dispatchMouseEvent", { type: "mouseWheel", ...box, deltaX: 0, deltaY: -200, modifiers: 2 });
  await tab.frame();
  expect(await range() !== whole, say("the wheel with ctrl zooms"));
  const before = await range();
  await tab.send("Input.dispatchMouseEvent", { type: "mousePressed", ...box, button: "left", buttons: 1, clickCount: 1 });
  for (const dx of [20, 60, 120]) await tab.send("Input.dispatchMouseEvent", { type: "mouseMoved", x: box.x - dx, y: box.y, button: "left", buttons: 1 });
  await tab.send("Input.dispatchMouseEvent", { type: "mouseReleased", x: box.x - 120, y: box.y, button: "left", clickCount: 1 });
  await tab.frame();
  expect(await range() !== before, say("dragging pans"));
  await tab.key("0");
  for (const clickCount of [1, 2]) for (const type of ["mousePressed", "mouseReleased"]) await tab.send("Input.dispatchMouseEvent", { type, ...box, button: "left", clickCount });
  expect(/^Block /.test(await tab.eval(`document.getElementById("details").open && document.getElementById("details-title").textContent`)), say("a double click opens a block"));
  await tab.key("Escape");
}

async function checkLogKeys(tab, say, word) {
  await tab.eval(`document.getElementById("log-lines").focus()`);
  await tab.frame();
  await tab.key("End");
  const last = await tab.eval(`document.querySelector(".line.active")?.getAttribute("aria-posinset") === document.querySelector(".line.active")?.getAttribute("aria-setsize")`);
  expect(last, say("End goes to the last log line"));
  await tab.key("Enter");
  expect(await tab.eval(`document.getElementById("details").open && document.getElementById("details-title").textContent`) === "Log line", say("Enter opens a log line"));
  await tab.key("Escape");
  await tab.key("Home");
  await tab.key(" ");
  expect(/The cursor is on Block/.test(await tab.eval(`document.getElementById("announce").textContent`)), say("Space shows a line's time"));
  const all = await tab.eval(`document.querySelector(".filters [role=status]").textContent`);
  await tab.eval(`document.getElementById("log-text").focus()`);
  for (const letter of word) await tab.key(letter);
  const some = await tab.eval(`document.querySelector(".filters [role=status]").textContent`);
  expect(all !== some && await tab.eval(`[...document.querySelectorAll(".line .body")].every((n) => n.textContent.includes("${word}"))`), say(`the text filter works: ${all} / ${some}`));
}

// Walks through the page with Tab, and back: every stop is in sight, marked, and not below the bar of the time axis.
async function checkStops(tab, name, width, scheme) {
  await visit(tab, name, width, scheme);
  const charts = await tab.eval(`document.querySelectorAll(".plot").length`);
  for (const [way, modifiers] of [["Tab", 0], ["Shift+Tab", 8]]) {
    const say = (text) => `${name} at ${width} px, ${scheme}, ${way}: ${text}`;
    const stops = new Set();
    let plots = 0;
    while (stops.size < 400) {
      await tab.key("Tab", modifiers);
      await tab.frame();
      const stop = await tab.eval(STOP);
      if (stop === null || stops.has(stop.id)) break;
      stops.add(stop.id);
      plots += stop.plot ? 1 : 0;
      expect(stop.fault === null, say(`${stop.what} is ${stop.fault}`));
    }
    expect(stops.size < 400 && plots === charts, say(`${stops.size} stops, ${plots} of ${charts} charts`));
  }
}

// The element with the focus; null at the end of the page.
const STOP = `(() => {
  const node = document.activeElement, time = document.getElementById("time");
  if (node === document.body || node === document.documentElement) return null;
  node.dataset.stop ||= String(document.querySelectorAll("[data-stop]").length + 1);
  const box = node.getBoundingClientRect(), bar = time.getBoundingClientRect();
  const top = getComputedStyle(time).position === "sticky" && !node.closest("#time") && bar.top <= 0 ? bar.bottom : 0;
  const fault = box.bottom < 0 || box.top > innerHeight || box.right < 0 || box.left > innerWidth ? "out of sight"
    : box.top < top - 1 && box.height < innerHeight - top ? "below the bar"
    : getComputedStyle(node).outlineStyle === "none" ? "not marked" : null;
  return { id: node.dataset.stop, what: node.id || node.getAttribute("aria-label") || node.textContent.slice(0, 40), plot: node.classList.contains("plot"), fault };
})()`;

async function checkThemeButton(tab, say) {
  await tab.eval(`document.getElementById("theme").focus()`);
  await tab.key("Enter");
  await tab.key("Enter");
  expect(await tab.eval(`document.documentElement.hasAttribute("data-dark")`), say("the button switches to dark"));
}

// Pages through the rows of a heat map, filters the jobs and pages a table, as a reader with a mouse does.
async function checkPaging(tab, name) {
  await visit(tab, name, 900, "light");
  const say = (text) => `${name}, paging: ${text}`;
  const press = async (section, label) => {
    await tab.eval(`document.getElementById("${section}").scrollIntoView(); [...document.querySelectorAll("#${section} button")].find((b) => b.textContent === "${label}").click()`);
    await tab.frame();
  };
  const first = (section) => tab.eval(`document.querySelector("#${section} .layer-rows text").textContent`);
  await press("presence", "One row each");
  expect(await first("presence") === "runner-0", say("one row each starts at the first runner"));
  await press("presence", "Next rows");
  expect(await first("presence") === "runner-40", say("next rows"));
  await press("presence", "All at once");
  expect(/^runner-0 \+/.test(await first("presence")), say("all at once"));
  await press("jobs", "Next rows");
  const bars = (cls) => tab.eval(`document.querySelectorAll("#jobs .layer-data .${cls}").length`);
  await tab.eval(`(() => { const s = document.querySelector("#jobs select"); s.value = "failed"; s.dispatchEvent(new Event("change")); })()`);
  await tab.frame();
  expect(await bars("bad") > 10 && await bars("good") === 0, say("only failed jobs are left"));
  await tab.eval(`document.querySelector("#blocks details").open = true`);
  await tab.frame();
  await press("blocks", "Next rows");
  expect(await tab.eval(`document.querySelector("#blocks tbody th").textContent`) === "101", say("the table goes to row 101"));
  expect(tab.errors.length === 0, say(tab.errors.slice(0, 3).join(" | ")));
}

// How long one redraw takes, with the page zoomed and panned: it must keep up with a drag.
async function checkSpeed(tab, name) {
  await visit(tab, name, 1600, "light");
  const slowest = await tab.eval(`(async () => {
    const slowest = {};
    for (const section of ["blocks", "presence", "jobs", "logs"]) {
      document.getElementById(section).scrollIntoView({ behavior: "instant" });
      let worst = 0;
      for (const id of ["zoom-in", "zoom-in", "zoom-out", "zoom-out", "zoom-all"]) {
        await new Promise((done) => requestAnimationFrame(done));
        document.getElementById(id).click();
        const began = performance.now();
        await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
        worst = Math.max(worst, performance.now() - began);
      }
      slowest[section] = Math.round(worst);
    }
    return slowest;
  })()`);
  console.log(`${name}: the slowest redraw, in ms: ${JSON.stringify(slowest)}`);
}

async function checkPrint(tab, name) {
  await visit(tab, name, 900, "dark");
  const { data } = await tab.send("Page.printToPDF", { printBackground: true, preferCSSPageSize: true });
  fs.writeFileSync(path.join(OUT, `${name}.pdf`), Buffer.from(data, "base64"));
  expect(data.length > 20000, `${name}: the printed page is empty`);
  expect(tab.errors.length === 0, `${name}, printed: ${tab.errors.slice(0, 3).join(" | ")}`);
}

// A page that `sim run crashes --html` has written.
async function checkSimulation(tab, name) {
  await checkKeyboard(tab, name, "fault");
  for (const width of WIDTHS) await checkStops(tab, name, width, "light");
  const text = (id) => tab.eval(`document.getElementById("${id}").textContent`);
  expect(/no agent/.test(await text("speculations")), `${name}: says why there are no speculations`);
  expect(/one_result/.test(await text("checks")), `${name}: lists its invariants`);
  const faults = await tab.eval(`[...document.querySelectorAll("#faults tbody tr")].map((row) => row.cells[4].textContent)`);
  expect(faults.length > 0 && faults.every((target) => /^validator-\d+$/.test(target)), `${name}: the targets of its faults: ${faults}`);
}

// A page of a devnet that has run a pipeline of five tasks.
async function checkDevnet(tab, name) {
  await visit(tab, name, 900, "light");
  await tab.eval(`document.querySelector("#speculations .plot").focus()`);
  await tab.frame();
  const bars = await tab.eval(`document.querySelectorAll("#speculations .layer-data .good").length`);
  expect(bars === 5, `${name}: ${bars} of 5 tasks are drawn as confirmed`);
}

// The program replaces each placeholder once.
function checkPlaceholders() {
  const parts = { "page.css": read("page/page.css"), "the script": script() };
  for (const mark of ["/*CSS*/", "/*JS*/", "/*DATA*/"]) {
    expect(read("page/page.html").split(mark).length === 2, `page.html has ${mark} once`);
    for (const [name, text] of Object.entries(parts)) expect(!text.includes(mark), `${name} does not have ${mark}`);
  }
  expect(!/<\/(script|style)|<!--/i.test(Object.values(parts).join("")), "neither the script nor page.css ends its element");
  expect(!/innerHTML|insertAdjacentHTML|document\.write|\beval\b/.test(script()), "the script makes no markup from text");
}

// Puts a page into the folder, and returns its name there.
function prepare(wanted) {
  const made = SAMPLES[wanted];
  const name = made ? wanted : path.basename(wanted, ".html");
  fs.writeFileSync(path.join(OUT, `${name}.html`), made ? join(made()) : fs.readFileSync(wanted));
  return name;
}

async function main() {
  checkPlaceholders();
  const wanted = process.argv.slice(2);
  const samples = (wanted.length ? wanted : Object.keys(SAMPLES)).map(prepare);
  const browser = launch();
  try {
    const tab = await openTab(browser);
    for (const name of samples) for (const width of WIDTHS) for (const scheme of ["light", "dark"]) await checkPage(tab, name, width, scheme);
    await checkSnapshots(tab, (sample) => visit(tab, prepare(sample), 900, "light"), expect);
    if (samples.includes("crashes")) { await checkKeyboard(tab, "crashes", "lease"); await checkPrint(tab, "crashes"); }
    if (samples.includes("a-simulation")) await checkSimulation(tab, "a-simulation");
    if (samples.includes("a-devnet")) await checkDevnet(tab, "a-devnet");
    if (samples.includes("huge")) { await checkKeyboard(tab, "huge", "lease"); await checkPaging(tab, "huge"); await checkSpeed(tab, "huge"); }
  } finally {
    await browser.close();
    fs.rmSync(OUT, { recursive: true });
  }
  console.log(failures.length ? `${failures.length} failures:\n${failures.join("\n")}` : `${checked} checks passed`);
  process.exitCode = failures.length ? 1 : 0;
}

if (require.main === module) main().catch((error) => { console.error(error); process.exitCode = 1; });

module.exports = { launch, openTab, visit };
