"""The API described for machines (``/v1/openapi.json``) and for people (``/v1/docs``).

Answers are built by plain functions, so the description names paths, parameters and bodies; a view says what
its methods read in ``takes = {"POST": Serializer}``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.urls import URLPattern, re_path
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes

Endpoint = tuple[str, str, str, Any]


class WireSchema(AutoSchema):
    """What a view of ours says of itself."""

    def get_request_serializer(self) -> Any:
        return getattr(self.view, "takes", {}).get(self.method)

    def get_response_serializers(self) -> Any:
        return OpenApiTypes.ANY

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
    return [endpoint for endpoint in endpoints if endpoint[0].startswith("/v1/") and "/docs" not in endpoint[0]]


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
