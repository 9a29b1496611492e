"""What runs calls: the zygote, or (unsafe mode) a plain process for each."""

from __future__ import annotations

from typing import Protocol

from .base import Tier
from .config import SandboxConfig
from .flight import Flight
from .link import Link


class Runner(Protocol):
    """Takes calls; each one's future gets its outcome."""

    config: SandboxConfig
    tier: Tier

    @property
    def alive(self) -> bool:
        """Whether it takes calls."""

    def submit(self, flight: Flight) -> None:
        """Start a call, or queue it."""

    def end(self, flight: Flight) -> None:
        """End a call."""

    def stop(self) -> None:
        """End all."""

    def forget(self) -> None:
        """Let go of what a forked process has copied, without ending anything."""


class ZygoteRunner:
    """Calls run in the zygote of ``link``."""

    def __init__(self, config: SandboxConfig, tier: Tier, link: Link) -> None:
        self.config, self.tier, self.link = config, tier, link

    @property
    def alive(self) -> bool:
        """Whether the zygote lives, or is being started again."""
        return self.link.alive

    def submit(self, flight: Flight) -> None:
        """Hand the call in."""
        self.link.submit(flight)

    def end(self, flight: Flight) -> None:
        """End the call."""
        self.link.end(flight)

    def stop(self) -> None:
        """End the zygote."""
        self.link.stop()

    def forget(self) -> None:
        """Close the copied end of the control socket."""
        if self.link.control is not None:
            self.link.control.close()
