// Elements and figures. Text from a trace becomes text nodes: nothing here parses HTML.

const SVG = "http://www.w3.org/2000/svg";

/** Return an element. A function among the attributes listens, and `--name` sets a property of the style. */
function h(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** Return an element of a drawing. */
function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value == null || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else if (name.startsWith("--")) element.style.setProperty(name, value);
    else element.setAttribute(name, value);
  }
  element.append(...children.flat(2).filter((child) => child != null && child !== false && child !== ""));
  return element;
}

const count = new Intl.NumberFormat("en").format;

/** Return milliseconds in words. */
function time(ms) {
  if (ms == null) return "no end";
  if (ms < 1000) return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
  if (ms < 60000) return `${(ms / 1000).toFixed(ms < 10000 ? 2 : 1)} s`;
  return `${Math.floor(ms / 60000)} min ${Math.round((ms % 60000) / 1000)} s`;
}

/** Return US dollars in words. */
function money(usd) {
  return usd === 0 ? "$0" : `$${usd.toFixed(usd < 0.01 ? 6 : 4)}`;
}

/** Return a time of day and its date. */
function moment(us, timeStyle = "medium") {
  return new Date(us / 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle });
}

function plural(number, noun) {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}

/** Return JSON as people read it: text as it is, small values on one line. */
function readable(value) {
  if (typeof value === "string") return value;
  const line = JSON.stringify(value);
  return line === undefined ? "" : line.length <= 90 ? line : JSON.stringify(value, null, 2);
}

const SHOWN = { characters: 1200, lines: 14 };

const CUT = /\\?n?… ([\d,]+) more characters: see the trace/g; // what the page has in place of the rest of a long text

/** Return an element with a text, cut if it is long, and a button that shows all of it. */
function passage(name, attributes, text) {
  if (text === "") return null;
  const lines = text.split("\n", SHOWN.lines + 1);
  const short = lines.slice(0, SHOWN.lines).join("\n").slice(0, SHOWN.characters);
  const element = h(name, attributes, short.length < text.length ? `${short}…` : text);
  if (short.length + 80 >= text.length && lines.length <= SHOWN.lines) {
    element.textContent = text;
    return element;
  }
  const has = text.replace(CUT, "").trimEnd().length;
  const lacks = [...text.matchAll(CUT)].reduce((sum, [, number]) => sum + Number(number.replaceAll(",", "")), 0);
  const what = lacks ? `the first ${count(has)} of ${count(has + lacks)}` : `all ${count(text.length)}`;
  const more = h("button", { class: "more", type: "button" }, `show ${what} characters`);
  more.addEventListener("click", () => {
    element.textContent = text;
    more.remove();
  });
  return [element, more];
}

/** Return a folded part whose content is made when it is first opened. */
function folded(title, make, attributes = {}) {
  const details = h("details", attributes, h("summary", {}, title));
  details.addEventListener("toggle", () => details.append(...[make()].flat(2)), { once: true });
  return details;
}
