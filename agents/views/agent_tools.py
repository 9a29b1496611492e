"""The REST API of an agent's tools."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.actions import tools as actions
from agents.actions.trial import run_tool
from agents.policies import rows
from agents.serializers.agents import ApprovalToggle, ToolArguments
from agents.views.agents import state_of
from lettaweb.lib import bodies
from lettaweb.lib.paging import flag, page_of, shown
from tools.policies import tool
from tools.wire import tool_state


class AgentTools(APIView):
    """/v1/agents/{agent_id}/tools"""

    def get(self, request: Request, agent_id: str) -> Response:
        mine = rows.named_agent(agent_id).tools.all()
        return Response([tool_state(row) for row in shown(mine, page_of(request.query_params, limit=10))])


class AttachTool(APIView):
    """/v1/agents/{agent_id}/tools/attach/{tool_id}"""

    def patch(self, request: Request, agent_id: str, tool_id: str) -> Response:
        return state_of(request, actions.attach_tool(rows.agent(agent_id), tool(tool_id)))


class DetachTool(APIView):
    """/v1/agents/{agent_id}/tools/detach/{tool_id}"""

    def patch(self, request: Request, agent_id: str, tool_id: str) -> Response:
        return state_of(request, actions.detach_tool(rows.agent(agent_id), tool(tool_id)))


class ToolApproval(APIView):
    """/v1/agents/{agent_id}/tools/approval/{tool_name}: in the body or the query, the body first."""

    takes = {"PATCH": ApprovalToggle}

    def patch(self, request: Request, agent_id: str, tool_name: str) -> Response:
        agent = rows.agent(agent_id)
        required = bodies.read(ApprovalToggle, request)["requires_approval"]
        if required is None:
            required = flag(request.query_params, "requires_approval")
        if required is None:
            raise bodies.invalid("requires_approval must be provided either in request body or as query parameter")
        return state_of(request, actions.set_approval(agent, tool_name, required))


class RunAgentTool(APIView):
    """/v1/agents/{agent_id}/tools/{tool_name}/run"""

    takes = {"POST": ToolArguments}

    def post(self, request: Request, agent_id: str, tool_name: str) -> Response:
        agent = rows.agent(agent_id)
        given: dict[str, Any] = bodies.read(ToolArguments, request).get("args") or {}
        return Response(run_tool(request.user, agent, tool_name, given))
