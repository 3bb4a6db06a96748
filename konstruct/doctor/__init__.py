"""The doctor: whether a deployment is set up well and at work, and what to do where it is not."""

from konstruct.doctor.answers import SEVERITY, Answer, Report, Status
from konstruct.doctor.examining import TIMEOUT_SECONDS, examine

__all__ = ["SEVERITY", "TIMEOUT_SECONDS", "Answer", "Report", "Status", "examine"]
