"""Steps and what belongs to them."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.actions.records import rate_step
from agents.filters import messages
from agents.filters.steps import steps_of
from agents.policies import rows
from agents.policies.rights import SEND
from agents.serializers.steps import Feedback
from agents.views.messages import listed
from agents.wire.steps import step_metrics, step_state
from lettaweb.lib import bodies
from lettaweb.lib.paging import page_of, shown


class Steps(APIView):
    """/v1/steps/"""

    def get(self, request: Request) -> Response:
        found = shown(steps_of(request.query_params), page_of(request.query_params))
        return Response([step_state(step) for step in found])


class StepDetail(APIView):
    """/v1/steps/{step_id}"""

    def get(self, request: Request, step_id: str) -> Response:
        return Response(step_state(rows.step(step_id)))


class StepMessages(APIView):
    """/v1/steps/{step_id}/messages"""

    def get(self, request: Request, step_id: str) -> Response:
        found = messages.of_work(request.query_params, rows.step(step_id))
        return listed(request, found, f"step '{step_id}'", order="asc")


class StepMetrics(APIView):
    """/v1/steps/{step_id}/metrics"""

    def get(self, request: Request, step_id: str) -> Response:
        return Response(step_metrics(rows.step(step_id)))


class StepFeedback(APIView):
    """PATCH /v1/steps/{step_id}/feedback"""

    right = SEND
    takes = {"PATCH": Feedback}

    def patch(self, request: Request, step_id: str) -> Response:
        step = rows.step(step_id)
        return Response(step_state(rate_step(step, bodies.read(Feedback, request))))


class StepTrace(APIView):
    """/v1/steps/{step_id}/trace and /v1/telemetry/{step_id}: null, requests to vendors are not kept."""

    def get(self, request: Request, step_id: str) -> Response:
        rows.step(step_id)
        return Response(None)
