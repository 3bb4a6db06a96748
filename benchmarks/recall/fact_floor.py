"""Choose the minimum similarity of a message and a fact in its prompt.

    python -m benchmarks.recall.fact_floor

The data are twenty facts of a tenant, messages for which each of them is relevant, and small talk
for which none is. For each floor the script prints the share of relevant facts that are in the
prompt, and the share of irrelevant ones, with questions and with small talk. `FACT_FLOOR` in
memory/conf.py is chosen from this table: a missing fact can make an answer wrong, and a superfluous
one is a line of ten tokens.
"""

import numpy as np

from benchmarks.tools.throwaway import set_up

FLOORS = (0.10, 0.14, 0.16, 0.18, 0.20, 0.25, 0.30, 0.35, 0.40)

# fmt: off
MATTERS = {
    "Maria lives in Bonn.": (
        "Where do I live?", "Which city am I in?", "Can you recommend a doctor near my home?"),
    "Maria is allergic to walnuts.": (
        "What am I allergic to?", "Suggest a dessert that I can eat.",
        "Is there anything I must not eat?"),
    "Maria's sister Zoe moved to Lisbon in 2024.": (
        "Where does my sister live?", "What is my sister called?",
        "I want to visit Zoe, which airport do I fly to?"),
    "Maria prefers to be addressed informally.": (
        "How should you address me?", "Write me a greeting."),
    "Maria drives a red Fiat Panda.": (
        "What car do I have?", "My car needs new tyres, which size?", "What colour is my car?"),
    "Maria works as a nurse at the university hospital.": (
        "What is my job?", "Where do I work?", "When I come home from my shift I am tired."),
    "Maria's wedding anniversary is on 14 March.": (
        "When is our anniversary?", "Remind me to buy flowers for my husband in time."),
    "The office is closed on Fridays.": (
        "When is the office open?", "Can I come by on Friday?"),
    "Invoices are due within 30 days.": (
        "When must I pay the invoice?", "What are your payment terms?"),
    "Customers in Switzerland pay no shipping fee.": (
        "How much is shipping to Zurich?", "Do you deliver to Switzerland?"),
    "The premium plan costs 49 euros a month.": (
        "How much is premium?", "What does the subscription cost?"),
    "Maria is training for a marathon in Berlin.": (
        "What am I training for?", "Make me a running plan.", "When is my race?"),
    "Maria has a dog called Rex.": (
        "What is my dog called?", "Who looks after my pet while I travel?"),
    "Maria does not drink alcohol.": (
        "Which wine goes with fish?", "What should I order at the bar?"),
    "The return period is fourteen days.": (
        "Can I send the shoes back?", "How long can I return an item?"),
    "Maria speaks German, English and a little Portuguese.": (
        "Which languages do I speak?", "Translate the letter into a language I understand."),
    "Maria's favourite colour is green.": (
        "Which colour do I like?", "Help me choose paint for the wall."),
    "Maria's son Tim started school in August.": (
        "How old is my son?", "What can I cook for my child's lunch box?",
        "When did Tim start school?"),
    "Support answers within four hours on weekdays.": (
        "When will somebody answer my ticket?", "Is the support available at weekends?"),
    "Maria broke her left wrist in May.": (
        "What happened to my wrist?", "Which exercises can I do at the gym?"),
}
SMALL_TALK = (
    "Hello!", "Good morning, how are you?", "Thanks, that helps a lot.", "Ok.", "Tell me a joke.",
    "What is the capital of France?", "Explain how photosynthesis works.",
    "Write a regular expression for dates.", "What is 17 times 23?",
    "Who won the world cup in 2014?", "Never mind.", "Yes, please do that.",
    "How do I reverse a list in Python?", "What time is it in Tokyo?", "Summarise the text above.",
    "I see, interesting.", "How tall is Mount Everest?", "Can you say that again more slowly?",
    "What do you think about the weather?", "Who wrote Faust?",
)
# fmt: on


def main() -> None:
    """Print the table."""
    set_up()
    from memory.conf import FACT_FLOOR, NEAR_FACT_FLOOR, NEAR_FACTS
    from memory.embedding.embedder import embed

    facts = np.array(embed(list(MATTERS)))
    messages = [(text, n) for n, texts in enumerate(MATTERS.values()) for text in texts]
    alike = np.array(embed([text for text, _ in messages])) @ facts.T
    small = np.array(embed(list(SMALL_TALK))) @ facts.T
    matters = np.zeros_like(alike, dtype=bool)
    matters[np.arange(len(messages)), [number for _, number in messages]] = True

    print(f"{len(facts)} facts, {len(messages)} messages, {len(SMALL_TALK)} times small talk")
    print(f"{'floor':>7}{'told if it matters':>22}{'if it does not':>18}{'with small talk':>19}")
    for floor in FLOORS:
        shares = [(values >= floor).mean() for values in (alike[matters], alike[~matters], small)]
        mark = "  <- FACT_FLOOR" if floor == FACT_FLOOR else ""
        print(f"{floor:>7.2f}{shares[0]:>22.2f}{shares[1]:>18.2f}{shares[2]:>19.2f}{mark}")
    print(f"{FACT_FLOOR:.2f}, and from a lower floor on so many of the nearest")
    for near in (1, 2, 3, 4):
        for floor in FLOORS[: FLOORS.index(FACT_FLOOR)]:
            found_facts, told_small = (
                (values >= FACT_FLOOR) | ((ranks(values) < near) & (values >= floor))
                for values in (alike, small)
            )
            shares = [
                chosen.mean()
                for chosen in (found_facts[matters], found_facts[~matters], told_small)
            ]
            mark = "  <- ours" if (near, floor) == (NEAR_FACTS, NEAR_FACT_FLOOR) else ""
            print(
                f"{near:>2}{floor:>5.2f}{shares[0]:>22.2f}{shares[1]:>18.2f}{shares[2]:>19.2f}{mark}"
            )


def ranks(values: np.ndarray) -> np.ndarray:
    """Return the rank of each fact for each message, 0 for the nearest."""
    return (-values).argsort(axis=1).argsort(axis=1)


if __name__ == "__main__":
    main()
