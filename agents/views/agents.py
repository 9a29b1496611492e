"""The REST API of agents."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.actions import agents as actions
from agents.actions.conversations import recompile
from agents.actions.deletion import delete_agent
from agents.actions.overview import context_overview
from agents.actions.window import reset_messages
from agents.filters.agents import ORDER_BY, agents_of
from agents.models import Agent
from agents.policies import rows
from agents.policies.rights import BUILD, can
from agents.serializers.agents import CreateAgent, ResetMessages, UpdateAgent
from agents.wire.agents import agent_state, agent_states
from lettaweb.lib import bodies
from lettaweb.lib.paging import flag, page_of, shown


def state_of(request: Request, agent: Agent) -> Response:
    """The answer that shows one agent, read anew; secrets only to those who may set them."""
    fresh = rows.agent(agent.wire_id)
    return Response(agent_state(fresh, reveal=can(request.user, BUILD)))


def states_of(request: Request, agents: list[Agent]) -> Response:
    """The answer that lists agents."""
    return Response(agent_states(agents, reveal=can(request.user, BUILD)))


class Agents(APIView):
    """/v1/agents/"""

    takes = {"POST": CreateAgent}

    def get(self, request: Request) -> Response:
        page = page_of(request.query_params, order_by=ORDER_BY)
        return states_of(request, shown(agents_of(request.query_params), page))

    def post(self, request: Request) -> Response:
        given = bodies.given(bodies.read(CreateAgent, request))
        return state_of(request, actions.create_agent(given))


class AgentCount(APIView):
    """/v1/agents/count"""

    def get(self, request: Request) -> Response:
        return Response(agents_of(request.query_params).count())


class AgentDetail(APIView):
    """/v1/agents/{agent_id}"""

    takes = {"PATCH": UpdateAgent}

    def get(self, request: Request, agent_id: str) -> Response:
        return state_of(request, rows.agent(agent_id))

    def patch(self, request: Request, agent_id: str) -> Response:
        agent = rows.agent(agent_id)
        given = bodies.given(bodies.read(UpdateAgent, request))
        return state_of(request, actions.update_agent(agent, given))

    def delete(self, request: Request, agent_id: str) -> Response:
        delete_agent(rows.agent(agent_id), request.user)
        return Response({"message": f"Agent id={agent_id} successfully deleted"})


class AgentContext(APIView):
    """/v1/agents/{agent_id}/context: what fills the context window, by local estimate."""

    def get(self, request: Request, agent_id: str) -> Response:
        return Response(context_overview(rows.agent(agent_id)))


class AgentRecompile(APIView):
    """/v1/agents/{agent_id}/recompile and …/system-prompt/recompile"""

    def post(self, request: Request, agent_id: str) -> Response:
        conversation = rows.default_conversation(rows.agent(agent_id))
        return Response(recompile(conversation, dry_run=bool(flag(request.query_params, "dry_run"))))


class AgentReset(APIView):
    """/v1/agents/{agent_id}/reset-messages"""

    takes = {"PATCH": ResetMessages}

    def patch(self, request: Request, agent_id: str) -> Response:
        agent = rows.agent(agent_id)
        reset_messages(agent, request.user, with_first=bool(_asked(request)))
        return state_of(request, agent)


def _asked(request: Request) -> Any:
    given = bodies.read(ResetMessages, request)["add_default_initial_messages"]
    return flag(request.query_params, "add_default_initial_messages") if given is None else given
