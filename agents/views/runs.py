"""Runs and what belongs to them."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.actions.records import delete_run
from agents.actions.stop import cancel_runs
from agents.filters import messages
from agents.filters.runs import active, runs_of
from agents.filters.steps import steps_of
from agents.policies import rows
from agents.policies.rights import SEND
from agents.views.messages import listed
from agents.wire.runs import run_metrics, run_state, run_trace, run_usage
from agents.wire.steps import step_state
from lettaweb.lib.paging import page_of, shown, timeline


class Runs(APIView):
    """/v1/runs/"""

    def get(self, request: Request) -> Response:
        found = timeline(runs_of(request.query_params), page_of(request.query_params, limit=100))
        return Response([run_state(run) for run in found])


class ActiveRuns(APIView):
    """/v1/runs/active"""

    def get(self, request: Request) -> Response:
        found = timeline(active(runs_of(request.query_params)), page_of(request.query_params, limit=100))
        return Response([run_state(run) for run in found])


class RunDetail(APIView):
    """/v1/runs/{run_id}"""

    def get(self, request: Request, run_id: str) -> Response:
        return Response(run_state(rows.run(run_id)))

    def delete(self, request: Request, run_id: str) -> Response:
        run = rows.run(run_id)
        shown_last = run_state(run)
        delete_run(run, request.user)
        return Response(shown_last)


class RunCancel(APIView):
    """POST /v1/runs/{run_id}/cancel"""

    right = SEND

    def post(self, request: Request, run_id: str) -> Response:
        run = rows.run(run_id)
        cancel_runs(run.agent, [run_id], request.user)
        return Response(run_state(rows.run(run_id)))


class RunMessages(APIView):
    """/v1/runs/{run_id}/messages"""

    def get(self, request: Request, run_id: str) -> Response:
        found = messages.of_work(request.query_params, rows.run(run_id))
        return listed(request, found, f"run '{run_id}'", order="asc")


class RunSteps(APIView):
    """/v1/runs/{run_id}/steps"""

    def get(self, request: Request, run_id: str) -> Response:
        found = steps_of(request.query_params, rows.run(run_id))
        return Response([step_state(step) for step in shown(found, page_of(request.query_params, limit=100))])


class RunUsage(APIView):
    """/v1/runs/{run_id}/usage"""

    def get(self, request: Request, run_id: str) -> Response:
        return Response(run_usage(rows.run(run_id)))


class RunMetrics(APIView):
    """/v1/runs/{run_id}/metrics"""

    def get(self, request: Request, run_id: str) -> Response:
        return Response(run_metrics(rows.run(run_id)))


class RunTrace(APIView):
    """/v1/runs/{run_id}/trace: the log of the run, oldest first."""

    def get(self, request: Request, run_id: str) -> Response:
        run = rows.run(run_id)
        return Response(run_trace(run, page_of(request.query_params, limit=1000).limit))
