// The live queue. The page asks the server what has changed whenever a socket says that something has;
// what it shows always comes from the rows, never from the socket.

import { connection, freshen, keysOn, socket, typing } from "./page.js";

const desk = document.getElementById("desk");
const mayDecide = "mayDecide" in desk.dataset;
const history_ = desk.classList.contains("history");
const byId = (id) => document.getElementById(id);
const main = () => byId("main");
const rows = () => [...document.querySelectorAll("#rows > .row")];
const fresh = new Set();  // keys of rows that came by themselves and have not been looked at
let unlisted = 0;         // how many more came that the list has no place for
let busy = false;
let typedAhead = null;    // what is typed while the field that it is meant for is still on its way

const made = (html) => {
  const template = document.createElement("template");
  template.innerHTML = html.trim();
  return template.content.firstElementChild;
};

// --- what has changed --------------------------------------------------------------------------

let asking = false, again = false;

async function pulse() {
  if (asking) { again = true; return; }
  asking = true;
  try {
    do {
      again = false;
      const about = main().dataset.detail;
      const response = await fetch(pulseUrl(), { headers: { Accept: "application/json" }, cache: "no-store" });
      if (response.redirected || response.status === 401) { location.reload(); return; }
      if (response.ok) apply(await response.json(), about);
    } while (again);
  } catch { /* the server is away: the socket's banner says so */ } finally { asking = false; }
}

function pulseUrl() {
  const queue = byId("queue");
  const query = new URLSearchParams(desk.dataset.query);
  query.set("newest", queue.dataset.newest);
  query.set("since", queue.dataset.since);
  query.set("have", rows().map((row) => `${row.dataset.pk}.${row.dataset.stamp}`).join(","));
  if (main().dataset.detail) query.set("detail", main().dataset.detail);
  return `/approvals/pulse/?${query}`;
}

function apply(news, about) {
  count(news);
  for (const [pk, html] of Object.entries(news.rows)) replaceRow(pk, html);
  for (const pk of news.gone) byId(`row-${pk}`)?.classList.add("settled");
  arrive(news);
  if (main().dataset.detail === about) refreshDetail(news.detail);
  selection();
  nameNext();
}

function count(news) {
  for (const [name, value] of Object.entries(news.counts)) {
    for (const place of document.querySelectorAll(`[data-count="${name}"]`)) {
      place.closest("li")?.classList.toggle("alarm", name === "unknown" && value > 0);
      if (place.textContent === String(value)) continue;
      place.textContent = value;
      if (name === "waiting") byId("spoken").textContent = `${value} waiting`;
    }
  }
  byId("running").textContent = `${news.running} run${news.running === 1 ? "" : "s"} under way`;
  const waiting = news.counts.waiting;
  document.title = `${waiting ? `(${waiting}) ` : ""}${desk.dataset.title} · lettaweb`;
}

function replaceRow(pk, html) {
  const old = byId(`row-${pk}`);
  if (!old) return;
  const row = made(html);
  const picked = old.querySelector("input:checked"), box = row.querySelector("input");
  const focused = old.contains(document.activeElement) ? document.activeElement.tagName : "";
  if (picked && box) box.checked = true;
  row.classList.add("changed-now");
  old.replaceWith(row);
  htmx.process(row);
  mark(row, pk === main().dataset.pk);
  if (focused) row.querySelector(focused.toLowerCase())?.focus({ preventScroll: true });
}

// New rows never move what is being read: they go below the last row, or wait behind the button.
function arrive(news) {
  const whole = !("more" in byId("queue").dataset);
  const wasEmpty = rows().length === 0;
  let added = 0;
  for (const html of whole ? news.arrived : []) {
    const row = made(html);
    if (byId(row.id)) continue;
    row.classList.add("arrived");
    byId("rows").append(row);
    htmx.process(row);
    added += 1;
    if (!wasEmpty) fresh.add(row.dataset.pk);
  }
  unlisted = news.new - added;
  if (added) {
    byId("none").hidden = true;
    freshen(byId("rows"));
    if (!main().dataset.detail && !history_ && matchMedia("(min-width: 768px)").matches) open(rows()[0], false);
  }
  pill();
  if (news.new > 0) tellOutside(news);
}

function pill() {
  const button = byId("new"), number = fresh.size + unlisted;
  button.textContent = `${number} new`;
  button.hidden = number === 0;
}

async function renew() {
  fresh.clear();
  unlisted = 0;
  await htmx.ajax("GET", `/approvals/?${desk.dataset.query}`, { target: "#queue", swap: "outerHTML" });
  markCurrent();
  byId("rows")?.closest(".rows").scrollTo({ top: 0 });
}

document.addEventListener("click", (event) => {
  if (event.target instanceof Element && event.target.closest("#new")) renew();
});

// --- the opened call ---------------------------------------------------------------------------

async function refreshDetail(stamp) {
  const old = main();
  if (!old.dataset.detail || !stamp || stamp === old.dataset.stamp || busy) return;
  const writes = [...old.querySelectorAll("textarea, input[type=text]")].some((field) => field.value !== field.defaultValue);
  const settled = stamp.split("-")[1] !== old.dataset.stamp.split("-")[1];
  if ((old.dataset.panel || writes) && !settled) return;
  const response = await fetch(old.dataset.url, { headers: { "HX-Request": "true", "HX-Target": "main" }, cache: "no-store" });
  if (!response.ok || main() !== old || busy) return;
  const top = old.querySelector(".scroll")?.scrollTop ?? 0;
  const focused = old.contains(document.activeElement);
  const next = made(await response.text());
  if (main() !== old || busy) return;
  const said = old.querySelector("#notices");
  if (said?.children.length && !next.querySelector("#notices .notice")) next.querySelector("#notices")?.replaceWith(said);
  old.replaceWith(next);
  shown = next;
  htmx.process(next);
  nameNext();
  next.querySelector(".scroll").scrollTop = top;
  if (focused) byId("subject")?.focus({ preventScroll: true });
  if (settled && !("waiting" in next.dataset)) byId("spoken").textContent = byId("result")?.parentElement.querySelector("p")?.textContent ?? "";
}

function mark(row, current) {
  row.classList.toggle("now", current);
  const link = row.querySelector("a");
  if (current) link.setAttribute("aria-current", "true");
  else link.removeAttribute("aria-current");
}

function markCurrent() {
  for (const row of rows()) mark(row, row.dataset.pk === main().dataset.pk);
  nameNext();
}

function open(row, byHand = true) {
  if (!row) return;
  focusNext = byHand;
  row.querySelector("a").click();
  row.scrollIntoView({ block: "nearest" });
}

let focusNext = true, shown = main();

document.body.addEventListener("htmx:beforeRequest", () => { busy = true; });
document.body.addEventListener("htmx:afterRequest", (event) => {
  if (!event.detail.successful) typedAhead = null;
  if (event.detail.xhr.status === 204) busy = false;
  if (event.detail.requestConfig.verb === "post") setTimeout(pulse, 30);
});
document.body.addEventListener("htmx:sendError", () => { busy = false; typedAhead = null; connection(false); });
document.body.addEventListener("htmx:afterSettle", () => {
  busy = false;
  if (main() === shown) return;
  leave();
  shown = main();
  desk.classList.toggle("reading", Boolean(shown.dataset.detail));
  markCurrent();
  fresh.delete(shown.dataset.pk);
  pill();
  const target = shown.querySelector("[aria-invalid=true]") ?? shown.querySelector("[data-focus]")
    ?? (shown.dataset.panel === "edit" ? shown.querySelector("#edit-form textarea, #edit-form select, #edit-form input[type=text]") : null)
    ?? (focusNext ? byId("subject") : null);
  target?.focus({ preventScroll: target.id === "subject" });
  if (typedAhead && target instanceof HTMLTextAreaElement) target.setRangeText(typedAhead, 0, 0, "end");
  typedAhead = null;
  focusNext = true;
  look();
});
// The second click of a double click would fall on the buttons of the next call, which nobody has read yet.
document.addEventListener("click", (event) => {
  if (event.detail < 2 || !(event.target instanceof Element) || !event.target.closest(".decide button")) return;
  event.preventDefault();
  event.stopPropagation();
}, true);
// The page says which call comes next in its own list; the server checks that it still waits.
document.body.addEventListener("htmx:configRequest", (event) => {
  if (event.detail.verb !== "post" || !event.detail.path.endsWith("/decide/")) return;
  const next = following();
  if (next) event.detail.parameters.next = next.dataset.call;
});

function neighbour(step, waiting = false) {
  const all = rows(), here = all.findIndex((row) => row.dataset.pk === main().dataset.pk);
  for (let at = here + step; at >= 0 && at < all.length; at += step) {
    if (!waiting || !all[at].classList.contains("settled")) return all[at];
  }
  return null;
}

// What opens after a decision: the next call of the list that waits, else its first one.
const following = () => neighbour(1, true) ?? rows().find((row) => row.dataset.pk !== main().dataset.pk && !row.classList.contains("settled"));

function nameNext() {
  const place = byId("next"), row = following();
  if (place && row) place.textContent = `Next: ${row.querySelector(".what").textContent}`;
  else if (place && !("more" in byId("queue").dataset)) place.textContent = "";
}

// --- who is looking ----------------------------------------------------------------------------

let looking = "", lookTimer = 0;

function post(path, body) {
  const headers = { ...JSON.parse(document.body.getAttribute("hx-headers") ?? "{}"), "X-Requested-With": "fetch" };
  return fetch(path, { method: "POST", headers, body: new URLSearchParams(body), keepalive: true });
}

function look() {
  clearTimeout(lookTimer);
  const { dataset } = main();
  if (!mayDecide || !("waiting" in dataset) || "mine" in dataset || "held" in dataset) return;
  lookTimer = setTimeout(hold, 1200, dataset.detail);
}

async function hold(call) {
  if (document.hidden || main().dataset.detail !== call) return;
  const response = await post(`/approvals/${call}/claim/`, { look: "1" }).catch(() => null);
  if (response?.status !== 200 || main().dataset.detail !== call) return;
  looking = call;
  const stamps = await response.json();
  if (main().dataset.detail === call) main().dataset.stamp = stamps.detail;
  const row = byId(`row-${main().dataset.pk}`);
  if (row) row.dataset.stamp = stamps.row;
  lookTimer = setTimeout(hold, 45000, call);
}

function leave() {
  clearTimeout(lookTimer);
  if (looking) post(`/approvals/${looking}/release/`, { look: "1" }).catch(() => {});
  looking = "";
}

addEventListener("pagehide", leave);
document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  pulse();
  look();
});
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

// --- many at once ------------------------------------------------------------------------------

function selection() {
  const bar = byId("bulk-bar");
  if (!bar) return;
  const number = document.querySelectorAll("#rows input:checked").length;
  bar.hidden = number === 0;
  bar.querySelector(".count").textContent = `${number} selected`;
  for (const button of bar.querySelectorAll("button[data-script]")) {
    button.hidden = number === 0;
    button.textContent = `${button.value === "deny" ? "Deny" : "Approve"} ${number}`;
  }
}

document.addEventListener("change", selection);

// --- keys --------------------------------------------------------------------------------------

const press = (key) => main().querySelector(`[data-key="${key}"]`)?.click();
const write = (key) => { if (main().querySelector(`[data-key="${key}"]`)) { typedAhead = ""; press(key); } };
const keys = {
  j: () => open(neighbour(1)),
  k: () => open(neighbour(-1)),
  x: () => { byId(`row-${main().dataset.pk}`)?.querySelector("input")?.click(); },
  a: () => press("a"), d: () => write("d"), e: () => press("e"), r: () => write("r"),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.key === "Escape" && !document.querySelector("dialog[open]")) {
    const close = main().querySelector("[data-close]");
    if (close) { event.preventDefault(); close.click(); return; }
    for (const box of document.querySelectorAll("#rows input:checked")) box.checked = false;
    selection();
  }
  if (busy && typedAhead !== null && event.key.length === 1 && !typing(event.target)) {
    typedAhead += event.key;
    event.preventDefault();
    return;
  }
  const act = keys[event.key.toLowerCase()];
  if (!act || typing(event.target) || !keysOn()) return;
  event.preventDefault();
  if (!busy && !event.repeat) act();
});

// A field that is left out or null takes part again as soon as somebody types into it.
document.addEventListener("input", (event) => {
  const how = event.target.id ? document.querySelector(`[data-how="${event.target.id}"]`) : null;
  if (how && how.value !== "value") how.value = "value";
});

// --- outside the page --------------------------------------------------------------------------

const notify = document.querySelector("[data-notify]");
if (notify && "Notification" in window && Notification.permission === "default") {
  notify.hidden = false;
  notify.addEventListener("click", async () => { await Notification.requestPermission(); notify.hidden = true; });
}

function tellOutside(news) {
  if (!document.hidden || !("Notification" in window) || Notification.permission !== "granted") return;
  const waiting = news.counts.waiting;
  new Notification(`${waiting} call${waiting === 1 ? "" : "s"} waiting`, { tag: "lettaweb-waiting", body: "An agent asks for a decision." });
}

// --- begin -------------------------------------------------------------------------------------

socket("/ws/approvals/", {
  heard: pulse,
  opened: () => { connection(true); pulse(); },
  lost: () => connection(false),
});
setInterval(() => { if (!document.hidden) pulse(); }, 10000);
selection();
nameNext();
look();
