// Small tools.
const SVG = "http://www.w3.org/2000/svg";
const MAX_TEXT = 20000; // Characters of one value; a longer one would stall the layout.
const COLOURS = /\u001b\[[0-9;]*m/g; // A terminal's colours, which logs may hold.
// Characters that change the order or hide parts of a line: C0 and C1 controls, bidi overrides.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

function number(value) {
  if (typeof value === "string" && value.trim() !== "") value = Number(value);
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

// A time in ms, within 300 years of the first block, so that steps on the axis stay exact.
const moment = (value, t = number(value)) => (t === null ? null : clamp(t, -1e13, 1e13));
const list = (value) => Array.isArray(value) ? value : [];
const records = (value) => list(value).filter((item) => item !== null && typeof item === "object");

function clean(value) {
  if (value === null || value === undefined) return "";
  let text = typeof value === "object" ? JSON.stringify(value) : String(value);
  if (text.length > MAX_TEXT) text = text.slice(0, MAX_TEXT) + `… (${text.length - MAX_TEXT} more characters)`;
  return text.replace(COLOURS, "").replace(UNSEEN, (c) => `⟨U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

function short(text, length) {
  const line = text.replace(/\s+/g, " ");
  const letters = Array.from(line.slice(0, length * 2 + 2));
  return letters.length > length ? letters.slice(0, Math.max(1, length - 1)).join("") + "…" : line;
}

// Names of nodes differ at their ends, which stay.
function shortMiddle(text, length) {
  const letters = Array.from(text.slice(0, 400)), end = Math.floor((length - 1) / 2);
  return letters.length > length ? [...letters.slice(0, length - 1 - end), "…", ...letters.slice(letters.length - end)].join("") : text;
}

function put(node, props, children) {
  for (const [key, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : String(value));
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const el = (tag, props, ...children) => put(document.createElement(tag), props, children);
const draw = (tag, props, ...children) => put(document.createElementNS(SVG, tag), props, children);
const byId = (id) => document.getElementById(id);
const button = (label, onclick, props) => el("button", { type: "button", onclick, ...props }, label);

const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });
const count = (value, one, many) => `${grouped.format(value)} ${value === 1 ? one : many || one + "s"}`;

function amount(value) {
  if (value === null) return "unknown";
  if (value !== 0 && (Math.abs(value) < 0.01 || Math.abs(value) >= 1e12)) return value.toExponential(1);
  return grouped.format(value);
}

// A time as a person writes it: 340 ms, 12.5 s, 2 min 05 s, 1 h 02 min.
function time(ms) {
  if (ms === null) return "unknown";
  const sign = ms < 0 ? "−" : "";
  const t = Math.abs(ms);
  const two = (n) => String(n).padStart(2, "0");
  if (t < 1000) return `${sign}${Number(t.toFixed(1))} ms`;
  if (t < 120000) return `${sign}${Number((t / 1000).toFixed(3))} s`;
  const seconds = Math.round(t / 1000);
  if (seconds < 7200) return `${sign}${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
  if (seconds >= 172800) return `${sign}${grouped.format(Math.floor(seconds / 86400))} d ${two(Math.floor((seconds % 86400) / 3600))} h`;
  return `${sign}${Math.floor(seconds / 3600)} h ${two(Math.floor((seconds % 3600) / 60))} min`;
}

const date = (text) => text.replace(/^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(\.\d+)?Z$/, "$1 $2 UTC");
const words = (text) => text.replace(/_/g, " ");
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
const isNumber = (value) => value !== null;

// The first index whose value is greater than `value`, in an ascending array.
function upperBound(array, value) {
  let low = 0, high = array.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (array[middle] <= value) low = middle + 1; else high = middle;
  }
  return low;
}

// The smallest of 1, 2, 5, 10, 20, … that is at least `value`.
function niceAbove(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= value * 0.999999);
}
