"""An agent's secrets as the wire writes them."""

from __future__ import annotations

from typing import Any

from agents.models import Agent, AgentVariable
from lettaweb.lib.ids import wire_id
from lettaweb.lib.vault import unseal
from tools.wire import SYSTEM_USER, moment


def variable_state(variable: AgentVariable, agent: Agent, *, reveal: bool) -> dict[str, Any]:
    """A variable; its value is "" unless the reader may change the agent (``reveal``)."""
    return {
        "created_by_id": SYSTEM_USER,
        "last_updated_by_id": SYSTEM_USER,
        "created_at": moment(variable.created_at),
        "updated_at": moment(variable.updated_at),
        "id": wire_id("agent-env", variable.uuid),
        "key": variable.key,
        "value": (unseal(variable.value_enc) or "") if reveal else "",
        "description": variable.description,
        "organization_id": None,
        "value_enc": None,
        "agent_id": agent.wire_id,
    }
