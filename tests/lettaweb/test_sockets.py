"""Who may open a websocket: a token, or a session together with our own Origin; in every mode."""

from __future__ import annotations

from typing import Any

import pytest
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.test import Client

from agents.policies import tokens
from lettaweb.lib.db import in_db
from lettaweb.sockets import guarded

pytestmark = pytest.mark.django_db(transaction=True)


async def hello(scope: Any, receive: Any, send: Any) -> None:
    await receive()
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.send", "text": scope["user"].username})
    await receive()


@pytest.fixture(autouse=True, params=["open", "token"])
def mode(request: pytest.FixtureRequest, settings: Any) -> None:
    settings.LETTAWEB_AUTH = request.param


def person(name: str, *roles: str) -> User:
    user = User.objects.create_user(name)
    user.groups.add(*Group.objects.filter(name__in=roles))
    return user


def token_of(name: str, *roles: str) -> str:
    return tokens.make(person(name, *roles))


def session_of(name: str, *roles: str) -> str:
    client = Client()
    client.force_login(person(name, *roles), backend="django.contrib.auth.backends.ModelBackend")
    return client.cookies[settings.SESSION_COOKIE_NAME].value


async def answer(**headers: str) -> tuple[str, Any]:
    """("text", the first text) or ("closed", the code); never data before a refusal."""
    sent = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    socket = WebsocketCommunicator(guarded(hello), "/ws/anything/", headers=sent)
    assert (await socket.connect(timeout=10))[0]
    message = await socket.receive_output(timeout=10)
    await socket.disconnect()
    return ("text", message["text"]) if message["type"] == "websocket.send" else ("closed", message["code"])


OURS = {"host": "localhost:8283", "origin": "http://localhost:8283"}


def cookie(session: str) -> str:
    return f"{settings.SESSION_COOKIE_NAME}={session}"


async def test_it_lets_a_token_in() -> None:
    token = await in_db(token_of, "ann", "viewer")
    assert await answer(host="localhost", authorization=f"Bearer {token}") == ("text", "ann")
    assert await answer(host="localhost", x_bare_password=f"password {token}") == ("text", "ann")


async def test_it_lets_a_session_in_from_our_own_pages() -> None:
    session = await in_db(session_of, "bob", "operator")
    assert await answer(**OURS, cookie=cookie(session)) == ("text", "bob")


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer x"},
        {"authorization": "x"},
        {"authorization": "Bearer lw_" + "0" * 64},
        {"x_bare_password": "password x"},
        {"cookie": "lettaweb_session=forged"},
        {"origin": "http://localhost", "cookie": "lettaweb_session=forged"},
    ],
)
async def test_it_closes_with_4401_without_a_good_one(headers: dict[str, str]) -> None:
    assert await answer(host="localhost", **headers) == ("closed", 4401)


async def test_it_closes_with_4403_for_a_page_of_another_site() -> None:
    session = await in_db(session_of, "bob", "operator")
    for origin in ("http://evil.example", "http://localhost:9999", "null"):
        refused = await answer(host="localhost:8283", origin=origin, cookie=cookie(session))
        assert refused == ("closed", 4403), origin


async def test_it_closes_with_4403_for_somebody_without_rights() -> None:
    token = await in_db(token_of, "eve")
    assert await answer(host="localhost", authorization=f"Bearer {token}") == ("closed", 4403)


async def test_it_closes_with_4401_for_a_user_that_was_switched_off() -> None:
    session = await in_db(session_of, "off", "operator")
    await in_db(User.objects.filter(username="off").update, is_active=False)
    assert await answer(**OURS, cookie=cookie(session)) == ("closed", 4401)


async def test_it_refuses_an_unknown_path_and_an_unknown_host() -> None:
    from lettaweb.asgi import sockets

    token = await in_db(token_of, "ann", "viewer")
    headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {token}".encode())]
    socket = WebsocketCommunicator(sockets, "/no/such/socket", headers=headers)
    await socket.connect()
    assert (await socket.receive_output())["code"] == 4404
    await socket.disconnect()
    assert await answer(host="evil.example", authorization=f"Bearer {token}") == ("closed", 4403)
