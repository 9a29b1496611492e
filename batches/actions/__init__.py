"""What people and programs do with batches; API, pages and admin call the same."""

from batches.actions.create import NewBatch, NewMember, create
from batches.actions.steer import cancel, delete, pause, resume, retry_failed

__all__ = ["NewBatch", "NewMember", "cancel", "create", "delete", "pause", "resume", "retry_failed"]
