"""Labels of memory blocks: they are parts of URLs, so a label that no URL can carry is refused at once."""

from __future__ import annotations

import re

from lettaweb.lib.problems import Problem

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_ROUTES = ("attach/", "detach/")  # core-memory/blocks/attach/{id} is a route of its own


def checked_label(label: str) -> str:
    """``label`` when ``…/core-memory/blocks/{label}`` can name it; a :class:`Problem` 422 else.

    Slashes inside are fine. Clients and proxies drop "." and ".." and merge doubled, leading and trailing
    slashes before a request arrives, so those would be another label's URL.
    """
    parts = label.split("/")
    if not label or label != label.strip():
        raise Problem(422, "A block's label must not be empty or begin or end with a blank")
    if _CONTROL.search(label):
        raise Problem(422, "A block's label must not hold control characters")
    if "" in parts or "." in parts or ".." in parts:
        raise Problem(422, "A block's label must not hold an empty part, '.' or '..' between slashes")
    if label.startswith(_ROUTES):
        raise Problem(422, "A block's label must not begin with 'attach/' or 'detach/'")
    return label
