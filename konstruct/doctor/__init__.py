"""The doctor: checks setup and processes of a deployment, with a remedy for each finding."""

from konstruct.doctor.answers import SEVERITY, Answer, Report, Status
from konstruct.doctor.examining import TIMEOUT_SECONDS, examine

__all__ = ["SEVERITY", "TIMEOUT_SECONDS", "Answer", "Report", "Status", "examine"]
