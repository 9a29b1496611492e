"""The REST API of agent files: an agent out into a file, agents in from one."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.actions.agent_file import export_agent, import_agents
from agents.policies import rows
from agents.policies.rights import VIEW
from agents.serializers.agent_file import AgentFile, FileForm
from lettaweb.lib import bodies
from lettaweb.lib.json import BadJson, loads
from lettaweb.lib.paging import flag
from lettaweb.lib.problems import Problem


class ExportAgent(APIView):
    """/v1/agents/{agent_id}/export"""

    rights = {"POST": VIEW}

    def get(self, request: Request, agent_id: str) -> Response:
        agent, query = rows.agent(agent_id), request.query_params
        if flag(query, "use_legacy_format"):
            raise Problem(400, "The legacy format of agent files is not supported any more")
        named = query.get("conversation_id")
        conversation = rows.conversation(named, agent_id) if named else None
        if conversation is not None and conversation.agent_id != agent.pk:
            raise Problem(404, f"Conversation with ID {named} not found for agent {agent_id}")
        return Response(export_agent(agent, conversation=conversation, with_messages=not flag(query, "scrub_messages")))

    post = get


class ImportAgents(APIView):
    """/v1/agents/import"""

    takes = {"POST": FileForm}
    parser_classes = [MultiPartParser]

    def post(self, request: Request) -> Response:
        form = dict(request.data.items()) if isinstance(request.data, dict) else {}
        upload = form.pop("file", None)
        form.setdefault("override_embedding_handle", request.headers.get("x-override-embedding-model", ""))
        options = bodies.check(FileForm, {name: value for name, value in form.items() if value != ""})
        file = bodies.check(AgentFile, _content(upload))
        made = import_agents(request.user, file, options)
        return Response({"agent_ids": [agent.wire_id for agent in made]})


def _content(upload: Any) -> Any:
    """The JSON of the uploaded file; a :class:`Problem` 422 without one, 413 or 400 for one that cannot be."""
    if upload is None or isinstance(upload, str):
        raise bodies.invalid("file: an uploaded file is required")
    if upload.size > settings.LETTAWEB_MAX_BODY:
        raise Problem(413, "The file is too large.")
    try:
        content = loads(upload.read())
    except BadJson as error:
        raise Problem(400, f"The file is not an agent file: {error}") from None
    if not isinstance(content, dict) or not isinstance(content.get("agents"), list):
        raise Problem(400, "The file is not an agent file: it holds no list of agents")
    return content
