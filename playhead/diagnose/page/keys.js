// Going about in the page: links to events, keys and search.

class Reader {
  constructor() {
    addEventListener("hashchange", () => this.go(location.hash.slice(1)));
    addEventListener("keydown", (event) => this.key(event));
    byId("search").addEventListener("input", () => this.search());
    byId("search").form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.nextHit();
    });
    byId("all").addEventListener("click", () => this.showAll());
  }

  /** Read this: `places` has the cards by id, `events` the events by id, and `rows` the rows of the waterfall by card. */
  show(root, places, events, rows = new Map()) {
    const before = this.current?.id;
    Object.assign(this, { root, places, events, rows, current: null, hits: [], cut: null, texts: new Map() });
    for (const long of document.querySelectorAll(".clamp")) long.addEventListener("click", () => long.classList.toggle("open"));
    if (byId("search").value) this.search();
    if (this.places.has(before)) this.mark(this.places.get(before));
    else this.go(location.hash.slice(1));
  }

  // --- going to an event ---------------------------------------------------------------------------------------------

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
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea")) return;
    const action = {
      j: () => this.move(1),
      k: () => this.move(-1),
      f: () => this.nextFinding(),
      n: () => this.nextHit(),
      a: () => this.showAll(),
      "/": () => search.select(),
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
    byId("cut").textContent = words ? this.unsearched() : "";
  }

  /** Return that texts are cut, if any are: a search cannot find what was cut. */
  unsearched() {
    this.cut ??= [...this.events.keys()].reduce((sum, id) => sum + [...this.textOf(id).matchAll(CUT)].length, 0);
    return this.cut ? `${this.cut === 1 ? "1 text is" : `${count(this.cut)} texts are`} cut; what was cut is not searched` : "";
  }

  textOf(id) {
    if (!this.texts.has(id)) {
      const { kind, data } = this.events.get(id);
      this.texts.set(id, `${id} ${kind} ${readable(data)}`.toLowerCase());
    }
    return this.texts.get(id);
  }

  nextHit() {
    if (this.hits.length === 0) return;
    this.hit = (this.hit + 1) % this.hits.length;
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

function byId(id) {
  return document.getElementById(id);
}
