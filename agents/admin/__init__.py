"""The administration: every row to look at, none to change behind the actions' backs.

Calls that wait are decided here through the same action as at the desk; secrets stay masked.
"""

from agents.admin import approvals, rows

__all__ = ["approvals", "rows"]
