// Puts the page of two runs together: their turns side by side, those that are alike folded.

const pair = JSON.parse(byId("data").textContent);
const sides = [new Thread(new Run(pair.original), "a"), new Thread(new Run(pair.replay), "b")];
const events = new Map(sides.flatMap((side) => side.run.events.map((event) => [`${side.letter}${event.seq}`, event])));
const turns = sides.map((side) => [...side.element.children]);

/** Return the rows of the table of turns: before the loop, turn by turn, after it. */
function rows() {
  const numbered = turns.map((side) => new Map(side.filter((turn) => turn.dataset.turn).map((turn) => [Number(turn.dataset.turn), turn])));
  const first = turns.map((side) => side.findIndex((turn) => turn.dataset.turn));
  const before = turns.map((side, place) => side.slice(0, Math.max(first[place], 0)));
  const after = turns.map((side, place) => side.slice(first[place] + 1).filter((turn) => !turn.dataset.turn));
  const paired = pair.turns.map((turn) => turn.map((number, place) => [numbered[place].get(number)].filter(Boolean)));
  return [before, ...paired, after].filter((row) => row.flat().length > 0);
}

const TEXTS = ["header .mono", ".said", ".why span", "pre"];

/** Return what a side did in a row: its texts, without times, tokens and ids. */
function deeds(side) {
  const cards = side.flatMap((turn) => [...turn.querySelectorAll(".card:not(.minor)")]);
  const texts = (card) => [...card.querySelectorAll(`header b, ${TEXTS}`)].map((element) => element.textContent);
  return JSON.stringify(cards.map((card) => [...texts(card), events.get(card.id).data.content])); // a prompt is folded
}

/** Return corresponding cards of a row: of the same name, in order. */
function* cardPairs([left, right]) {
  const cards = [left, right].map((side) => side.flatMap((turn) => [...turn.querySelectorAll(".card:not(.minor)")]));
  const name = (card) => card.querySelector("header b").textContent;
  const free = [...cards[1]];
  for (const card of cards[0]) {
    const place = free.findIndex((other) => name(other) === name(card));
    if (place >= 0) yield [card, free.splice(0, place + 1).at(-1)];
  }
}

function compare(row) {
  for (const [one, other] of cardPairs(row)) {
    for (const part of TEXTS) {
      const found = [one.querySelector(part), other.querySelector(part)];
      if (found.every(Boolean) && found[0].textContent !== found[1].textContent) markWords(...found);
    }
  }
}

function shown(row) {
  return h("div", { class: "pair" }, row.map((side) => h("div", {}, side.length ? side : h("p", { class: "soft" }, "(no such turn)"))));
}

const table = h("div", {});
let alike = [];

function flush() {
  if (alike.length === 0) return;
  const same = alike;
  table.append(h("details", { class: "same" }, h("summary", {}, `${plural(same.length, "turn")} alike`), same.map(shown)));
  alike = [];
}

for (const row of rows()) {
  if (deeds(row[0]) === deeds(row[1])) {
    alike.push(row);
    continue;
  }
  flush();
  if (table.childElementCount === 0 && row[0].every((turn) => !turn.dataset.turn)) {
    table.append(h("details", { class: "same" }, h("summary", {}, "before the loop: not alike, see the changed inputs"), shown(row)));
    continue;
  }
  if (!table.querySelector(".first")) table.append(h("h2", { class: "first" }, "the runs part here"));
  compare(row);
  table.append(shown(row));
}
flush();
byId("turns").append(table);
for (const each of document.querySelectorAll("[data-words]")) markWords(...each.children);
new Reader().show(table, new Map(sides.flatMap((side) => [...side.places])), events);
