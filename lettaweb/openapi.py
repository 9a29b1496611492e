"""The API described for machines (``/v1/openapi.json``) and for people (``/v1/docs``).

Answers are built by plain functions, so the description names paths, parameters and bodies; a view says what
its methods read in ``takes = {"POST": Serializer}``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from django.urls import URLPattern, re_path
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes

Endpoint = tuple[str, str, str, Any]

RAW = {
    "/v1/agents/{agent_id}/messages/": "Send messages; an event stream with streaming, else the whole answer.",
    "/v1/agents/{agent_id}/messages/stream/": "Send messages and read the answer as an event stream.",
    "/v1/agents/{agent_id}/messages/async/": "Send messages; the answer is the run, which goes on by itself.",
    "/v1/conversations/{conversation_id}/messages/": "Send messages; an event stream unless streaming is false.",
    "/v1/conversations/{conversation_id}/stream/": "Read on in the newest run of a conversation.",
    "/v1/runs/{run_id}/stream/": "Read the events of a run, those after starting_after.",
}  # routes ahead of Django, which has no views for them


class WireSchema(AutoSchema):
    """What a view of ours says of itself."""

    def get_request_serializer(self) -> Any:
        return getattr(self.view, "takes", {}).get(self.method)

    def get_response_serializers(self) -> Any:
        return {200: OpenApiTypes.ANY}

    def get_tags(self) -> list[str]:
        return [self.path.strip("/").split("/")[1]]

    def get_operation_id(self) -> str:
        words = [word.strip("{}") for word in self.path.strip("/").split("/")[1:]]
        return "_".join([self.method.lower(), *words]).replace("-", "_")

    def get_filter_backends(self) -> list[Any]:
        return []


class GuardScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How callers say who they are."""

    target_class = "lettaweb.rest.GuardAuthentication"
    name = "bearer"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer"}


def only_v1(endpoints: Sequence[Endpoint], **_kwargs: Any) -> list[Endpoint]:
    """The paths below /v1 once: /latest says the same again."""
    told = [endpoint for endpoint in endpoints if endpoint[0].startswith("/v1/") and "/docs" not in endpoint[0]]
    return [(path.replace("{var}", ""), *rest) for path, *rest in told]  # what a look-ahead leaves behind


def with_raw_routes(result: Any, **_kwargs: Any) -> Any:
    """The description with the routes that Django does not know."""
    for path, words in RAW.items():
        result["paths"].setdefault(path, {})["post"] = _raw_route(path, words)
    return result


def _raw_route(path: str, words: str) -> dict[str, Any]:
    anything = {"schema": {"type": "object", "additionalProperties": True}}
    answers = {"application/json": anything, "text/event-stream": {"schema": {"type": "string"}}}
    parts = path.strip("/").replace("{", "").replace("}", "").split("/")[1:]
    given = {"in": "path", "required": True, "schema": {"type": "string"}}
    return {
        "operationId": "_".join(["post", *parts]),
        "description": words,
        "tags": [parts[0]],
        "parameters": [{"name": name, **given} for name in re.findall(r"{(\w+)}", path)],
        "requestBody": {"content": {"application/json": anything}},
        "security": [{"bearer": []}],
        "responses": {"200": {"description": "", "content": answers}},
    }


def description(prefix: str) -> list[URLPattern]:
    """The paths of the description below ``prefix``."""
    # Those views ask for the class above while they are defined, so it must be there first.
    from drf_spectacular.views import SpectacularJSONAPIView, SpectacularSwaggerSplitView

    schema = SpectacularJSONAPIView.as_view(authentication_classes=[], permission_classes=[])
    docs = SpectacularSwaggerSplitView.as_view(url_name="openapi", authentication_classes=[], permission_classes=[])
    return [
        re_path(rf"^{prefix}/openapi\.json/?$", schema, name="openapi"),
        re_path(rf"^{prefix}/docs/?$", docs, name="docs"),
    ]
