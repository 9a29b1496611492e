"""What one call may find of another one, or of the server."""

from __future__ import annotations

from tools.sandbox.config import FULL

from .table import Escape

# The pattern does not match its own text; what it finds are marks that others have left.
SCAN = r"""
import re
pattern = re.compile(rb"(?:SERVER|CALLER)[-]MARK[-][0-9a-f]{16}")
with open("/proc/self/maps") as file:
    regions = [line.split() for line in file]
for region in regions:
    start, end = (int(part, 16) for part in region[0].split("-"))
    if region[1][0] != "r" or (region[5:] and region[5] in ("[vvar]", "[vsyscall]", "[vvar_vclock]")):
        continue
    for place in range(start, end, 1 << 22):
        data = ctypes.string_at(place, min(1 << 22, end - place))
        breaches.extend(item.decode() for item in set(pattern.findall(data)))
        del data
if len(regions) < 20:
    breaches.append("nothing was scanned")
"""

LEAKS = [
    Escape(
        "secrets of the server and of other calls in memory",
        SCAN,
        tiers=(FULL,),
        timeout=20,
        first='held = [os.environ["CALLER_SECRET"]] * 3\nreturn len(held)',
        env=(("CALLER_SECRET", "CALLER-MARK-0123456789abcdef"),),
    ),
    Escape(
        "traces of the call before",
        """
import sys, threading
if "LEAK" in os.environ:
    breaches.append("environment")
if getattr(sys, "leak", None) or "leaky" in sys.modules:
    breaches.append("module")
if os.path.exists("/tmp/leak"):
    breaches.append("/tmp")
if threading.active_count() != 1:
    breaches.append("thread")
import json
if json.dumps is None:
    breaches.append("patched module")
for name in list(sys.modules):
    if name.partition(".")[0] in ("inside", "tools", "django"):
        breaches.append(name)
""",
        first="""
import json, sys, threading, types
os.environ["LEAK"] = "1"
sys.leak, sys.modules["leaky"], json.dumps = True, types.ModuleType("leaky"), None
threading.Thread(target=threading.Event().wait, daemon=True).start()
try:
    open("/tmp/leak", "w").close()
except PermissionError:
    pass
return 1
""",
    ),
]
