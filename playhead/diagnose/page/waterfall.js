// The waterfall: a row for each call, with its bar where it was in the time of the run; the index of the thread.

class Waterfall {
  constructor(run, thread) {
    this.run = run;
    this.total = run.duration;
    this.thread = thread;
    this.rows = new Map(); // by the card of the call
    const calls = [...thread.element.querySelectorAll(".card")].map((card) => run.calls.get(Number(card.id.slice(1))));
    this.element = h("div", { class: "fall" }, this.axis(), this.groups(calls.filter(Boolean)));
  }

  axis() {
    const marks = [0, 1 / 3, 2 / 3, 1].map((part) => h("span", { "--at": `${part * 100}%` }, part ? time(part * this.total) : "0"));
    return h("div", { class: "axis" }, this.overview(), h("div", {}, marks));
  }

  /** Return the whole run in one line: what failed stands out, however long the run is. */
  overview() {
    const lines = Map.groupBy(this.run.calls.values(), (call) => this.run.tone(call));
    const x = (ms) => ((ms / this.total) * 1000).toFixed(2);
    const path = (call) => `M${x(call.at)} 0H${Math.max(x(call.at + (call.took ?? 0)), Number(x(call.at)) + 2)}`;
    const drawn = ["model", "agent", "tool", "fail"].map((tone, place) =>
      svg("path", { "data-tone": tone, d: (lines.get(tone) ?? []).map(path).join(""), transform: `translate(0 ${3 + 6 * place})` }),
    );
    return svg("svg", { viewBox: "0 0 1000 24", preserveAspectRatio: "none" }, drawn);
  }

  groups(calls) {
    let turn = null;
    return calls.map((call) => {
      if (call.owner !== "root" || call.iteration === turn) return this.row(call);
      turn = call.iteration;
      return [h("h3", {}, turn == null ? "outside the loop" : `Turn ${turn}`), this.row(call)];
    });
  }

  row(call) {
    const part = (ms) => `${((ms / this.total) * 100).toFixed(3)}%`;
    const asked = call.kind === "tool" ? signature(call.event.data.args) : "";
    const answered = call.end ? this.outcome(call) : "";
    const findings = [call.event, call.end].flatMap((event) => this.run.findingsAt.get(event?.seq) ?? []);
    const row = h(
      "a",
      { class: `row${call.end ? "" : " open"}`, href: `#e${call.event.seq}`, "data-tone": this.run.tone(call), title: `${asked} → ${answered}`.slice(0, 400) },
      h("span", { class: "name", "--depth": call.owner.split("/").length - 1 }, nameOfCall(call)),
      asked && h("span", { class: "asked" }, asked.slice(0, 200)),
      h("span", { class: "said" }, asked && call.end ? "→ " : "", answered.slice(0, 200)),
      findings.some(({ severity }) => severity !== "info") && h("span", { class: "sign", title: "among the findings" }, "⚑"),
      h("span", { class: "took" }, time(call.took)),
      h("i", { "--at": part(call.at), "--took": part(call.took ?? this.total - call.at) }),
    );
    this.rows.set(this.thread.places.get(`e${call.event.seq}`), row);
    return row;
  }

  /** Return a result, an answer or an error on one line. */
  outcome({ kind, end }) {
    if (end.data.error) return errorOf(end.data);
    if (kind === "model") return saidBy(end.data) || `calls ${(end.data.tool_calls ?? []).map((call) => call.name).join(", ")}`;
    const result = end.data.result ?? null;
    return typeof result === "string" ? result : JSON.stringify(result);
  }
}
