"""Everything the scripted provider knows: script, log, settings and what the file and batch routes keep."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field

from tests.scripted.batch_rows import Batch, StoredFile
from tests.scripted.deliver import Holds
from tests.scripted.log import Log
from tests.scripted.script import Script

MB = 1024 * 1024


@dataclass(slots=True)
class Settings:
    """What a test may change; ``reset`` puts it back.

    ``alternate``: refuse two messages of one role in a row (older and compatible servers do).
    ``batch_polls``: how many retrieves see a batch in progress before it ends by itself; None: never.
    ``shuffle``: batch results come in another order than the requests. Sizes in bytes.
    """

    alternate: bool = True
    message_bytes: int = 32 * MB
    batch_bytes: int = 256 * MB
    batch_requests: int = 100_000
    file_bytes: int = 200 * MB
    file_requests: int = 50_000
    batch_polls: int | None = 1
    shuffle: bool = True
    anthropic_key_prefix: str = "sk-ant-test"
    openai_key_prefix: str = "sk-test"


@dataclass(slots=True)
class World:
    """The state of one server. ``script`` and ``log`` are thread-safe; the rest belongs to the server's loop.

    ``busy``: the connections of which a request is being answered right now.
    """

    script: Script = field(default_factory=Script)
    log: Log = field(default_factory=Log)
    settings: Settings = field(default_factory=Settings)
    holds: Holds = field(default_factory=Holds)
    chance: random.Random = field(default_factory=lambda: random.Random(7))
    connections: set[asyncio.Task[None]] = field(default_factory=set)
    message_batches: dict[str, Batch] = field(default_factory=dict)
    batches: dict[str, Batch] = field(default_factory=dict)
    files: dict[str, StoredFile] = field(default_factory=dict)
    busy: set[asyncio.Task[None]] = field(default_factory=set)

    def reset(self) -> None:
        """Forget everything and drop the answers under way. Runs on the server's loop."""
        for task in self.busy - {asyncio.current_task()}:
            task.cancel()
        self.script.clear()
        self.log.clear()
        self.settings = Settings()
        self.holds = Holds()
        self.message_batches, self.batches, self.files = {}, {}, {}
        self.chance = random.Random(7)
