"""The administration: every row to look at, none to change behind the actions' backs.

Calls that wait are decided here through the same action as at the desk; secrets stay masked.
"""

from django.contrib import admin

from agents.admin import approvals, rows, tokens

admin.site.site_header = admin.site.site_title = "lettaweb administration"

__all__ = ["approvals", "rows", "tokens"]
