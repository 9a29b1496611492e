"""Makes sure, after every migration, that groups, the system user and the schedules exist. Idempotent."""

from __future__ import annotations

from django.apps import apps
from django.contrib.auth.management import create_permissions
from django.contrib.auth.models import Group, Permission, User
from django.contrib.contenttypes.management import create_contenttypes
from django.contrib.contenttypes.models import ContentType
from django.db.models import Q

from agents.policies.rights import APPS, LABELS, ROLES, grants

SYSTEM_USER = "api"

SCHEDULES: dict[str, str] = {
    "agents.tasks.expire_calls": "Expire tool calls",
    "agents.tasks.deliver_outbox": "Deliver webhooks and callbacks",
    "agents.tasks.apply_retention": "Drop old event logs",
    "batches.tasks.poll": "Poll batches",
}
"""What the queue runs every minute, by dotted name: the tasks stand above this module."""


def ensure_groups(using: str = "default") -> None:
    """Create what is missing; permissions that an administrator added to a group stay."""
    _ensure_permissions(using)
    permissions = list(Permission.objects.using(using).select_related("content_type"))
    for role in ROLES:
        group, _ = Group.objects.using(using).get_or_create(name=role)
        group.permissions.add(
            *[found for found in permissions if grants(role, found.content_type.app_label, found.codename)]
        )
    _ensure_system_user(using)
    if using == "default":
        _ensure_schedules()


def _ensure_permissions(using: str) -> None:
    # Django makes them in this same signal, before or after us as the apps are listed: making them is idempotent.
    for label in APPS:
        config = apps.get_app_config(label)
        create_contenttypes(config, verbosity=0, using=using)
        create_permissions(config, verbosity=0, using=using)
    # Rights of our own belong to the model of tool calls; those that it declares exist already.
    content_type = ContentType.objects.db_manager(using).get_for_model(apps.get_model("agents", "ToolCall"))
    for right, label in LABELS.items():
        Permission.objects.using(using).get_or_create(
            codename=right.partition(".")[2], content_type=content_type, defaults={"name": label}
        )


def _ensure_system_user(using: str) -> None:
    """The actor of the API in open mode: all rights, no password, no page of the admin."""
    user, made = User.objects.using(using).get_or_create(username=SYSTEM_USER, defaults={"is_active": True})
    if made:
        user.set_unusable_password()
        user.save(using=using)
    user.groups.add(Group.objects.using(using).get(name="admin"))


def _ensure_schedules() -> None:
    from django_q.models import Schedule

    for function, name in SCHEDULES.items():
        defaults = {"name": name, "schedule_type": Schedule.MINUTES, "minutes": 1, "repeats": -1}
        Schedule.objects.get_or_create(func=function, defaults=defaults)
    ours = Schedule.objects.filter(Q(func__startswith="agents.") | Q(func__startswith="batches."))
    ours.exclude(func__in=SCHEDULES).delete()
