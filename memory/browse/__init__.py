"""Reads for auditors: threads, users, statistics, words, neighbours of a memory."""
