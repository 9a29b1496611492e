"""Callers remembered for two seconds, with their permissions: a busy program is not looked up every time.

What changes through this process is forgotten at once (Django's signals); through another one, or by a bulk
update, after the two seconds.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import Group, User
from django.db.models.signals import m2m_changed, post_delete, post_migrate, post_save
from knox.models import AuthToken

if TYPE_CHECKING:
    from agents.policies.guard import Caller

SECONDS = 2.0
_MOST = 1000
_known: dict[str, tuple[float, Caller]] = {}


def known(key: str, find: Callable[[], Caller]) -> Caller:
    """The caller behind ``key``, from memory or from ``find``, with a user object of the asker's own."""
    remembered = recall(key)
    if remembered is not None:
        return remembered
    caller = find()
    caller.user.get_all_permissions()  # kept on the object
    if len(_known) >= _MOST:
        _known.clear()
    _known[key] = (time.monotonic() + SECONDS, caller)
    return _own(caller)


def recall(key: str) -> Caller | None:
    """The caller behind ``key`` from memory alone."""
    until, caller = _known.get(key, (0.0, None))
    return None if caller is None or until < time.monotonic() else _own(caller)


def _own(caller: Caller) -> Caller:
    return replace(caller, user=copy.copy(caller.user))


def forget(**_kwargs: Any) -> None:
    _known.clear()


def watch() -> None:
    """Forget at every change of people, groups, permissions and tokens in this process."""
    for model in (User, Group, AuthToken):
        post_save.connect(forget, sender=model, dispatch_uid=f"known.saved.{model.__name__}")
        post_delete.connect(forget, sender=model, dispatch_uid=f"known.deleted.{model.__name__}")
    for through in (User.groups.through, User.user_permissions.through, Group.permissions.through):
        m2m_changed.connect(forget, sender=through, dispatch_uid=f"known.changed.{through.__name__}")
    post_migrate.connect(forget, dispatch_uid="known.migrated")
