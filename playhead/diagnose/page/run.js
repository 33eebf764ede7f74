// A run as the page reads it: its calls, each from its first event to its last, its messages by id, its findings by event.

const STARTS = new Set(["llm-requested", "tool-call-started"]);
const ENDS = new Set(["llm-responded", "llm-failed", "tool-call-completed"]);

class Run {
  constructor(report) {
    Object.assign(this, report);
    this.duration = this.events.reduce((most, event) => Math.max(most, event.at_ms), 0.001); // milliseconds
    this.calls = new Map(); // by the event that begins them
    this.within = new Set(); // other events that are shown with a call
    this.named = new Map();
    this.last = new Map(); // the newest call of each owner
    this.owners = Map.groupBy(this.events, (event) => event.owner);
    this.findingsAt = new Map();
    for (const finding of this.debrief.findings) {
      for (const { seq } of finding.places) this.findingsAt.set(seq, [...(this.findingsAt.get(seq) ?? []), finding]);
    }
    const [waiting, missing] = [new Map(), new Map()];
    for (const event of this.events) {
      if (event.kind === "rationale-missing") missing.set(callOf(event), event);
      else if (STARTS.has(event.kind)) this.begin(event, waiting, missing.get(callOf(event)));
      else if (ENDS.has(event.kind)) this.end(event, waiting);
      else if (event.kind === "agent-completed") Object.assign([...this.calls.values()].find((call) => call.inside === event.owner) ?? {}, { answer: event });
      else if (event.kind === "final-answer" && this.last.has(event.owner)) this.last.get(event.owner).answer = event;
      const name = nameOf(event);
      if (name) this.named.set(name, event);
    }
  }

  begin(event, waiting, reasonMissing) {
    const { owner, iteration, data, at_ms: at } = event;
    const kind = event.kind === "llm-requested" ? "model" : "tool";
    const inside = kind === "tool" ? `${owner}/${data.tool}@${iteration ?? "-"}.${data.position}` : null;
    const call = { kind, name: data.tool ?? data.model, event, end: null, reasonMissing, owner, iteration, inside, at, took: null, ok: null };
    this.calls.set(event.seq, call);
    waiting.set(callOf(event), call);
    this.last.set(owner, call);
    if (reasonMissing) this.within.add(reasonMissing.seq);
  }

  end(event, waiting) {
    const call = waiting.get(callOf(event));
    if (!call) return;
    waiting.delete(callOf(event));
    this.within.add(event.seq);
    const usage = event.data.usage;
    const known = usage?.input_tokens > 0; // every prompt has tokens: 0 is not known
    Object.assign(call, {
      end: event,
      took: event.at_ms - call.at,
      ok: event.data.ok ?? event.kind === "llm-responded",
      tokensIn: known ? usage.input_tokens : null,
      tokensOut: known ? usage.output_tokens ?? 0 : null,
      cost: event.data.cost_usd ?? null,
    });
  }

  /** Return the findings of events, most severe first. */
  findingsOf(...events) {
    const found = new Set(events.flatMap((event) => this.findingsAt.get(event?.seq) ?? []));
    return this.debrief.findings.filter((finding) => found.has(finding));
  }

  /** Return what a call is, for its colour. */
  tone(call) {
    if (call.ok === false || this.findingsOf(call.end).some(({ label }) => label === "failure")) return "fail";
    return this.owners.get(call.inside)?.some((event) => event.kind === "agent-started") ? "agent" : call.kind;
  }

  /** Return the messages that a request sent, in order, each with its role and its text. */
  prompt({ owner, data }) {
    const messages = [];
    for (const [first, last] of data.messages ?? []) {
      for (let id = first; id <= last && this.named.has(`message ${owner} ${id}`); id += 1) {
        const message = this.named.get(`message ${owner} ${id}`).data;
        messages.push({ id, role: message.role, text: this.textOf(owner, message) });
      }
    }
    return messages;
  }

  /** Return the text of a message, which an answer or a result may hold in its place. */
  textOf(owner, { content, ref, tool_calls: calls = [] }) {
    const answer = this.named.get(`answer ${owner} ${ref?.request}`)?.data;
    const result = this.named.get(`result ${owner} ${ref?.call}`)?.data;
    if (result) return result.ok ? readable(result.result) : `error: ${errorOf(result)}`;
    const text = answer ? answer.text : content ?? "";
    const parts = typeof text === "string" ? [text] : text.map((part) => part.text ?? `[image ${part.url}]`);
    const asked = (answer?.tool_calls ?? calls).map((call) => `${call.name}(${signature(call.arguments ?? call.raw_arguments)})`);
    return [...parts, ...asked].filter(Boolean).join("\n");
  }
}

/** Return which call an event begins or ends. */
function callOf({ owner, data }) {
  return "call_id" in data ? `${owner} tool ${data.call_id}` : `${owner} model ${data.request} ${data.attempt ?? 0}`;
}

/** Return the name by which later events refer to an event. */
function nameOf({ kind, owner, data }) {
  if (kind === "message-added") return `message ${owner} ${data.id}`;
  if (kind === "llm-responded") return `answer ${owner} ${data.request}`;
  return kind === "tool-call-completed" ? `result ${owner} ${data.call_id}` : null;
}

/** Return the tool, or what the model is asked for. */
function nameOfCall({ kind, name, event }) {
  const { purpose = "think" } = event.data;
  return kind === "tool" ? name : purpose === "think" ? "model" : purpose;
}

function errorOf({ error }) {
  return error ? `${error.type}: ${error.message}` : "no reason given";
}

/** Return what a model said, without the reasons that stand beside its calls. */
function saidBy({ text = "", tool_calls: calls = [] }) {
  const reasons = /<rationale\b[^>]*>[\s\S]*?<\/rationale>/g;
  return text.replace(reasons, calls.length ? "" : "$&").trim();
}

/** Return arguments as in a call. */
function signature(args) {
  if (args == null || typeof args !== "object" || Array.isArray(args)) return readable(args ?? "");
  return Object.entries(args).map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(", ");
}
