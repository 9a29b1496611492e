"""Models on offer and the providers that offer them."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents import providers
from agents.filters.models import models_of
from agents.wire.models import EMBEDDINGS, embedding_state, model_state, provider_state


class Models(APIView):
    """/v1/models/"""

    def get(self, request: Request) -> Response:
        return Response([model_state(model.provider, model.info) for model in models_of(request.query_params)])


class EmbeddingModels(APIView):
    """/v1/models/embedding"""

    def get(self, request: Request) -> Response:
        return Response([embedding_state(handle) for handle in EMBEDDINGS])


class Providers(APIView):
    """GET /v1/providers/: what the settings configure; keys are never shown."""

    def get(self, request: Request) -> Response:
        return Response([provider_state(name, providers.get(name).configured()) for name in providers.names()])
