"""The composed conversations of long turns."""

from statistics import mean

from benchmarks.recall.long_turns import KINDS, long_turns


def test_a_seed_composes_the_same_text_and_another_seed_other_text() -> None:
    assert long_turns(1) == long_turns(1)
    assert long_turns(1) != long_turns(2)


def test_each_question_has_its_evidence_among_long_turns_on_the_same_topic() -> None:
    data = long_turns(3)
    turns = [turn for session in data["sessions"].values() for turn in session]
    words = [len(turn["content"].split()) for turn in turns if turn["role"] == "assistant"]
    assert mean(words) > 200
    assert {question["question_type"] for question in data["questions"]} == set(KINDS)
    for question in data["questions"]:
        assert set(question["answer_session_ids"]) < set(question["haystack_session_ids"])
        for session in question["answer_session_ids"]:
            assert sum(turn["has_answer"] for turn in data["sessions"][session]) == 1
        expected = {"counted": 3, "changed": 2}.get(question["question_type"], 1)
        assert len(question["answer_session_ids"]) == expected
