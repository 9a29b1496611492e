"""Conversations: lists, their course as far as no answer is streamed, and their messages."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.actions import conversations as actions
from agents.actions.compact import compact
from agents.actions.stop import cancel_all, cancel_runs
from agents.filters import conversations as filters
from agents.filters import messages
from agents.models import Conversation
from agents.policies import rows
from agents.policies.rights import BUILD, SEND
from agents.serializers.conversations import Cancel, Compaction, ConversationCreate, ConversationUpdate
from agents.views.messages import listed
from agents.wire.conversations import conversation_state, conversation_states
from lettaweb.lib import bodies
from lettaweb.lib.paging import page_of, shown
from lettaweb.lib.problems import Problem


class Conversations(APIView):
    """/v1/conversations/"""

    right = SEND
    takes = {"POST": ConversationCreate}

    def get(self, request: Request) -> Response:
        page = page_of(request.query_params, order_by=filters.ORDER_BY)
        found = filters.conversations_of(request.query_params)
        if page.order_by == "last_run_completion":
            found, cursors = filters.with_completion(found), filters.with_completion(Conversation.objects.all())
            return Response(conversation_states(shown(found, page, cursors)))
        return Response(conversation_states(shown(found, page)))

    def post(self, request: Request) -> Response:
        given = bodies.read(ConversationCreate, request)
        owner = request.query_params.get("agent_id") or given.get("agent_id")
        if not owner:
            raise Problem(422, "agent_id is required")
        return Response(conversation_state(actions.create_conversation(rows.agent(owner), given)))


class ConversationDetail(APIView):
    """/v1/conversations/{conversation_id}"""

    rights = {"PATCH": SEND, "DELETE": BUILD}
    takes = {"PATCH": ConversationUpdate}

    def get(self, request: Request, conversation_id: str) -> Response:
        return Response(conversation_state(_named(request, conversation_id)))

    def patch(self, request: Request, conversation_id: str) -> Response:
        row = _named(request, conversation_id)
        given = bodies.read(ConversationUpdate, request)
        return Response(conversation_state(actions.update_conversation(row, given)))

    def delete(self, request: Request, conversation_id: str) -> Response:
        actions.delete_conversation(_named(request, conversation_id), request.user)
        return Response(None)


class ConversationMessages(APIView):
    """GET /v1/conversations/{conversation_id}/messages; POST is a raw route."""

    def get(self, request: Request, conversation_id: str) -> Response:
        row = _named(request, conversation_id)
        return listed(request, messages.of_conversation(request.query_params, row), f"conversation '{conversation_id}'")


class ConversationCancel(APIView):
    """POST /v1/conversations/{conversation_id}/cancel"""

    right = SEND

    def post(self, request: Request, conversation_id: str) -> Response:
        return Response(cancel_all([_named(request, conversation_id)], request.user))


class ConversationFork(APIView):
    """POST /v1/conversations/{conversation_id}/fork"""

    right = SEND

    def post(self, request: Request, conversation_id: str) -> Response:
        source = _named(request, conversation_id)
        until = request.query_params.get("message_id")
        hidden = bodies.flag(request.query_params, "hidden")
        fork = actions.fork_conversation(source, until=rows.message(until) if until else None, hidden=bool(hidden))
        return Response(conversation_state(fork))


class ConversationCompact(APIView):
    """POST /v1/conversations/{conversation_id}/compact"""

    right = SEND
    takes = {"POST": Compaction}

    def post(self, request: Request, conversation_id: str) -> Response:
        given = bodies.read(Compaction, request)
        row = _named(request, conversation_id, given.get("agent_id"))
        return Response(compact(row, given.get("compaction_settings"), request.user))


class ConversationRecompile(APIView):
    """POST /v1/conversations/{conversation_id}/recompile: the system prompt as it is now."""

    takes = {"POST": Compaction}

    def post(self, request: Request, conversation_id: str) -> Response:
        given = bodies.read(Compaction, request)
        row = _named(request, conversation_id, given.get("agent_id"))
        dry_run = bodies.flag(request.query_params, "dry_run")
        return Response(actions.recompile(row, dry_run=bool(dry_run)))


class AgentCancel(APIView):
    """POST /v1/agents/{agent_id}/messages/cancel"""

    right = SEND
    takes = {"POST": Cancel}

    def post(self, request: Request, agent_id: str) -> Response:
        owner = rows.named_agent(agent_id)
        run_ids = bodies.read(Cancel, request).get("run_ids")
        return Response(cancel_runs(owner, run_ids, request.user))


class AgentSummarize(APIView):
    """POST /v1/agents/{agent_id}/summarize; ``max_message_length`` of older clients is without effect."""

    right = SEND
    takes = {"POST": Compaction}

    def post(self, request: Request, agent_id: str) -> Response:
        row = rows.default_conversation(rows.agent(agent_id))
        settings = bodies.read(Compaction, request).get("compaction_settings")
        return Response(compact(row, settings, request.user))


def _named(request: Request, conversation_id: str, agent_id: str | None = None) -> Conversation:
    return rows.conversation(conversation_id, agent_id or request.query_params.get("agent_id") or "")
