"""Recall: finds memories of an agent for a question, with scores, a gate, and the reasons."""

from memory.recall.service import AdjacentTurn, Cut, FactHit, Hit, RecallResult, arecall, recall
