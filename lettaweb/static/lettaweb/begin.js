// Before anything is drawn: styles tell apart pages with and without scripts.
document.documentElement.className = "script";
try {
  if (localStorage.getItem("lettaweb-keys") === "off") document.documentElement.classList.add("no-keys");
} catch { /* storage may be switched off */ }
