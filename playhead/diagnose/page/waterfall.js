// The waterfall: a row for each call, with its bar where it was in the time of the run; the index of the thread.

class Waterfall {
  constructor(run, thread) {
    this.run = run;
    this.thread = thread;
    this.rows = new Map(); // by the card of the call
    const cards = [...thread.element.querySelectorAll(".card")].map((card) => run.calls.get(Number(card.id.slice(1))));
    const calls = cards.filter(Boolean);
    this.measure(calls);
    let turn = null;
    const rows = calls.map((call) => {
      const isNew = call.owner === "root" && call.iteration !== turn;
      if (isNew) turn = call.iteration;
      return this.row(call, isNew && turn != null ? `turn ${turn}` : "");
    });
    this.element = h("div", { class: "fall" }, this.axis(), rows);
  }

  /** Find the place of each time at which something begins or ends; where one gap takes most of the run, by square roots. */
  measure(calls) {
    const { duration } = this.run;
    const times = [...new Set([0, ...calls.flatMap((call) => [call.at, call.at + (call.took ?? 0)]), duration])].sort((a, b) => a - b);
    const gaps = times.map((time, place) => time - (times[place - 1] ?? 0));
    this.isEven = gaps.every((gap) => gap <= duration / 2);
    let sum = 0;
    const sums = gaps.map((gap) => (sum += this.isEven ? gap : Math.sqrt(gap)));
    this.places = new Map(times.map((time, place) => [time, sums[place] / sum]));
  }

  axis() {
    const { duration } = this.run;
    const marks = this.isEven ? ["0", time(duration / 3), time((duration / 3) * 2), time(duration)] : ["0", "(not to scale)", time(duration)];
    return h("div", { class: "axis" }, marks.map((mark, place) => h("span", { "--at": `${(100 * place) / (marks.length - 1)}%` }, mark)));
  }

  row(call, turn) {
    const [start, end] = [call.at, call.took == null ? this.run.duration : call.at + call.took].map((at) => 100 * this.places.get(at));
    const asked = call.kind === "tool" ? signature(call.event.data.args) : "";
    const answered = call.end ? this.outcome(call) : "no result";
    const [finding] = this.run.findingsOf(call.event, call.end, call.answer);
    const row = h(
      "a",
      { class: `row${call.end ? "" : " open"}${finding && finding.severity !== "info" ? " found" : ""}`, href: `#e${call.event.seq}`, "data-tone": this.run.tone(call) },
      h("span", { class: "seq" }, turn),
      h("span", { class: "seq" }, `e${call.event.seq}${this.run.findingsAt.has(call.end?.seq) ? ` e${call.end.seq}` : ""}`),
      h(
        "span",
        { class: "what", "--depth": call.owner.split("/").length - 1 },
        finding && h("span", { class: "sign", "data-tone": finding.severity, title: `${finding.label}: ${finding.what}` }, "⚑ "),
        h("span", { class: "name" }, nameOfCall(call)),
        asked && ` ${asked.slice(0, 240)}`,
        h("span", { class: "said" }, `${asked ? " → " : " "}${answered.slice(0, 240)}`),
      ),
      h("span", { class: "seq" }, time(call.took)),
      h("i", { "--at": `${start}%`, "--took": `${end - start}%` }),
    );
    this.rows.set(this.thread.places.get(`e${call.event.seq}`), row);
    return row;
  }

  /** Return a result, an answer or an error. */
  outcome({ kind, end }) {
    if (end.data.error) return errorOf(end.data);
    if (kind === "model") return saidBy(end.data) || `calls ${(end.data.tool_calls ?? []).map((call) => call.name).join(", ")}`;
    const result = end.data.result ?? null;
    return typeof result === "string" ? result : JSON.stringify(result);
  }
}
