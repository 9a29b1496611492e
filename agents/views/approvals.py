"""The REST API of the desk: the queue, one call, and what people do with it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.actions import desk
from agents.filters import approvals as queue
from agents.models import Conversation, ToolCall
from agents.policies import rows
from agents.policies.rights import DECIDE, REVEAL
from agents.serializers import approvals as bodies_of
from agents.wire.approvals import approval_row, comment_row
from lettaweb.lib import bodies, ids
from lettaweb.lib.paging import page_of
from lettaweb.lib.problems import Problem

VIA = "rest"
LARGEST_PAGE = 500


class Approvals(APIView):
    """/api/approvals/: the queue (``state=waiting``, pending, unknown) or the history (``state=decided``).

    ``next`` is what ``after`` takes for the page that follows, null on the last one.
    """

    def get(self, request: Request) -> Response:
        limit = page_of(request.query_params, limit=50).limit
        if not 1 <= limit <= LARGEST_PAGE:
            raise Problem(422, f"limit: expected a whole number from 1 to {LARGEST_PAGE}")
        found = queue.page(request.query_params, request.user, limit)
        return Response({"items": [approval_row(call) for call in found.rows], "next": found.more or None})


class Counts(APIView):
    """/api/approvals/counts"""

    def get(self, request: Request) -> Response:
        return Response(asdict(queue.counts(request.user)))


class Presets(APIView):
    """/api/approvals/presets: ready-made reasons for a denial."""

    def get(self, request: Request) -> Response:
        return Response([asdict(preset) for preset in desk.PRESETS])


class Approval(APIView):
    """/api/approvals/{id}"""

    def get(self, request: Request, call_id: str) -> Response:
        return Response(desk.detail(_uuid(call_id)))


class Desk(APIView):
    """What needs the right to decide; each view below answers with the call as it is afterwards."""

    right = DECIDE


class Decide(Desk):
    """POST /api/approvals/{id}/decide"""

    def post(self, request: Request, call_id: str) -> Response:
        given = bodies.read(bodies_of.Decide, request)
        decided = desk.decide(
            _uuid(call_id), bodies_of.verdict_of(given),
            version=given["version"], digest=given["digest"], user=request.user, via=VIA,
        )  # fmt: skip
        run = decided.run.wire_id if decided.run else None
        return Response({**_row(decided.call), "continues_in": run, "repeated": decided.repeated})


class Bulk(Desk):
    """POST /api/approvals/bulk"""

    def post(self, request: Request) -> Response:
        given = bodies.read(bodies_of.Bulk, request)
        verdict = bodies_of.verdict_of(given)
        results = desk.decide_many(bodies_of.items_of(given), verdict, user=request.user, via=VIA)
        return Response({"summary": desk.summary(results, verdict.kind), "results": [_result(one) for one in results]})


class Undo(Desk):
    """POST /api/approvals/{id}/undo"""

    def post(self, request: Request, call_id: str) -> Response:
        version = bodies.read(bodies_of.Undo, request)["version"]
        return Response(_row(desk.undo(_uuid(call_id), version=version, user=request.user, via=VIA)))


class Claim(Desk):
    """POST and DELETE /api/approvals/{id}/claim"""

    def post(self, request: Request, call_id: str) -> Response:
        seconds = bodies.read(bodies_of.Claim, request)["seconds"]
        return Response(_row(desk.claim(_uuid(call_id), request.user, seconds)))

    def delete(self, request: Request, call_id: str) -> Response:
        return Response(_row(desk.release(_uuid(call_id), request.user)))


class Comment(Desk):
    """POST /api/approvals/{id}/comment"""

    def post(self, request: Request, call_id: str) -> Response:
        text = bodies.read(bodies_of.Comment, request)["text"]
        return Response(comment_row(desk.comment(_uuid(call_id), request.user, text)))


class Extend(Desk):
    """POST /api/approvals/{id}/extend"""

    def post(self, request: Request, call_id: str) -> Response:
        minutes = bodies.read(bodies_of.Extend, request)["minutes"]
        return Response(_row(desk.extend(_uuid(call_id), request.user, minutes, via=VIA)))


class Reveal(APIView):
    """POST /api/approvals/{id}/reveal: the arguments without masks; that somebody looked is recorded."""

    right = REVEAL

    def post(self, request: Request, call_id: str) -> Response:
        return Response({"arguments": desk.reveal(_uuid(call_id), request.user, via=VIA)})


class Unstick(Desk):
    """POST /api/approvals/unstick"""

    def post(self, request: Request) -> Response:
        given = bodies.read(bodies_of.Unstick, request)
        closed: list[ToolCall] = []
        for conversation in _conversations(given):
            closed += desk.unstick(conversation, request.user, given.get("reason"), via=VIA)
        return Response({"closed": [{"id": call.wire_id, "tool_call_id": call.call_id} for call in closed]})


def _conversations(given: dict[str, Any]) -> list[Conversation]:
    conversation, agent = given.get("conversation_id"), given.get("agent_id")
    if conversation:
        return [rows.conversation(conversation, agent or "")]
    if agent:
        return list(Conversation.objects.filter(agent=rows.agent(agent)).select_related("agent"))
    raise Problem(422, "conversation_id: this or agent_id is required")


def _uuid(wire: str) -> Any:
    return ids.parse(ToolCall.PREFIX, wire)


def _row(call: ToolCall) -> dict[str, Any]:
    return approval_row(call)


def _result(result: desk.RowResult) -> dict[str, Any]:
    detail = result.problem.detail if result.problem else None
    return {
        "id": f"{ToolCall.PREFIX}-{result.uuid}",
        "status": result.status,
        "message": result.message or None,
        "detail": detail if isinstance(detail, dict) else None,
    }
