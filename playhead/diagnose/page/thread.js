// The thread: a card for each call and each other event, by turn, a sub-agent inside the call that started it.

const MINOR = new Set([
  "run-started", "tools-defined", "kernel-state-snapshot", "budget-reserved", "phase-completed", "replay-served",
  "spans-handed-over", "fact-recorded",
]);
const TONES = {
  agent: "agent", thought: "model", plan: "model", reflection: "model", critique: "model", assumption: "model",
  alternatives: "model", approval: "tool", killswitch: "fail", guardrail: "flag", nudge: "flag", hook: "flag",
  emission: "flag", provider: "flag", strategy: "agent", final: "model",
};
const SHOWN_ALREADY = new Set(["failure", "ending", "no end", "no result", "nudge", "killswitch", "guardrail"]);
const BAD = /-(failed|violation|diverged)$/;
const DEEPEST = 30; // agents inside agents; deeper ones stand at the end

class Thread {
  /** `letter` begins the ids of the events: `e`, or of two runs on one page `a` and `b`. */
  constructor(run, letter = "e") {
    Object.assign(this, { run, letter });
    this.places = new Map(); // the card of each event, by its id
    this.fields = new Map(); // the events of each card whose fields are not offered yet
    this.made = new Set(); // owners
    this.element = h("div", {}, this.turns("root"));
    for (const owner of run.owners.keys()) {
      if (!this.made.has(owner)) this.element.append(h("h3", {}, owner), ...this.turns(owner));
    }
  }

  /** Return the turns of an owner. */
  turns(owner) {
    this.made.add(owner);
    const turns = [];
    for (const event of this.run.owners.get(owner) ?? []) {
      if (this.run.within.has(event.seq)) continue; // in the card of a call
      if (turns.at(-1)?.[0].iteration !== event.iteration || turns.length === 0) turns.push([]);
      turns.at(-1).push(event);
    }
    return turns.map((events) => this.turn(events));
  }

  turn(events) {
    const cards = events.map((event) => this.card(event));
    const { iteration, at_ms: at } = events[0];
    return h("div", { class: "turn", "data-turn": iteration }, iteration != null && h("h3", {}, `Turn ${iteration}`, h("small", {}, `at ${time(at)}`)), cards);
  }

  card(event) {
    const call = this.run.calls.get(event.seq);
    const [head, ...body] = call ? this[call.kind](call) : this.other(event);
    const isMinor = MINOR.has(event.kind) || isSaidElsewhere(event);
    const events = [event, call?.end, call?.reasonMissing].filter(Boolean);
    const tone = BAD.test(event.kind) ? "fail" : call ? this.run.tone(call) : TONES[event.kind.split("-", 1)[0]];
    const id = `${this.letter}${event.seq}`;
    const card = h(
      "article",
      { class: `card${call ? "" : " line"}${isMinor ? " minor" : ""}`, id, "data-tone": tone ?? "" },
      h("a", { class: "seq", href: `#${id}` }, id),
      h("div", {}, h("header", {}, head), body, this.notes(events)),
    );
    card.addEventListener("pointerenter", () => this.offerFields(card));
    this.fields.set(card, events);
    for (const each of events) this.places.set(`${this.letter}${each.seq}`, card);
    const hasInside = call && this.run.owners.has(call.inside) && !this.made.has(call.inside) && call.owner.split("/").length < DEEPEST;
    return hasInside ? [card, h("div", { class: "inside" }, this.turns(call.inside))] : card;
  }

  model(call) {
    const answer = call.end?.data ?? {};
    const tokens = call.tokensIn == null ? null : `${count(call.tokensIn)}+${count(call.tokensOut)} tokens`;
    const figures = [tokens, call.cost ? money(call.cost) : null, time(call.took)].filter(Boolean).join(" · ");
    const asked = (answer.tool_calls ?? []).map((each) => each.name);
    return [
      [h("b", {}, nameOfCall(call)), h("span", { class: "soft" }, call.name), h("small", {}, figures)],
      answer.thinking && folded("thinking", () => passage("p", { class: "said" }, answer.thinking)),
      answer.error && h("pre", { class: "error" }, errorOf(answer)),
      passage("p", { class: "said" }, saidBy(answer)),
      asked.length > 0 && h("p", { class: "soft" }, `calls ${asked.join(", ")}`),
      this.prompt(call.event),
    ];
  }

  /** Return the exact request, folded. */
  prompt(event) {
    const sent = (event.data.messages ?? []).reduce((sum, [first, last]) => sum + last - first + 1, 0);
    const shown = ({ id, role, text }) => h("div", { class: "message" }, h("b", {}, `${id} ${role}`), passage("pre", {}, text));
    return folded(`prompt, ${plural(sent, "message")}`, () => this.run.prompt(event).map(shown));
  }

  tool(call) {
    const { args, rationale } = call.event.data;
    const inline = signature(args);
    const isLong = inline.length > 160;
    const result = call.end?.data;
    const manner = [result?.cached && "cached", result?.abandoned && "abandoned", result?.ended, result?.rung, time(call.took)];
    return [
      [h("b", {}, call.name), !isLong && h("span", { class: "mono" }, inline), h("small", {}, manner.filter(Boolean).join(" · "))],
      isLong && passage("pre", {}, readable(args)),
      rationale ? why(rationale) : call.reasonMissing && h("p", { class: "soft" }, "no reason stated"),
      !result && h("p", { class: "soft" }, "no result in the file"),
      result?.ok && passage("pre", { class: this.run.tone(call) === "fail" && "error" }, readable(result.result ?? null)),
      result?.ok === false && passage("pre", { class: "error" }, errorOf(result)),
    ];
  }

  other(event) {
    const { kind, data } = event;
    const reason = data.rationale ?? data.termination_rationale;
    if (kind !== "message-added" || data.content == null) {
      const what = data.terminated_by && data.status ? [data.status, data.terminated_by, data.error].filter(Boolean).join(": ") : event.what;
      return [[h("b", {}, kind.replaceAll("-", " ")), h("span", {}, what)], reason?.why && why(reason)];
    }
    const text = this.run.textOf(event.owner, data);
    const isPrompt = data.role === "system";
    const shown = isPrompt ? folded(`prompt, ${count(text.length)} characters`, () => h("pre", {}, text)) : passage("p", { class: "said" }, text);
    return [[h("b", {}, data.role), h("small", {}, `message ${data.id}`)], shown];
  }

  /** Add the fields of a card's events, folded: when it is pointed at, since thousands of folded parts take a second. */
  offerFields(card) {
    const events = this.fields.get(card) ?? [];
    if (!this.fields.delete(card)) return;
    const title = events.map((event) => `${this.letter}${event.seq} ${event.kind}`).join(", ");
    const fields = () => events.map((event) => passage("pre", {}, JSON.stringify(event.data, null, 2)));
    card.lastElementChild.append(folded(title, fields, { class: "raw" }));
  }

  notes(events) {
    const notes = this.run.findingsOf(...events).filter(({ label }) => !SHOWN_ALREADY.has(label));
    return notes.map((each) => h("p", { class: "note", "data-tone": each.severity }, h("b", {}, each.label), ` ${each.what}`));
  }
}

/** Return whether another card has the text of an event. */
function isSaidElsewhere({ kind, data }) {
  return (kind === "message-added" && data.content == null) || (kind === "thought" && data.name == null);
}

function why({ why: text, confidence, refs = [] }) {
  const sure = [confidence == null ? null : `${Math.round(confidence * 100)} % sure`, ...refs].filter(Boolean).join(" · ");
  return h("p", { class: "why" }, h("span", {}, text), sure && h("small", {}, ` ${sure}`));
}
