"""Attacks on the time that it takes to read what outsiders write, each run in a child process."""
