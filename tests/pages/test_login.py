"""The login: its fields, where it leads, and how it ends for somebody who guesses."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.pages.rows import text_of

pytestmark = pytest.mark.django_db
GOOD = "correct horse"


@pytest.fixture(autouse=True)
def _ann() -> None:
    User.objects.create_user("ann", password=GOOD)


def log_in(client: Client, password: str, **fields: Any) -> Any:
    return client.post("/login/", {"username": "ann", "password": password, **fields})


def test_it_names_its_fields(client: Client) -> None:
    page = text_of(client.get("/login/?next=/agents/"))
    for field, name in (("username", "Username"), ("password", "Password")):
        assert f'<label for="id_{field}">{name}</label>' in page
        assert f'id="id_{field}"' in page
    assert 'name="next" value="/agents/"' in page


@pytest.mark.parametrize(
    ("wanted", "reached"),
    [("/agents/", "/agents/"), ("", "/"), ("https://evil.example/", "/"), ("//evil.example", "/")],
)
def test_it_leads_to_our_own_pages_only(client: Client, wanted: str, reached: str) -> None:
    assert log_in(client, GOOD, next=wanted)["Location"] == reached


def test_it_says_the_same_about_a_wrong_name_and_a_wrong_password(client: Client) -> None:
    said = "Username and password do not match."
    assert said in text_of(log_in(client, "wrong"))
    assert said in text_of(client.post("/login/", {"username": "nobody", "password": "wrong"}))


def test_it_lets_nobody_guess_for_long(client: Client, settings: Any) -> None:
    settings.AXES_FAILURE_LIMIT = 3
    codes = [log_in(client, f"guess {number}").status_code for number in range(3)]
    assert codes == [200, 200, 429]
    locked = log_in(client, GOOD)
    assert locked.status_code == 429
    assert "try again in 15 min" in text_of(locked)
    assert client.get("/approvals/").status_code == 302
    other = client.post("/login/", {"username": "nobody", "password": "x"})
    assert other.status_code == 200


def test_it_ends_with_the_logout_which_is_no_get(client: Client) -> None:
    log_in(client, GOOD)
    assert client.get("/logout/").status_code == 405
    assert client.get("/approvals/").status_code == 403  # no role yet
    client.post("/logout/")
    assert client.get("/approvals/").status_code == 302
