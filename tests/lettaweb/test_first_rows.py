"""What every installation has after a migration: groups, the system user, schedules, the first account."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.contrib.contenttypes.models import ContentType
from django.utils.module_loading import import_string
from django_q.models import Schedule

from agents.policies.groups import SCHEDULES, ensure_groups
from lettaweb.server.account import ensure_first

pytestmark = pytest.mark.django_db


def test_it_makes_them_once_and_keeps_what_people_added() -> None:
    before = rows()
    extra = Permission.objects.create(
        codename="extra", name="Extra", content_type=ContentType.objects.get_for_model(User)
    )
    Group.objects.get(name="viewer").permissions.add(extra)
    ensure_groups()
    ensure_groups()
    assert rows() == before
    assert extra in Group.objects.get(name="viewer").permissions.all()


def rows() -> list[Any]:
    groups = Group.objects.order_by("name").values_list("name", flat=True)
    return [list(groups), User.objects.count(), sorted(Schedule.objects.values_list("func", flat=True))]


def test_it_schedules_functions_that_exist() -> None:
    assert set(Schedule.objects.values_list("func", flat=True)) == set(SCHEDULES)
    for function in SCHEDULES:
        assert callable(import_string(function)), function


def test_it_drops_schedules_that_are_no_more() -> None:
    Schedule.objects.create(func="agents.tasks.gone", schedule_type=Schedule.MINUTES, minutes=1)
    Schedule.objects.create(func="elsewhere.tasks.kept", schedule_type=Schedule.MINUTES, minutes=1)
    ensure_groups()
    left = set(Schedule.objects.values_list("func", flat=True))
    assert left == {*SCHEDULES, "elsewhere.tasks.kept"}


def test_it_gives_rights_over_every_app() -> None:
    builder = Group.objects.get(name="builder").permissions.values_list("content_type__app_label", flat=True)
    assert {"agents", "tools", "batches"} <= set(builder)
    viewer = Group.objects.get(name="viewer").permissions.values_list("codename", flat=True)
    assert all(codename.startswith("view_") for codename in viewer)


def test_it_makes_one_first_account(settings: Any) -> None:
    settings.LETTAWEB_ADMIN_PASSWORD = ""
    password = ensure_first()
    assert password is not None
    assert len(password) >= 12
    admin = User.objects.get(username="admin")
    assert admin.check_password(password)
    assert admin.has_perm("agents.decide_approval")
    assert ensure_first() is None


def test_it_takes_the_password_that_is_given(settings: Any) -> None:
    settings.LETTAWEB_ADMIN_PASSWORD = "given to us"
    assert ensure_first() is None
    assert User.objects.get(username="admin").check_password("given to us")
