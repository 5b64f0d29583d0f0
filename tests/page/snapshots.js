// Charts as SVG files, compared with those in `snapshots`, so that a change of a chart is a decision that a review sees.
// `UPDATE_SNAPSHOTS=1` writes them. Each file opens on its own: it has the colours of the light theme and the legend.
"use strict";

const fs = require("fs");
const path = require("path");

const FOLDER = path.join(__dirname, "snapshots");

// What is kept: of which sample, at which width of the charts in px, and which charts (all without a list).
const WANTED = [
  { name: "crashes", sample: "crashes", width: 860 },
  { name: "crashes-narrow", sample: "crashes", width: 336, charts: ["time-since-the-first-block", "time-to-finality", "presence-of-runners", "votes-of-validators-in-the-certificate"] },
  { name: "passed", sample: "passed", width: 860, charts: ["interval-since-the-block-before", "presence-of-runners", "votes-of-validators-in-the-certificate", "jobs-from-submission-to-end"] },
];

// Runs in the page, which the width of its charts is given: with the browser's own, a scroll bar would count. Returns
// every chart as [tag, attributes, children], without what is not drawn, and the style of every class in it.
const COLLECT = `(async (width) => {
  const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const main = document.getElementById("main");
  main.style.cssText = "box-sizing: content-box; width: " + width + "px; max-width: none; padding: 0; margin: 0";
  await frame();
  for (const plot of document.querySelectorAll(".plot")) plot.focus({ preventScroll: true });
  document.activeElement.blur();
  await frame();
  const INHERITED = { fill: "rgb(0, 0, 0)", stroke: "none", "stroke-width": "1px", "stroke-dasharray": "none", "stroke-linejoin": "miter", "paint-order": "normal",
    "shape-rendering": "auto", opacity: "1", "font-size": "", visibility: "visible" };
  const styles = {};
  const styleOf = (node) => {
    const style = getComputedStyle(node), found = {};
    for (const [name, usual] of Object.entries(INHERITED)) {
      if (name === "font-size" && node.tagName !== "text") continue;
      if (style[name] !== usual) found[name] = style[name];
    }
    const key = node.tagName === "text" && !node.getAttribute("class") ? "text" : node.getAttribute("class");
    if (key && !key.startsWith("layer-")) styles[key] = found;
  };
  const tree = (node) => {
    if (node.nodeType === Node.TEXT_NODE) return node.data;
    styleOf(node);
    const attributes = {};
    for (const { name, value } of node.attributes) attributes[name] = value;
    return [node.tagName, attributes, [...node.childNodes].filter((n) => n.nodeType !== Node.TEXT_NODE || n.data.trim()).map(tree)];
  };
  const patterns = {};
  for (const pattern of document.querySelectorAll(".defs pattern")) patterns[pattern.id] = tree(pattern);
  const ofPatterns = { ...styles };
  return [...document.querySelectorAll("#main figure")].map((figure) => {
    for (const key of Object.keys(styles)) delete styles[key];
    const svg = figure.querySelector(".plot > svg");
    const legend = [...figure.querySelectorAll(".legend li")].map((li) => [tree(li.querySelector("svg").firstChild), li.textContent]);
    return { title: figure.querySelector("h3").textContent, grain: figure.querySelector(".grain").textContent.trim(), size: svg.getAttribute("viewBox").split(" ").slice(2).map(Number),
      legend, layers: [...svg.children].filter((n) => n.tagName !== "title").map(tree), styles: { ...styles }, patterns, ofPatterns };
  });
})`;

const slug = (title) => title.toLowerCase().replace(/,.*/, "").replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");
const escape = (text) => text.replace(/[&<>"\u00a0]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\u00a0": "&#160;" })[c]);
const rounded = (text) => text.replace(/-?\d+\.\d+(e-?\d+)?/g, (n) => String(Math.round(Number(n) * 10) / 10 + 0));

function colour(value) {
  const parts = /^rgb\((\d+), (\d+), (\d+)\)$/.exec(value);
  if (parts) return `#${parts.slice(1).map((n) => Number(n).toString(16).padStart(2, "0")).join("")}`;
  return value.replace(/^url\("?[^#]*#([^")]+)"?\)$/, "url(#$1)");
}

// One element in each line, attributes by name, and each part of a long path in a line of its own.
function written([tag, attributes, children], indent) {
  const names = Object.keys(attributes).sort();
  const text = (name) => escape(name === "d" && attributes.d.length > 80 ? rounded(attributes.d).replace(/(?!^)M/g, "\nM") : rounded(attributes[name]));
  const open = `${indent}<${tag}${names.map((name) => ` ${name}="${text(name)}"`).join("")}`;
  if (children.length === 0) return `${open}/>\n`;
  if (children.every((child) => typeof child === "string")) return `${open}>${escape(children.join(""))}</${tag}>\n`;
  return `${open}>\n${children.map((child) => written(child, `${indent}  `)).join("")}${indent}</${tag}>\n`;
}

const isEmpty = ([tag, , children]) => ["g", "svg"].includes(tag) && children.length === 0;

// The title, the legend below it, and the chart. Widths of texts are taken from their lengths.
function file(chart) {
  const [width, height] = chart.size, head = [];
  let x = 2, y = 17;
  head.push(["text", { class: "title", x: "2", y: String(y) }, [chart.title]]);
  y += 6;
  if (chart.legend.length || chart.grain) y += 13;
  const place = (text, needed, put) => {
    if (x > 2 && x + needed > width) { x = 2; y += 16; }
    put();
    x += needed + 14;
  };
  for (const [shape, text] of chart.legend) {
    place(text, 24 + text.length * 6.2, () => head.push(["g", { transform: `translate(${x} ${y - 9})` }, [shape]], ["text", { x: String(x + 24), y: String(y) }, [text]]));
  }
  if (chart.grain) place(chart.grain, chart.grain.length * 6.2, () => head.push(["text", { x: String(x), y: String(y) }, [chart.grain]]));
  const top = y + 8;
  const parts = [...head, ["g", { transform: `translate(0 ${top})` }, chart.layers.filter((layer) => !isEmpty(layer))]];
  const used = (id) => JSON.stringify(Object.values(chart.styles)).includes(`#${id}`);
  const patterns = Object.keys(chart.patterns).filter(used).sort().map((id) => chart.patterns[id]);
  const drawn = JSON.stringify(patterns);
  const styles = { text: { fill: "#545d66", "font-size": "11px" }, ...chart.styles };
  for (const [key, style] of Object.entries(chart.ofPatterns)) if (drawn.includes(`"${key}"`)) styles[key] = style;
  const rule = ([key, style]) => `    ${key === "text" ? "text" : `.${key}`} { ${Object.entries(style).map(([name, value]) => `${name}: ${colour(value)}; `).join("")}}\n`;
  const rules = Object.entries(styles).filter(([, style]) => Object.keys(style).length).sort(([a], [b]) => (a < b ? -1 : 1)).map(rule).join("");
  const body = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${top + height}" viewBox="0 0 ${width} ${top + height}">\n  <title>${escape(chart.title)}</title>\n`
    + `  <style>\n    svg { font-family: sans-serif; }\n${rules}    .title { fill: #1b1f24; font-size: 14px; font-weight: bold; }\n  </style>\n  <rect width="100%" height="100%" fill="#ffffff"/>\n`
    + (patterns.length ? written(["defs", {}, patterns], "  ") : "") + parts.map((part) => written(part, "  ")).join("") + "</svg>\n";
  return body.replace(/chart-\d+-clip/g, "clip"); // Which chart of the page it is does not matter.
}

// The files as they are drawn now, by name.
async function drawn(tab, open) {
  const files = new Map();
  for (const { name, sample, width, charts } of WANTED) {
    await open(sample);
    for (const chart of await tab.eval(`${COLLECT}(${width})`)) {
      const which = slug(chart.title);
      if (charts && !charts.includes(which)) continue;
      if (files.has(`${name}-${which}.svg`)) throw new Error(`two charts of ${sample} are called ${which}`);
      files.set(`${name}-${which}.svg`, file(chart));
    }
    for (const which of charts || []) if (!files.has(`${name}-${which}.svg`)) throw new Error(`${sample} has no chart ${which}`);
  }
  return files;
}

function difference(kept, now) {
  const a = kept.split("\n"), b = now.split("\n");
  const at = a.findIndex((line, i) => line !== b[i]);
  const i = at < 0 ? a.length : at, cut = (line) => (line === undefined ? "the end" : JSON.stringify(line.slice(0, 160)));
  return `line ${i + 1} is ${cut(b[i])}, not ${cut(a[i])}`;
}

// Compares, or writes. `open` opens a sample's page.
async function checkSnapshots(tab, open, expect) {
  const files = await drawn(tab, open);
  for (const [name, text] of files) {
    const wrong = await tab.eval(`new DOMParser().parseFromString(${JSON.stringify(text)}, "image/svg+xml").querySelector("parsererror")?.textContent ?? null`);
    expect(wrong === null, `${name}: not a picture: ${wrong}`);
  }
  if (process.env.UPDATE_SNAPSHOTS) {
    fs.rmSync(FOLDER, { recursive: true, force: true });
    fs.mkdirSync(FOLDER);
    for (const [name, text] of files) fs.writeFileSync(path.join(FOLDER, name), text);
    return console.log(`${files.size} snapshots written`);
  }
  const hint = "UPDATE_SNAPSHOTS=1 writes the snapshots";
  const kept = fs.existsSync(FOLDER) ? fs.readdirSync(FOLDER) : [];
  for (const name of kept) expect(files.has(name), `snapshots/${name}: no chart is drawn for it; ${hint}`);
  for (const [name, text] of files) {
    if (!kept.includes(name)) { expect(false, `snapshots/${name} is missing; ${hint}`); continue; }
    const before = fs.readFileSync(path.join(FOLDER, name), "utf8");
    expect(before === text, `snapshots/${name}: ${difference(before, text)}; ${hint}`);
  }
  console.log(`${files.size} charts compared with their snapshots`);
}

module.exports = { checkSnapshots };
