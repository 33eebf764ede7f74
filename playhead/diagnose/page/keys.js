// Going about in the page: links to events, keys, search, light and dark.

class Reader {
  constructor() {
    addEventListener("hashchange", () => this.followHash());
    addEventListener("keydown", (event) => this.key(event));
    addEventListener("scroll", () => this.follow(), { passive: true });
    byId("search").addEventListener("input", () => this.search());
    byId("search").form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.nextHit(1);
    });
    byId("all").addEventListener("click", () => this.showAll());
    listenToButtons();
  }

  /** Read this: `places` has the cards by id, `events` the events by id, and `rows` the rows of the waterfall by card. */
  show(root, places, events, rows = new Map()) {
    const before = this.current?.id;
    Object.assign(this, { root, places, events, rows, current: null, hits: [], texts: new Map() });
    for (const long of document.querySelectorAll(".clamp")) long.addEventListener("click", () => long.classList.toggle("open"));
    if (byId("search").value) this.search();
    if (this.places.has(before)) this.mark(this.places.get(before));
    else this.followHash();
  }

  // --- going to an event ---------------------------------------------------------------------------------------------

  followHash() {
    this.go(location.hash.slice(1));
  }

  go(id) {
    const card = this.places.get(id);
    if (!card) return;
    if (card.classList.contains("minor")) this.showAll(true);
    for (let above = card.closest("details"); above; above = above.parentElement.closest("details")) above.open = true;
    this.mark(card);
    card.scrollIntoView({ block: "center" });
    requestAnimationFrame(() => card.scrollIntoView({ block: "center" })); // what came into view has its height now
    history.replaceState(null, "", `#${id}`);
  }

  mark(card) {
    for (const each of [this.current, this.rows.get(this.current)]) each?.classList.remove("current");
    const row = this.rows.get(card);
    for (const each of [card, row]) each?.classList.add("current");
    this.current = card;
    card.dispatchEvent(new Event("pointerenter")); // which offers its fields
    reveal(row);
  }

  /** Show in the waterfall what is being read, once the page has come to rest. */
  follow() {
    clearTimeout(this.following);
    this.following = setTimeout(() => {
      const at = [0.3, 0.4, 0.5].map((part) => document.elementFromPoint(innerWidth * 0.7, innerHeight * part));
      const row = at.map((element) => this.rows.get(element?.closest(".card"))).find(Boolean);
      this.seen?.classList.remove("seen");
      row?.classList.add("seen");
      this.seen = row;
      reveal(row);
    }, 100);
  }

  cards() {
    return [...this.root.querySelectorAll(document.body.classList.contains("everything") ? ".card" : ".card:not(.minor)")];
  }

  move(by) {
    const cards = this.cards();
    const place = cards.indexOf(this.current);
    const next = cards[Math.min(Math.max(place + by, 0), cards.length - 1)];
    if (next) this.go(next.id);
  }

  nextFinding() {
    const cards = this.cards().filter((card) => card.querySelector(".note") || card.dataset.tone === "fail");
    const here = this.current;
    const next = cards.find((card) => here && here.compareDocumentPosition(card) & Node.DOCUMENT_POSITION_FOLLOWING) ?? cards[0];
    if (next) this.go(next.id);
  }

  showAll(on = !document.body.classList.contains("everything")) {
    document.body.classList.toggle("everything", on);
    byId("all").setAttribute("aria-pressed", on);
  }

  // --- keys ----------------------------------------------------------------------------------------------------------

  key(event) {
    const search = byId("search");
    if (event.key === "Escape" && event.target === search) {
      search.value = "";
      this.search();
      search.blur();
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea") || byId("keys").open) return;
    const action = {
      j: () => this.move(1),
      k: () => this.move(-1),
      f: () => this.nextFinding(),
      n: () => this.nextHit(1),
      N: () => this.nextHit(-1),
      a: () => this.showAll(),
      t: switchTheme,
      g: () => scrollTo(0, 0),
      G: () => scrollTo(0, document.documentElement.scrollHeight),
      "/": () => search.select(),
      "?": () => byId("keys").showModal(),
    }[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  // --- search --------------------------------------------------------------------------------------------------------

  search() {
    const words = byId("search").value.trim().toLowerCase();
    this.hits = words ? [...this.events.keys()].filter((id) => this.textOf(id).includes(words)) : [];
    this.hit = -1;
    const cards = new Set(this.hits.map((id) => this.places.get(id)));
    for (const [card, row] of this.rows) row.classList.toggle("dim", words !== "" && !cards.has(card));
    byId("found").textContent = words ? plural(this.hits.length, "event") : "/";
    paint(words, [...cards].slice(0, 300));
  }

  textOf(id) {
    if (!this.texts.has(id)) {
      const { kind, data } = this.events.get(id);
      this.texts.set(id, `${id} ${kind} ${readable(data)}`.toLowerCase());
    }
    return this.texts.get(id);
  }

  nextHit(by) {
    if (this.hits.length === 0) return;
    this.hit = (this.hit + by + this.hits.length) % this.hits.length;
    byId("found").textContent = `${this.hit + 1} of ${this.hits.length}`;
    this.go(this.hits[this.hit]);
  }
}

/** Scroll the waterfall, and nothing else, to a row that is out of its sight. */
function reveal(row) {
  const pane = row?.closest("aside");
  if (!pane) return;
  const top = row.offsetTop - pane.scrollTop;
  if (top < 100 || top > pane.clientHeight - 60) pane.scrollTop = row.offsetTop - pane.clientHeight / 2;
}

/** Paint where the words stand. */
function paint(words, cards) {
  if (!globalThis.CSS?.highlights) return;
  const ranges = [];
  for (const card of words ? cards : []) {
    const walker = document.createTreeWalker(card, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const place = walker.currentNode.data.toLowerCase().indexOf(words);
      if (place < 0 || place + words.length > walker.currentNode.length) continue;
      const range = new Range();
      range.setStart(walker.currentNode, place);
      range.setEnd(walker.currentNode, place + words.length);
      ranges.push(range);
    }
  }
  CSS.highlights.set("found", new Highlight(...ranges));
}

function listenToButtons() {
  byId("help").addEventListener("click", () => byId("keys").showModal());
  byId("theme").addEventListener("click", switchTheme);
}

function byId(id) {
  return document.getElementById(id);
}

// --- light and dark ----------------------------------------------------------------------------------------------------

function switchTheme() {
  const { dataset } = document.documentElement;
  const isDark = dataset.theme ? dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  dataset.theme = keep(isDark ? "light" : "dark");
}

/** Keep a theme, if one is given, and return the kept one. */
function keep(theme) {
  try {
    if (theme) localStorage.setItem("playhead-theme", theme);
    return localStorage.getItem("playhead-theme") ?? "";
  } catch {
    return theme ?? ""; // a page from disk may not be allowed to keep anything
  }
}

document.documentElement.dataset.theme = keep();
