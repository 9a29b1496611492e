"""People of every role, and calls that wait for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from agents.models import ToolCall
from tests.pages.rows import waiting_call

Person = Callable[[str], Client]


def person_named(name: str, role: str) -> User:
    user, made = User.objects.get_or_create(username=name, defaults={"is_staff": role == "admin"})
    if made:
        user.groups.add(Group.objects.get(name=role))
    return user


def logged_in(name: str, role: str) -> Client:
    client = Client()
    client.force_login(person_named(name, role))
    return client


@pytest.fixture
def operator(db: Any) -> Client:
    return logged_in("olga", "operator")


@pytest.fixture
def other(db: Any) -> Client:
    """A second operator."""
    return logged_in("otto", "operator")


@pytest.fixture
def viewer(db: Any) -> Client:
    return logged_in("vera", "viewer")


@pytest.fixture
def builder(db: Any) -> Client:
    return logged_in("bert", "builder")


@pytest.fixture
def admin(db: Any) -> Client:
    return logged_in("ada", "admin")


@pytest.fixture
def call(db: Any) -> ToolCall:
    """A call of refund_order that waits."""
    return waiting_call()
