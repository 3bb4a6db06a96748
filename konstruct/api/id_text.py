"""The pattern of ids that channels and programs choose."""

from django.core.validators import RegexValidator

from memory.ids import UNSEEN

# Channel-native ids are any text, but nothing that breaks a line or turns its direction. One
# pattern, for the API's description shows one.
ID_TEXT = RegexValidator(
    rf"^[^\S{UNSEEN}]*[^\s{UNSEEN}][^{UNSEEN}]*\Z",
    "Give text that is not blank, without control characters such as line breaks.",
)
