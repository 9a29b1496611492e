"""The start page: what waits, what runs, what failed."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from agents.filters import overview
from agents.filters.queue import Wish, page_of
from agents.views.pages.access import page
from tools import sandbox


@page()
def start(request: HttpRequest) -> HttpResponse:
    """/"""
    waiting = page_of(Wish(), request.user, size=overview.SHORT)
    context = {
        "here": "start",
        "calls": waiting.rows,
        "more": bool(waiting.more),
        "running": overview.running(),
        "failed": overview.failed(),
        "interrupted": overview.interrupted(),
        "tier": sandbox.known_tier(),
    }
    return render(request, "start.html", context)
