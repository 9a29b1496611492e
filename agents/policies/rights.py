"""What people may do, by role. A right is a permission of Django, named ``app.codename``."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

VIEW = "agents.view_agent"
SEND = "agents.send_message"  # send, stream, cancel, stop
DECIDE = "agents.decide_approval"
REVEAL = "agents.reveal_secret"
BUILD = "agents.change_agent"  # agents, blocks, tools, their attachments

_READ = ("view",)
_WRITE = ("view", "add", "change", "delete")
APPS = ("agents", "tools", "batches")

ROLES = ("viewer", "operator", "builder", "admin")
OWN_RIGHTS: dict[str, tuple[str, ...]] = {
    "viewer": (),
    "operator": (SEND, DECIDE),
    "builder": (SEND,),
    "admin": (SEND, DECIDE, REVEAL),
}
"""Rights beyond Django's view, add, change and delete. A builder writes tools but does not approve calls."""

MODEL_ACTIONS: dict[str, tuple[str, ...]] = {
    "viewer": _READ,
    "operator": _READ,
    "builder": _WRITE,
    "admin": _WRITE,
}
LABELS = {
    SEND: "Can send messages and cancel runs",
    DECIDE: "Can decide tool calls that wait",
    REVEAL: "Can see masked arguments",
}


def can(user: Any, right: str) -> bool:
    """Whether ``user`` has ``right`` (``decide_approval`` or ``agents.decide_approval``)."""
    if not isinstance(user, AbstractBaseUser) or isinstance(user, AnonymousUser):
        return False
    full = right if "." in right else f"agents.{right}"
    return bool(user.has_perm(full))  # type: ignore[attr-defined]


def grants(role: str, app: str, codename: str) -> bool:
    """Whether the group ``role`` holds the permission ``app.codename``."""
    full = f"{app}.{codename}"
    if full in LABELS:
        return full in OWN_RIGHTS[role]
    if role == "admin" and app in ("auth", "knox", "axes", "django_q"):
        return True
    return app in APPS and codename.partition("_")[0] in MODEL_ACTIONS[role]
