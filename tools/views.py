"""The REST API of tools."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from lettaweb.lib import bodies, paging
from tools import actions, policies, serializers
from tools.filters import matching, tools_of
from tools.models import Tool
from tools.runner import ToolResult
from tools.wire import tool_state


class Tools(APIView):
    """/v1/tools/"""

    takes = {"POST": serializers.ToolCreate, "PUT": serializers.ToolCreate}

    def get(self, request: Request) -> Response:
        rows = paging.shown(tools_of(request.query_params), paging.page_of(request.query_params))
        return Response([tool_state(tool) for tool in rows])

    def post(self, request: Request) -> Response:
        given = bodies.given(bodies.read(serializers.ToolCreate, request))
        return Response(tool_state(actions.upsert_tool(request.user, given)))

    put = post


class ToolCount(APIView):
    """/v1/tools/count"""

    def get(self, request: Request) -> Response:
        return Response(tools_of(request.query_params).count())


class ToolDetail(APIView):
    """/v1/tools/{tool_id}"""

    takes = {"PATCH": serializers.ToolUpdate}

    def get(self, request: Request, tool_id: str) -> Response:
        return Response(tool_state(policies.tool(tool_id)))

    def patch(self, request: Request, tool_id: str) -> Response:
        tool = policies.tool(tool_id)
        given = bodies.given(bodies.read(serializers.ToolUpdate, request))
        return Response(tool_state(actions.update_tool(request.user, tool, _metadata(given))))

    def delete(self, request: Request, tool_id: str) -> Response:
        actions.delete_tool(request.user, policies.tool(tool_id))
        return Response(None)


class BaseTools(APIView):
    """/v1/tools/add-base-tools"""

    def post(self, request: Request) -> Response:
        return Response([tool_state(tool) for tool in actions.add_base_tools(request.user)])


class RunSource(APIView):
    """/v1/tools/run"""

    takes = {"POST": serializers.ToolRun}

    def post(self, request: Request) -> Response:
        given = bodies.given(bodies.read(serializers.ToolRun, request))
        return Response(tool_return(actions.run_source(request.user, given)))


class GenerateSchema(APIView):
    """/v1/tools/generate-schema"""

    takes = {"POST": serializers.SchemaRequest}

    def post(self, request: Request) -> Response:
        given = bodies.read(serializers.SchemaRequest, request)
        return Response(actions.schema_of({"source_code": given["code"]}))


class SearchTools(APIView):
    """/v1/tools/search"""

    takes = {"POST": serializers.ToolSearch}

    def post(self, request: Request) -> Response:
        given = bodies.given(bodies.read(serializers.ToolSearch, request))
        rows = matching(
            Tool.objects.all(),
            text=given.get("query", ""),
            types=given.get("tool_types", []),
            tags=given.get("tags", []),
        )
        return Response([_found(tool, rank) for rank, tool in enumerate(rows[: given["limit"]], start=1)])


def _found(tool: Tool, rank: int) -> dict[str, Any]:
    return {
        "tool": tool_state(tool),
        "embedded_text": None,
        "fts_rank": rank,
        "vector_rank": None,
        "combined_score": 1 / rank,
    }


def _metadata(given: dict[str, Any]) -> dict[str, Any]:
    """The two names that clients have for a tool's metadata as one."""
    if "metadata_" in given:
        given["metadata"] = given.pop("metadata_")
    return given


def tool_return(result: ToolResult) -> dict[str, Any]:
    """The result of a source that ran on its own, as a tool_return_message; the ids are the word "null"."""
    status = "success" if result.ok else "error"
    shared = {
        "tool_return": result.text,
        "status": status,
        "tool_call_id": "null",
        "stdout": result.stdout,
        "stderr": result.stderr,
    }
    return {
        "id": "null",
        "date": datetime.now(UTC).replace(microsecond=0).isoformat(),
        "name": None,
        "message_type": "tool_return_message",
        "otid": None,
        "sender_id": None,
        "step_id": None,
        "is_err": None,
        "seq_id": None,
        "run_id": None,
        **shared,
        "tool_returns": [{"type": "tool", **shared}],
    }
