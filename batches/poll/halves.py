"""A file that is too large for its provider is cut in two."""

from __future__ import annotations

import uuid
from pathlib import Path

from django.db import transaction
from django.utils import timezone

from agents.providers.lines import load_line, text_of
from batches.models import BatchItem, LLMBatch, LLMState
from batches.poll.spool import Spool, path_of, remove
from lettaweb.lib import ids


def halve(llm: LLMBatch) -> None:
    """Put the items of ``llm`` into two new LLM batches with a file each; the old one is gone."""
    path, half = path_of(llm.uuid), llm.count // 2
    made = [_part(llm, path, 0, half), _part(llm, path, half, llm.count)]
    with transaction.atomic():
        for part, items in made:
            part.save(force_insert=True)
            BatchItem.objects.filter(llm_batch=llm, uuid__in=items).update(llm_batch=part, updated_at=timezone.now())
        llm.delete()
    remove(llm.uuid)


def _part(llm: LLMBatch, path: Path, first: int, end: int) -> tuple[LLMBatch, list[uuid.UUID]]:
    """The lines ``first`` up to ``end`` in a file of their own."""
    part = LLMBatch(uuid=uuid.uuid4(), job=llm.job, provider=llm.provider, model=llm.model, status=LLMState.CREATED)
    spool, items = Spool(part.uuid), list[uuid.UUID]()
    with path.open("rb") as file:
        for number, line in enumerate(file):
            if first <= number < end:
                spool.add(line.rstrip(b"\n"))
                found = ids.find(BatchItem.PREFIX, text_of((load_line(line) or {}).get("custom_id")))
                assert found is not None
                items.append(found)
    spool.close()
    part.count, part.size, part.digest = len(items), spool.size, spool.digest
    return part, items
