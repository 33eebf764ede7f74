// The page of many runs: figures, how they ended, time and cost of each, and a table that sorts and filters.

const TONES = { answered: "model", stopped: "flag", failed: "fail", running: "agent", unreadable: "fail", damaged: "fail" };
const ORDER = ["answered", "stopped", "failed", "running", "interrupted", "open", "resumed", "unreadable", "damaged"];
const NUMBERS = {
  duration_ms: { title: "time", text: (run) => (run.duration_ms == null ? "" : time(run.duration_ms)), format: time },
  total_tokens: { title: "tokens", text: (run) => atLeast(run.total_tokens, run.usage_unknown, count), format: count },
  cost_usd: { title: "cost", text: (run) => atLeast(run.cost_usd, run.cost_unknown, money), format: money },
};
const LAYERS = ["", "model", "agent", "flag", "fail"]; // of the dots, the last one on top
const isServed = "served" in document.body.dataset;
const state = { sort: "started_us", down: true, endings: new Set(), chosen: new Set(), current: null };
const kept = history.state; // of this entry, when the reader comes back to it
let runs = [];
let total = 0; // runs that there are: the page may have only the first of them
let order = "newest";

if (kept) {
  Object.assign(state, { sort: kept.sort, down: kept.down, endings: new Set(kept.endings), chosen: new Set(kept.chosen), current: kept.current });
  byId("search").value = kept.words;
}
live(() => {
  const page = JSON.parse(byId("data").textContent);
  runs = page.runs.map((run) => ({ ...run, ...figuresOf(run), ending: run.sound ? run.ending : "damaged", words: wordsOf(run) }));
  total = page.total;
  order = page.fields.some(({ name, value }) => name === "sort" && value) ? "first" : "newest";
  addIntervals(page.effects);
  draw(page.fields.some((field) => field.value));
});
listen();

/** Return the figures that are numbers: one that a file makes too large for JavaScript is not known. */
function figuresOf(run) {
  return Object.fromEntries(Object.keys(NUMBERS).map((name) => [name, Number.isFinite(run[name]) ? run[name] : null]));
}

/** Return what a run is found by. */
function wordsOf(run) {
  return [run.label, run.run_id, run.agent, run.model, run.task, run.ending, run.terminated_by, run.output].join(" ").toLowerCase();
}

function atLeast(value, unknown, format) {
  return value == null ? "?" : `${format(value)}${unknown ? "+?" : ""}`;
}

// --- what is shown -----------------------------------------------------------------------------------------------------

function draw(isFiltered = false) {
  const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = runs.filter((run) => words.every((word) => run.words.includes(word)));
  const shown = sorted(found.filter((run) => state.endings.size === 0 || state.endings.has(run.ending)));
  byId("found").replaceChildren(words.length ? plural(found.length, "run") : h("kbd", {}, "/"));
  const all = runs.length < total ? `the ${order} ${count(runs.length)} of ${plural(total, "run")}` : plural(total, "run");
  document.querySelector(".bar .id").textContent = shown.length === runs.length ? all : `${count(shown.length)} of ${all}`;
  byId("overview").replaceChildren(...partly(all), figures(shown), endings(found), charts(shown));
  byId("runs").replaceChildren(...(runs.length ? [table(shown)] : [nothing(isFiltered)]));
  compare();
  remember();
}

/** Return what says that there are more runs than these. */
function partly(all) {
  if (runs.length >= total) return [];
  const more = new URLSearchParams(location.search);
  more.set("limit", total);
  return [h("p", { class: "partly" }, `Figures, charts and the table are of ${all}. `, h("a", { href: `/?${more}` }, `limit=${total} shows all`))];
}

function remember() {
  history.replaceState({ ...state, endings: [...state.endings], chosen: [...state.chosen], words: byId("search").value }, "");
}

function nothing(isFiltered) {
  return h("p", { class: "soft" }, isFiltered ? "No run is as the filters say." : ["No runs yet. ", h("code", {}, "playhead demo"), " records one."]);
}

function sorted(some) {
  const key = (run) => run[state.sort] ?? (typeof runs[0][state.sort] === "string" ? "" : -1);
  const sign = state.down ? -1 : 1;
  return some.sort((one, other) => sign * (key(one) > key(other) ? 1 : key(one) < key(other) ? -1 : 0));
}

function known(some, name) {
  return some.filter((run) => run[name] != null);
}

/** Return the value below which this share of the runs lies, one that occurs. */
function quantile(some, name, share) {
  const values = known(some, name).map((run) => run[name]).sort((one, other) => one - other);
  return values[Math.max(Math.ceil(share * values.length) - 1, 0)];
}

function figures(shown) {
  const sum = (name) => known(shown, name).reduce((total, run) => total + run[name], 0);
  const isPartly = (name, unknown) => shown.some((run) => run[name] == null || run[unknown]);
  const total = (name, unknown, format) => (known(shown, name).length ? `${isPartly(name, unknown) ? "≥ " : ""}${format(sum(name))}` : "not known");
  const figure = (title, value, more) => h("div", {}, h("dt", {}, title), h("dd", {}, value, more && h("small", {}, ` ${more}`)));
  const answered = shown.filter((run) => run.ending === "answered").length;
  const timed = known(shown, "duration_ms").length > 0;
  return h(
    "dl",
    { class: "figures" },
    figure("answered", count(answered), `of ${count(shown.length)}`),
    figure("median time", timed ? time(quantile(shown, "duration_ms", 0.5)) : "not known"),
    figure("95 % are below", timed ? time(quantile(shown, "duration_ms", 0.95)) : "not known"),
    figure("tokens", total("total_tokens", "usage_unknown", count)),
    figure("cost", total("cost_usd", "cost_unknown", money)),
  );
}

/** Return how the runs ended: a bar, and a button for each ending, which shows those runs alone. */
function endings(found) {
  const groups = Map.groupBy(found, (run) => run.ending);
  const names = ORDER.filter((name) => groups.has(name) || state.endings.has(name));
  const amount = (name) => groups.get(name)?.length ?? 0;
  const toggle = (name) => () => {
    if (!state.endings.delete(name)) state.endings.add(name);
    draw();
  };
  const button = (name) =>
    h("button", { type: "button", "data-tone": TONES[name] ?? "", "aria-pressed": state.endings.has(name), click: toggle(name) }, h("b", {}, count(amount(name))), ` ${name}`);
  return h(
    "div",
    { class: "endings" },
    h("div", { class: "shares", "aria-hidden": "true" }, names.map((name) => h("i", { "data-tone": TONES[name] ?? "", "--share": amount(name) }))),
    h("p", {}, names.map(button)),
  );
}

// --- a dot for each run ------------------------------------------------------------------------------------------------

function charts(shown) {
  const inOrder = [...shown].sort((one, other) => one.started_us - other.started_us);
  const drawn = Object.keys(NUMBERS).filter((name) => inOrder.some((run) => run[name]));
  return h("div", { class: "charts" }, drawn.map((name) => dots(name, known(inOrder, name))));
}

/** Return a figure with a dot for each run, the oldest on the left, and lines at the median and at 95 %. */
function dots(name, points) {
  const { title, format } = NUMBERS[name];
  const most = Math.max(...points.map((run) => run[name])) || 1;
  const [middle, high] = [0.5, 0.95].map((share) => quantile(points, name, share));
  const x = (place) => ((place + 0.5) / points.length) * 1000;
  const y = (value) => 100 - Math.sqrt(value / most) * 96; // one run of many times the median leaves the others apart
  const plain = `median ${format(middle)} · most ${format(most)}`;
  const tones = Map.groupBy(points.entries(), ([, run]) => TONES[run.ending] ?? "");
  const path = (tone, some) => svg("path", { "data-tone": tone, d: some.map(([place, run]) => `M${x(place).toFixed(1)} ${y(run[name]).toFixed(1)}h0`).join("") });
  const level = (at, kind) => svg("line", { class: kind, x1: 0, x2: 1000, y1: y(at), y2: y(at) });
  const drawing = svg(
    "svg",
    { viewBox: "0 0 1000 100", preserveAspectRatio: "none", role: "img", class: points.length > 600 ? "fine" : "" },
    svg("title", {}, `${title} of each run: ${plain}, 95 % are at or below ${format(high)}`),
    svg("line", { x1: 0, x2: 1000, y1: 100, y2: 100 }), level(middle, "middle"), level(high, "high"), LAYERS.filter((tone) => tones.has(tone)).map((tone) => path(tone, tones.get(tone))),
  );
  return h("figure", { class: "chart dots" }, h("figcaption", {}, `${title}, square roots`, h("output", {}, plain)), drawing);
}

/** Put the interval of each effect beside its row: where no change lies in it, it shows none. */
function addIntervals(effects) {
  for (const [place, { difference, low, high }] of effects.entries()) {
    const cell = document.querySelectorAll(".effects tr")[place + 1]?.lastElementChild;
    if (!cell || difference == null || cell.firstChild) continue;
    const [from, to] = [low ?? difference, high ?? difference];
    const most = Math.max(Math.abs(from), Math.abs(to), Math.abs(difference)) * 1.15 || 1;
    const x = (value) => 50 + (value / most) * 48;
    cell.append(
      svg(
        "svg",
        { viewBox: "0 0 100 16", class: "interval", role: "img" },
        svg("title", {}, "the interval beside no change"),
        svg("line", { class: "base", x1: 50, x2: 50, y1: 1, y2: 15 }),
        low != null && svg("path", { d: `M${x(from)} 8H${x(to)}` }),
        svg("circle", { cx: x(difference), cy: 8, r: 2.5 }),
      ),
    );
  }
}

// --- the table ---------------------------------------------------------------------------------------------------------

function table(shown) {
  const columns = { ending: "ended", task: "task", started_us: "started", ...Object.fromEntries(Object.entries(NUMBERS).map(([name, { title }]) => [name, title])) };
  const heading = ([name, title]) => {
    const isSorted = state.sort === name;
    const click = () => {
      Object.assign(state, { sort: name, down: isSorted ? !state.down : !["ending", "task"].includes(name) });
      draw();
    };
    const mark = isSorted ? (state.down ? " ↓" : " ↑") : "";
    return h("th", { "aria-sort": isSorted ? (state.down ? "descending" : "ascending") : null, class: name === "task" ? "what" : name }, h("button", { type: "button", click }, title + mark));
  };
  return h("table", { class: "runs" }, h("thead", {}, h("tr", {}, isServed && h("th", {}), Object.entries(columns).map(heading))), h("tbody", {}, shown.map(row)));
}

function row(run) {
  const address = `/runs/${encodeURIComponent(run.run_id)}`;
  const task = run.task || "(no task)";
  const choose = () => choosing(run.run_id);
  const why = run.terminated_by && run.ending !== "answered" ? run.terminated_by : "";
  const versus = isServed && run.replay_of && h("a", { href: `/diff?a=${encodeURIComponent(run.replay_of)}&b=${encodeURIComponent(run.run_id)}` }, "against its original");
  return h(
    "tr",
    { id: `r-${run.run_id}`, class: run.run_id === state.current ? "current" : null },
    isServed && h("td", {}, h("input", { type: "checkbox", "aria-label": "choose to compare", change: choose, checked: state.chosen.has(run.run_id) })),
    h("td", { class: "ending", "data-tone": TONES[run.ending] ?? "" }, h("b", {}, run.ending), h("small", {}, why)),
    h(
      "td",
      { class: "what" },
      isServed ? h("a", { href: address }, task) : h("span", {}, task),
      run.output && h("small", { class: "output", title: run.output.slice(0, 2000) }, run.output.slice(0, 300)),
      h("small", {}, [run.label, run.agent, run.model, run.run_id].filter(Boolean).join(" · "), versus && " · ", versus),
    ),
    h("td", {}, run.started_us ? moment(run.started_us, "short") : "?"),
    Object.values(NUMBERS).map(({ text }) => h("td", {}, text(run))),
  );
}

function choosing(id) {
  if (!state.chosen.delete(id)) state.chosen.add(id);
  compare();
  remember();
}

/** Offer to compare, once two runs are chosen: the older one with the newer one. */
function compare() {
  const two = runs.filter((run) => state.chosen.has(run.run_id)).sort((one, other) => one.started_us - other.started_us);
  const [a, b] = two.map((run) => encodeURIComponent(run.run_id));
  byId("compare").hidden = two.length !== 2;
  if (two.length === 2) byId("compare").href = `/diff?a=${a}&b=${b}`;
}

// --- keys --------------------------------------------------------------------------------------------------------------

function listen() {
  const search = byId("search");
  search.addEventListener("input", () => draw());
  search.form.addEventListener("submit", (event) => event.preventDefault());
  document.querySelector(".filters form")?.addEventListener("formdata", ({ formData }) => {
    const given = [...formData].filter(([, value]) => value);
    for (const name of [...formData.keys()]) formData.delete(name);
    for (const field of given) formData.append(...field);
  });
  const actions = {
    j: () => move(1),
    k: () => move(-1),
    Enter: () => document.querySelector("tr.current a")?.click(),
    x: () => document.querySelector("tr.current input")?.click(),
    c: () => byId("compare").hidden || byId("compare").click(),
    "/": () => search.select(),
  };
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && event.target === search) {
      search.value = "";
      search.blur();
      draw();
    }
    const isElsewhere = event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input:not([type=checkbox]), button, a, summary");
    if (isElsewhere || !Object.hasOwn(actions, event.key)) return;
    event.preventDefault();
    actions[event.key]();
  });
}

function move(by) {
  const rows = [...document.querySelectorAll(".runs tbody tr")];
  const next = rows[Math.min(Math.max(rows.findIndex((each) => each.classList.contains("current")) + by, 0), rows.length - 1)];
  if (next) mark(next.id.slice(2));
}

function mark(id) {
  state.current = id;
  for (const each of document.querySelectorAll("tr.current")) each.classList.remove("current");
  byId(`r-${id}`).classList.add("current");
  remember();
  byId(`r-${id}`).scrollIntoView({ block: "nearest" });
}
