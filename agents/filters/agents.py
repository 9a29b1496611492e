"""Which agents a list shows."""

from __future__ import annotations

from django.db.models import Count, Q, QuerySet
from django.http import QueryDict

from agents.models import Agent, AgentTag
from lettaweb.lib.bodies import words
from lettaweb.lib.paging import flag
from tools.wire import SYSTEM_USER

ORDER_BY = ("created_at", "updated_at", "last_run_completion")
_EXACT = ("name", "project_id", "template_id", "base_template_id", "last_stop_reason")


def agents_of(query: QueryDict) -> QuerySet[Agent]:
    """The agents that the query's filters let through; hidden ones only with ``show_hidden_agents``."""
    agents = Agent.objects.all() if flag(query, "show_hidden_agents") else Agent.objects.exclude(hidden=True)
    for name in _EXACT:
        if value := first(query, name):
            agents = agents.filter(**{name: value})
    if text := first(query, "query_text"):
        agents = agents.filter(name__icontains=text)
    if first(query, "created_by_id") not in ("", SYSTEM_USER):
        agents = agents.none()
    return _of_identity(_tagged(agents, query), query)


def first(query: QueryDict, name: str) -> str:
    """The first value of a parameter that is not empty, cleaned; "" without one."""
    return next(iter(words(query, name)), "")


def _tagged(agents: QuerySet[Agent], query: QueryDict) -> QuerySet[Agent]:
    tags = set(words(query, "tags"))
    if not tags:
        return agents
    links = AgentTag.objects.filter(tag__in=tags)
    if flag(query, "match_all_tags"):
        full = links.values("agent").annotate(found=Count("tag")).filter(found=len(tags))
        return agents.filter(pk__in=full.values("agent"))
    return agents.filter(pk__in=links.values("agent"))


def _of_identity(agents: QuerySet[Agent], query: QueryDict) -> QuerySet[Agent]:
    """There are no identities here; an agent keeps the ids that it was given."""
    wanted = first(query, "identity_id")
    if words(query, "identifier_keys"):
        return agents.none()
    if not wanted:
        return agents
    have = agents.exclude(identity_ids=[]).values_list("pk", "identity_ids")
    return agents.filter(Q(pk__in=[pk for pk, ids in have if wanted in (ids or [])]))
