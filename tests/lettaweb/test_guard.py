"""Who may come in: Host, Origin, tokens in both spellings, in open and in token mode."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone
from knox.models import AuthToken

from agents.policies import tokens
from agents.policies.guard import Visit, admit, guard, identify_token, read_body
from agents.policies.rights import BUILD, DECIDE, REVEAL, SEND, VIEW, can
from lettaweb.lib.problems import Problem

pytestmark = pytest.mark.django_db

URL = "/v1/tools/"


@pytest.fixture
def token_mode(settings: Any) -> None:
    settings.LETTAWEB_AUTH = "token"


def person(name: str, *roles: str) -> User:
    user = User.objects.create_user(name, password="long enough to do")
    user.groups.add(*Group.objects.filter(name__in=roles))
    return user


@pytest.fixture
def token(token_mode: None) -> str:
    return tokens.make(person("ann", "admin"))


GOOD = {
    "usual": {"HTTP_AUTHORIZATION": "Bearer {}"},
    "lower case": {"HTTP_AUTHORIZATION": "bearer {}"},
    "upper case": {"HTTP_AUTHORIZATION": "BEARER {}"},
    "two spaces": {"HTTP_AUTHORIZATION": "Bearer  {}"},
    "space behind": {"HTTP_AUTHORIZATION": "Bearer {} "},
    "bare password": {"HTTP_X_BARE_PASSWORD": "password {}"},
    "bare password beside another scheme": {
        "HTTP_X_BARE_PASSWORD": "password {}",
        "HTTP_AUTHORIZATION": "Basic YTpi",
    },
}
BAD = {
    "absent": {},
    "empty": {"HTTP_AUTHORIZATION": ""},
    "scheme alone": {"HTTP_AUTHORIZATION": "Bearer"},
    "wrong": {"HTTP_AUTHORIZATION": "Bearer lw_" + "0" * 64},
    "one letter": {"HTTP_AUTHORIZATION": "Bearer x"},
    "other scheme": {"HTTP_AUTHORIZATION": "Token {}"},
    "with more words": {"HTTP_AUTHORIZATION": "Bearer {} {}"},
    "cut": {"HTTP_AUTHORIZATION": "Bearer {cut}"},
    "not ascii": {"HTTP_AUTHORIZATION": "Bearer pässwörd"},
    "very long": {"HTTP_AUTHORIZATION": "Bearer " + "a" * 5000},
    "bare without its word": {"HTTP_X_BARE_PASSWORD": "{}"},
    "wrong bare": {"HTTP_X_BARE_PASSWORD": "password nope"},
}


def filled(headers: dict[str, str], token: str) -> dict[str, str]:
    return {name: text.replace("{cut}", token[:-1]).replace("{}", token) for name, text in headers.items()}


@pytest.mark.parametrize("headers", GOOD.values(), ids=GOOD)
def test_it_lets_a_token_in_however_it_is_spelt(client: Client, token: str, headers: dict[str, str]) -> None:
    assert client.get(URL, **filled(headers, token)).status_code == 200  # type: ignore[arg-type]


@pytest.mark.parametrize("headers", BAD.values(), ids=BAD)
def test_it_refuses_everything_else_with_401(client: Client, token: str, headers: dict[str, str]) -> None:
    answer = client.get(URL, **filled(headers, token))  # type: ignore[arg-type]
    assert (answer.status_code, answer.json()) == (401, {"detail": "Unauthorized"})
    assert answer["WWW-Authenticate"].startswith("Bearer")


def test_it_refuses_expired_tokens_and_users_that_are_off(client: Client, token_mode: None) -> None:
    old, off = person("old", "admin"), person("off", "admin")
    expired, orphan = tokens.make(old, days=1), tokens.make(off)
    AuthToken.objects.filter(user=old).update(expiry=timezone.now() - timedelta(seconds=1))
    User.objects.filter(pk=off.pk).update(is_active=False)
    for secret in (expired, orphan):
        assert client.get(URL, HTTP_AUTHORIZATION=f"Bearer {secret}").status_code == 401


def test_it_never_takes_a_cookie_for_a_token(client: Client, token_mode: None) -> None:
    client.force_login(person("eve", "admin"))
    assert client.get(URL).status_code == 401


def test_it_leaves_health_open(client: Client, token_mode: None) -> None:
    for path in ("/v1/health", "/v1/health/", "/v1/ready", "/v1/ready/", "/latest/health/"):
        assert client.get(path).status_code == 200, path
    body = client.get("/v1/health/").json()
    assert (body["status"], body["version"]) == ("ok", django_settings.LETTAWEB_VERSION)


def test_it_ignores_headers_that_claim_to_be_somebody(client: Client, token: str) -> None:
    headers = {"HTTP_AUTHORIZATION": f"Bearer {token}", "HTTP_USER_ID": "user-nonsense", "HTTP_X_PROJECT": "x"}
    assert client.get(URL, **headers).status_code == 200  # type: ignore[arg-type]


OPEN_HOSTS = {
    "localhost:8283": 200,
    "127.0.0.1": 200,
    "[::1]:8283": 200,
    "LOCALHOST": 200,
    "evil.example": 400,
    "127.0.0.1.evil.example": 400,
    "localhost.evil.example": 400,
}


@pytest.mark.parametrize(("host", "status"), OPEN_HOSTS.items())
def test_it_answers_to_loopback_names_only_in_open_mode(client: Client, host: str, status: int) -> None:
    assert client.get(URL, HTTP_HOST=host).status_code == status


ORIGINS = {
    "http://localhost:8283": 200,
    "http://evil.example": 403,
    "http://localhost:9999": 403,
    "null": 403,
    "https://app.example": 200,
}


@pytest.mark.parametrize(("origin", "status"), ORIGINS.items())
def test_it_answers_no_page_of_another_site(client: Client, settings: Any, origin: str, status: int) -> None:
    settings.LETTAWEB_CORS_ORIGINS = ["https://app.example"]
    assert client.get(URL, HTTP_HOST="localhost:8283", HTTP_ORIGIN=origin).status_code == status


def test_it_acts_as_the_system_user_in_open_mode() -> None:
    caller = admit(Visit(host="localhost", authorization="Bearer anything at all"))
    assert (caller.user.username, caller.via) == ("api", "open")
    assert not caller.user.has_usable_password()


def test_it_refuses_open_mode_on_an_outward_address() -> None:
    with pytest.raises(Problem) as caught:
        admit(Visit(host="localhost", server="192.168.1.5"))
    assert caught.value.status == 403


def test_it_wants_a_token_of_sockets_in_open_mode_too() -> None:
    with pytest.raises(Problem) as caught:
        identify_token(Visit(host="localhost"))
    assert caught.value.status == 401


ROLES = {
    "viewer": {VIEW},
    "operator": {VIEW, SEND, DECIDE},
    "builder": {VIEW, SEND, BUILD},
    "admin": {VIEW, SEND, DECIDE, REVEAL, BUILD},
    "nobody": set[str](),
}


@pytest.mark.parametrize(("role", "rights"), ROLES.items())
def test_it_gives_each_role_its_rights(role: str, rights: set[str]) -> None:
    user = person("p", role)
    assert {right for right in (VIEW, SEND, DECIDE, REVEAL, BUILD) if can(user, right)} == rights
    assert can(user, "decide_approval") == (DECIDE in rights)


def test_it_gives_nothing_to_nobody() -> None:
    assert not can(None, VIEW)
    assert not can(object(), VIEW)


def test_it_limits_requests_of_one_caller(client: Client, settings: Any) -> None:
    settings.LETTAWEB_THROTTLE = 3
    statuses = [client.get(URL).status_code for _ in range(8)]
    assert 429 in statuses
    assert set(statuses) <= {200, 429}
    refused = client.get(URL)
    assert refused.status_code == 429
    assert 0 < int(refused["Retry-After"]) <= 60


async def test_it_caps_bodies_of_raw_routes(settings: Any) -> None:
    settings.LETTAWEB_MAX_BODY = 10

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"123456", "more_body": True}

    with pytest.raises(Problem) as caught:
        await read_body(receive)
    assert caught.value.status == 413
    with pytest.raises(Problem) as caught:
        await guard({"type": "http", "headers": [(b"host", b"localhost")]}, b"x" * 11)
    assert caught.value.status == 413


def test_it_remembers_a_caller_for_a_moment(token: str, django_assert_num_queries: Any) -> None:
    visit = Visit(host="localhost", authorization=f"Bearer {token}")
    first = admit(visit)
    with django_assert_num_queries(0):
        again = admit(visit)
        assert can(again.user, DECIDE)
    assert (again.user, again.token) == (first.user, first.token)
    assert again.user is not first.user


def test_it_forgets_at_once_what_was_taken_away(token: str) -> None:
    visit = Visit(host="localhost", authorization=f"Bearer {token}")
    user = admit(visit).user
    user.groups.clear()
    assert not can(admit(visit).user, DECIDE)
    user.groups.add(Group.objects.get(name="operator"))
    assert can(admit(visit).user, DECIDE)
    user.is_active = False
    user.save()
    with pytest.raises(Problem):
        admit(visit)
    user.is_active = True
    user.save()
    admit(visit)
    AuthToken.objects.filter(user=user).delete()
    with pytest.raises(Problem):
        admit(visit)


def test_it_lets_no_remembered_token_outlive_its_end(token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    visit = Visit(host="localhost", authorization=f"Bearer {tokens.make(User.objects.get(username='ann'), days=1)}")
    admit(visit)
    later = timezone.now() + timedelta(days=2)
    monkeypatch.setattr("agents.policies.guard.timezone.now", lambda: later)
    with pytest.raises(Problem):
        admit(visit)
