"""Reads for auditors: threads, users, statistics, words, similar messages."""
