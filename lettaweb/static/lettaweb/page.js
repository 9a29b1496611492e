// What every page does: the menu, the list of keys, times that stay fresh, filters that apply at once.

const root = document.documentElement;

export const keysOn = () => !root.classList.contains("no-keys");

export function keep(name, value) {
  try { localStorage.setItem(name, value); } catch { /* storage may be switched off */ }
}

// --- times -------------------------------------------------------------------------------------

const STEPS = [[60, 1, "s"], [3600, 60, "min"], [86400, 3600, "h"], [Infinity, 86400, "d"]];

function span(seconds) {
  const [, unit, word] = STEPS.find(([limit]) => seconds < limit);
  return `${Math.max(1, Math.floor(seconds / unit))} ${word}`;
}

function words(element) {
  const seconds = (Date.now() - Date.parse(element.dateTime)) / 1000;
  if (element.dataset.form === "left") return seconds < 0 ? `${span(-seconds)} left` : "overdue";
  if (Math.abs(seconds) < 10) return "just now";
  return seconds < 0 ? `in ${span(-seconds)}` : `${span(seconds)} ago`;
}

export function freshen(within = document) {
  for (const element of within.querySelectorAll("time[data-form]")) {
    const said = words(element);
    if (element.textContent !== said) element.textContent = said;
  }
}

setInterval(freshen, 5000);

// --- menu, keys, filters -----------------------------------------------------------------------

const side = document.getElementById("side");
const menu = side?.querySelector(".menu");
menu?.addEventListener("click", () => {
  const open = side.classList.toggle("open");
  menu.setAttribute("aria-expanded", String(open));
});

const dialog = document.getElementById("keys");
const onOff = document.getElementById("keys-on");
if (onOff) {
  onOff.checked = keysOn();
  onOff.addEventListener("change", () => {
    root.classList.toggle("no-keys", !onOff.checked);
    keep("lettaweb-keys", onOff.checked ? "on" : "off");
  });
}
for (const button of document.querySelectorAll("[data-open='keys']")) {
  button.hidden = false;
  button.addEventListener("click", () => dialog.showModal());
}

export const typing = (target) => target instanceof Element && Boolean(target.closest("input:not([type=checkbox]), textarea, select, dialog, [contenteditable]"));

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && side?.classList.contains("open")) menu.click();
  if (event.key === "?" && !typing(event.target) && keysOn() && dialog && !dialog.open) {
    event.preventDefault();
    dialog.showModal();
  }
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target instanceof HTMLTextAreaElement) {
    event.preventDefault();
    event.target.form?.requestSubmit();
  }
});

document.addEventListener("change", (event) => {
  const form = event.target instanceof HTMLSelectElement ? event.target.closest("form[data-at-once]") : null;
  form?.requestSubmit();
});

// Only what is set goes into the address.
document.addEventListener("submit", (event) => {
  if (event.target instanceof HTMLFormElement && event.target.matches("form[data-at-once]")) {
    for (const field of event.target.elements) if (!field.value) field.disabled = true;
  }
});

let lostTimer = 0;

// --- sockets -----------------------------------------------------------------------------------

// A socket that comes back by itself. Sockets only tell that there is something to look at.
export function socket(path, { heard, opened = () => {}, lost = () => {} }) {
  let wait = 250, live = true, current = null;
  const open = () => {
    const address = typeof path === "function" ? path() : path;
    current = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${address}`);
    current.onopen = () => { wait = 250; opened(); };
    current.onmessage = (event) => heard(JSON.parse(event.data));
    current.onclose = (event) => {
      if (!live) return;
      if (event.code === 4401) { location.reload(); return; }
      lost(event.code);
      setTimeout(open, wait * (0.75 + Math.random() / 2));
      wait = Math.min(wait * 2, 5000);
    };
  };
  open();
  return {
    send: (frame) => { if (current?.readyState === WebSocket.OPEN) current.send(JSON.stringify(frame)); },
    close: () => { live = false; current?.close(); },
  };
}

// Pages that are no desk keep their count of waiting calls, and renew themselves where they ask for it.
export async function renew(...ids) {
  const response = await fetch(location.href, { cache: "no-store" }).catch(() => null);
  if (!response?.ok || response.redirected) return;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  for (const id of ids) {
    const next = page.getElementById(id);
    if (next) document.getElementById(id)?.replaceWith(next);
  }
}

if (side && !document.getElementById("desk")) {
  let timer = 0;
  socket("/ws/approvals/", {
    heard: (news) => {
      if ("waiting" in news) for (const count of side.querySelectorAll("[data-count=waiting]")) count.textContent = news.waiting;
      const place = document.querySelector("[data-live]");
      clearTimeout(timer);
      if (place && news.type !== "hello" && news.type !== "ping") timer = setTimeout(renew, 150, place.id, "running");
    },
    opened: () => connection(true), lost: () => connection(false),
  });
}

export function connection(up) {
  const state = document.getElementById("connection-state");
  const banner = document.getElementById("banner");
  clearTimeout(lostTimer);
  state?.classList.toggle("live", up);
  state?.classList.toggle("lost", !up);
  if (state) state.querySelector("[data-words]").textContent = up ? "Live" : "Not live";
  if (!banner) return;
  if (up) banner.hidden = true;
  else lostTimer = setTimeout(() => { banner.hidden = false; }, 1200);
}
