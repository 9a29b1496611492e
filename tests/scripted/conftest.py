"""The provider fixtures for this folder's own tests."""

from __future__ import annotations

from tests.scripted.fixtures import provider, scripted_server

__all__ = ["provider", "scripted_server"]
