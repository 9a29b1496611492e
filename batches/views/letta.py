"""/v1/messages/batches and /v1/jobs, as Letta serves them."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.policies.rights import SEND
from agents.wire.internal import internal_message
from batches import actions, filters
from batches.serializers import new_batch
from batches.wire.jobs import job_state, job_states
from lettaweb.lib.paging import page_of, shown


class Batches(APIView):
    """/v1/messages/batches"""

    right = SEND

    def get(self, request: Request) -> Response:
        return Response(job_states(shown(filters.jobs(), page_of(request.query_params, limit=100))))

    def post(self, request: Request) -> Response:
        return Response(job_state(actions.create(new_batch(request.data), request.user)))


class BatchDetail(APIView):
    """GET /v1/messages/batches/{batch_id}"""

    def get(self, request: Request, batch_id: str) -> Response:
        return Response(job_state(filters.job(batch_id)))


class BatchCancel(APIView):
    """PATCH /v1/messages/batches/{batch_id}/cancel"""

    right = SEND

    def patch(self, request: Request, batch_id: str) -> Response:
        actions.cancel(filters.job(batch_id))
        return Response(None, status=204)


class BatchMessages(APIView):
    """GET /v1/messages/batches/{batch_id}/messages, newest first."""

    def get(self, request: Request, batch_id: str) -> Response:
        found = filters.messages_of(request.query_params, filters.job(batch_id))
        rows = shown(found, page_of(request.query_params, limit=100))
        return Response({"messages": [internal_message(row) for row in rows]})


class Jobs(APIView):
    """GET /v1/jobs/: batches are the only jobs here."""

    def get(self, request: Request) -> Response:
        found = shown(filters.jobs_of(request.query_params), page_of(request.query_params, limit=100))
        return Response(job_states(found))


class ActiveJobs(APIView):
    """GET /v1/jobs/active"""

    def get(self, request: Request) -> Response:
        found = filters.jobs_of(request.query_params, active=True)
        return Response(job_states(shown(found, page_of(request.query_params, limit=100))))


class JobDetail(APIView):
    """/v1/jobs/{job_id}"""

    right = SEND

    def get(self, request: Request, job_id: str) -> Response:
        return Response(job_state(filters.job(job_id)))

    def delete(self, request: Request, job_id: str) -> Response:
        job = filters.job(job_id)
        shown_last = job_state(job)
        actions.delete(job)
        return Response(shown_last)


class JobCancel(APIView):
    """PATCH /v1/jobs/{job_id}/cancel"""

    right = SEND

    def patch(self, request: Request, job_id: str) -> Response:
        return Response(job_state(actions.cancel(filters.job(job_id))))
