"""The rows of batches. Constraints keep what the code must never break."""

from batches.models.item import BatchItem, BatchMember, MemberState, RequestStatus, StagedResult, StepState
from batches.models.job import OPEN_JOBS, BatchJob, JobStatus, Phase, PollerLease, Spent
from batches.models.llm import OPEN_LLM, LLMBatch, LLMState

__all__ = [
    "OPEN_JOBS",
    "OPEN_LLM",
    "BatchItem",
    "BatchJob",
    "BatchMember",
    "JobStatus",
    "LLMBatch",
    "LLMState",
    "MemberState",
    "Phase",
    "PollerLease",
    "RequestStatus",
    "Spent",
    "StagedResult",
    "StepState",
]
