// An agent's conversation or one run, as it happens. What was stored comes from the server's page; this adds
// what is being said right now, and asks for the page's part again when a run begins or ends.

import { connection, freshen, renew, socket } from "./page.js";

const frame = () => document.getElementById("conversation") ?? document.getElementById("run");
const list = () => document.querySelector("#said .talk");
const last = new Map();   // run → number of the last event that is shown
const lines = new Map();  // message and kind → the line that grows

const KINDS = {
  reasoning_message: ["thinks", (chunk) => chunk.reasoning],
  assistant_message: ["said", (chunk) => text(chunk.content)],
  user_message: ["said", (chunk) => text(chunk.content)],
  tool_call_message: ["acts", called],
  approval_request_message: ["acts", called],
  tool_return_message: ["returns", (chunk) => text(chunk.tool_return)],
};

const text = (content) => typeof content === "string" ? content
  : (content ?? []).map((part) => part.text ?? "(an image)").join("\n");

function called(chunk, line) {
  const call = chunk.tool_call ?? chunk.tool_calls?.[0] ?? {};
  const name = call.name && !line.dataset.named ? `${call.name} ` : "";
  if (name) line.dataset.named = "1";
  return name + (call.arguments ?? "");
}

// --- one chunk ---------------------------------------------------------------------------------

function show(chunk) {
  if (chunk.message_type === "ping") {
    for (const id of chunk.superseded_message_ids ?? []) drop(id);
    return;
  }
  if (chunk.message_type === "error_message") { fail(chunk.message); return; }
  const kind = KINDS[chunk.message_type];
  if (!kind || stored(chunk.id)) return;
  if (chunk.message_type === "tool_return_message") { returned(chunk); return; }
  const key = `${chunk.id} ${chunk.message_type} ${chunk.otid ?? ""}`;
  const line = lines.get(key) ?? begin(key, chunk.id, kind[0], chunk.message_type === "user_message" ? "User" : frame().dataset.name);
  line.said.append(kind[1](chunk, line.item));
}

function returned(chunk) {
  for (const one of chunk.tool_returns ?? [chunk]) {
    const key = `${chunk.id} ${one.tool_call_id}`;
    if (lines.has(key)) continue;
    const line = begin(key, chunk.id, one.status === "error" ? "fails" : "returns", chunk.name ?? "Tool");
    line.said.append(text(one.tool_return));
    line.item.classList.remove("growing");
  }
}

const stored = (id) => Boolean(list()?.querySelector(`li[data-message="${CSS.escape(id ?? "")}"]:not([data-live])`));

function begin(key, message, kind, who) {
  for (const old of list().querySelectorAll(".growing")) old.classList.remove("growing");
  const item = document.createElement("li"), name = document.createElement("b"), said = document.createElement("span");
  item.className = `${kind} growing`;
  item.dataset.message = message;
  item.dataset.live = "1";
  said.className = "said";
  name.textContent = who;
  item.append(name, said);
  list().querySelector("li.quiet:not([data-message])")?.remove();
  list().append(item);
  const line = { item, said };
  lines.set(key, line);
  return line;
}

function drop(id) {
  for (const [key, line] of lines) {
    if (!key.startsWith(`${id} `)) continue;
    line.item.remove();
    lines.delete(key);
  }
}

function fail(message) {
  begin(`error ${Math.random()}`, "", "fails", "Error").said.append(message ?? "The run failed.");
}

// --- frames ------------------------------------------------------------------------------------

function heard(news, send) {
  if (news.type === "events") events(news);
  else if (news.type === "hello") news.runs.forEach((run) => follow(run, send));
  else if (news.type === "run") {
    if (mine(news.run)) refresh(() => follow(news.run, send));
    renew("recent-runs", "running");
  } else if (news.type === "end" || news.type === "reset") {
    if (!frame().dataset.agent) refresh(() => renew("running"));
  }
}

function events(news) {
  const from = last.get(news.run_id) ?? 0;
  const low = innerHeight + scrollY > document.body.scrollHeight - 120;
  for (const chunk of news.chunks) if (!(chunk.seq_id <= from)) show(chunk);
  last.set(news.run_id, Math.max(from, news.last));
  if (low) scrollTo({ top: document.body.scrollHeight });
}

const active = (run) => run.status === "created" || run.status === "running";
const mine = (run) => run.conversation_id === frame().dataset.conversation;

function follow(run, send) {
  if (!mine(run)) return;
  if (active(run)) send({ type: "subscribe", run_id: run.id, after: last.get(run.id) ?? 0 });
  else if (frame().dataset.lastRun !== run.id || frame().dataset.run) refresh();
}

let refreshing = false;

async function refresh(then = () => {}) {
  if (refreshing) { setTimeout(refresh, 100, then); return; }
  refreshing = true;
  try {
    const response = await fetch(frame().dataset.url, { headers: { "HX-Request": "true" }, cache: "no-store" });
    if (!response.ok || response.redirected) return;
    const template = document.createElement("template");
    template.innerHTML = (await response.text()).trim();
    const fresh = template.content.firstElementChild, old = frame();
    if (fresh?.id !== old.id) return;
    const draft = old.querySelector("#text"), next = fresh.querySelector("#text");
    if (draft && next) next.value = draft.value;
    const writing = draft && draft === document.activeElement;
    old.replaceWith(fresh);
    if (writing && !next?.disabled) next?.focus({ preventScroll: true });
    lines.clear();
    last.clear();
    freshen(fresh);
  } catch { /* the server is away: the socket comes back by itself */ } finally { refreshing = false; }
  then();
}

// --- begin -------------------------------------------------------------------------------------

if (frame().dataset.agent) {
  const open = socket(`/ws/agents/${frame().dataset.agent}/`, {
    heard: (news) => heard(news, open.send), opened: () => connection(true), lost: () => connection(false),
  });
} else if (frame().dataset.active) {
  const path = () => `/ws/runs/${frame().dataset.run}/?after=${last.get(frame().dataset.run) ?? 0}&tokens=1`;
  const open = socket(path, {
    heard: (news) => { heard(news, () => {}); if (news.type === "end") open.close(); },
    opened: () => connection(true), lost: () => connection(false),
  });
}
