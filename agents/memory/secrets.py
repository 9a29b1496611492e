"""An agent's secrets: sealed in its rows, in clear only for its tools."""

from __future__ import annotations

from collections.abc import Mapping

from agents.models import Agent, AgentVariable
from lettaweb.lib.vault import seal, unseal


def secrets_of(agent: Agent) -> dict[str, str]:
    """The environment that the agent's tools get. A value sealed under another key is left out."""
    opened = {variable.key: unseal(variable.value_enc) for variable in agent.variables.all()}
    return {key: value for key, value in opened.items() if value is not None}


def set_secrets(agent: Agent, values: Mapping[str, str]) -> None:
    """Make ``values`` the agent's only secrets, inside a transaction that the caller holds.

    A key that stays keeps its id and its description.
    """
    known = {variable.key: variable for variable in AgentVariable.objects.filter(agent=agent)}
    AgentVariable.objects.filter(agent=agent).exclude(key__in=values).delete()
    for key, value in values.items():
        variable = known.get(key) or AgentVariable(agent=agent, key=key)
        variable.value_enc = seal(value)
        variable.save()
