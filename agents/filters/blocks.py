"""Which memory blocks a list shows."""

from __future__ import annotations

from django.db.models import Count, QuerySet
from django.http import QueryDict

from agents.filters.agents import first
from agents.models import Block
from lettaweb.lib.bodies import invalid, words
from lettaweb.lib.paging import flag

_EXACT = ("label", "name", "project_id")
_SEARCH = {"label_search": "label", "description_search": "description", "value_search": "value"}


def blocks_of(query: QueryDict) -> QuerySet[Block]:
    """The blocks that the query's filters let through; hidden ones only with ``show_hidden_blocks``.

    Raises a :class:`Problem` 422 for a bad filter.
    """
    blocks = Block.objects.all() if flag(query, "show_hidden_blocks") else Block.objects.exclude(hidden=True)
    for name in _EXACT:
        if value := first(query, name):
            blocks = blocks.filter(**{name: value})
    for name, column in _SEARCH.items():
        if value := first(query, name):
            blocks = blocks.filter(**{f"{column}__icontains": value})
    if flag(query, "templates_only"):
        blocks = blocks.filter(is_template=True)
    if first(query, "identity_id") or words(query, "identifier_keys"):
        return blocks.none()
    return _tagged(_connected(blocks, query), query)


def _connected(blocks: QuerySet[Block], query: QueryDict) -> QuerySet[Block]:
    bounds = {
        "connections__gt": _numbers(query, "connected_to_agents_count_gt")[:1],
        "connections__lt": _numbers(query, "connected_to_agents_count_lt")[:1],
        "connections__in": _numbers(query, "connected_to_agents_count_eq"),
    }
    if not any(bounds.values()):
        return blocks
    blocks = blocks.annotate(connections=Count("agentblock"))
    for lookup, values in bounds.items():
        if values:
            blocks = blocks.filter(**{lookup: values if lookup.endswith("__in") else values[0]})
    return blocks


def _numbers(query: QueryDict, name: str) -> list[int]:
    try:
        found = [int(text) for text in words(query, name)]
    except ValueError:
        raise invalid(f"{name}: expected a whole number") from None
    if any(abs(number) > 2**31 for number in found):
        raise invalid(f"{name}: out of range")
    return found


def _tagged(blocks: QuerySet[Block], query: QueryDict) -> QuerySet[Block]:
    tags = set(words(query, "tags"))
    if not tags:
        return blocks
    every = flag(query, "match_all_tags")
    have = ((pk, set(found or ())) for pk, found in blocks.values_list("pk", "tags"))
    return blocks.filter(pk__in=[pk for pk, found in have if (tags <= found if every else tags & found)])
