"""How people want a tool treated, as a form."""

from __future__ import annotations

import re
from typing import Any

from django import forms

from tools.models import ExpireAction, OnInterrupt, Risk, Tool

LONGEST_WAIT = 60 * 24 * 365
_HOST = re.compile(r"(\*\.)?[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?(:[0-9]{1,5})?")


class Lines(forms.CharField):
    """A list of texts, one a line."""

    def __init__(self, **options: Any) -> None:
        super().__init__(widget=forms.Textarea(attrs={"rows": 3}), required=False, **options)

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(str(line) for line in value) if isinstance(value, list) else value

    def clean(self, value: Any) -> Any:
        text = str(super().clean(value) or "")
        return list(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))


class TreatmentForm(forms.Form):
    """Risk, expiry, approval, secrets and network of a tool."""

    risk = forms.ChoiceField(choices=Risk.choices, help_text="High risk is always asked twice.")
    default_requires_approval = forms.BooleanField(
        required=False,
        label="Agents that get it ask a person",
        help_text="Agents that have it already stay as they are.",
    )
    expires_after = forms.IntegerField(
        required=False, min_value=1, max_value=LONGEST_WAIT, label="Expires after (minutes)", help_text="Empty: never."
    )
    expire_action = forms.ChoiceField(
        label="Then", choices=[(ExpireAction.DENY, "it is denied"), (ExpireAction.PAUSE, "it stays, marked overdue")]
    )
    on_interrupt = forms.ChoiceField(
        required=False,
        label="When the server dies while it runs",
        choices=[
            (OnInterrupt.DEFAULT, "ask a person if it was gated, else tell the agent"),
            (OnInterrupt.ASK, "ask a person what happened"),
            (OnInterrupt.TELL, "tell the agent that nobody knows"),
            (OnInterrupt.RERUN, "run it again (it is safe to repeat)"),
        ],
    )
    secret_fields = Lines(label="Hidden arguments", help_text="One name a line; masked on every screen.")
    network_hosts = Lines(label="Hosts that it may reach", help_text="One a line; none: no network.")

    def clean_network_hosts(self) -> list[str]:
        hosts: list[str] = self.cleaned_data["network_hosts"]
        wrong = [host for host in hosts if not _HOST.fullmatch(host)]
        if wrong:
            raise forms.ValidationError(f"This is no host name: {wrong[0][:80]}")
        return hosts


def first_values(tool: Tool) -> dict[str, Any]:
    return {name: getattr(tool, name) for name in TreatmentForm.base_fields}
