"""Attacks on the time of parsing untrusted text. Each runs in a child process."""
