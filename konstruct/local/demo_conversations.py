"""The messages and questions of the demo's two tenants.

Both tenants have an agent "Iris" and a user "sam", and messages about holidays, pets and food, so
that any leak from one to the other is visible.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class DemoQuestion:
    """A question, and words of the right answer (none: there must be no answer)."""

    text: str
    answer: str = ""


@dataclass(frozen=True)
class Company:
    """One tenant of the demo. Its messages are sent in order, then its questions."""

    slug: str
    name: str
    messages: tuple[str, ...]
    questions: tuple[DemoQuestion, ...]


AGENT = "Iris"
USER = "sam"

AURORA = Company(
    slug="aurora",
    name="Aurora Travel",
    messages=(
        "Hi Iris, I'm Sam. I look after group bookings here in the Lisbon office.",
        "My daughter Nora starts at the music conservatory in Porto this September.",
        "She plays the cello, and the one she has now was built by my grandfather.",
        "Please never book me a seafood restaurant. I am allergic to shellfish.",
        "We adopted a greyhound last week. Her name is Pixel and she is afraid of escalators.",
        "The Henderson family wants the night train from Vienna to Venice on the 14th of March.",
        "Their budget is 3,200 euros for five people, sleeping compartment included.",
        "I gave up coffee in January, so it is peppermint tea for me now.",
        "My passport runs out in November, I must not forget to renew it.",
        "For the summer holidays we rented a lighthouse keeper's cottage on the Azores.",
        "The printer on the second floor is jammed again.",
        "Could you draft a short thank-you note for the hotel in Bruges?",
        "It rained the whole weekend, so we stayed in and played cards.",
        "The new website goes live on Thursday if nothing else breaks.",
        "Do you think a walking tour works for a group of forty?",
        "I moved Monday's meeting to ten o'clock.",
        "Somebody left a red umbrella at the reception.",
        "The museum wants a deposit before they hold the tickets.",
        "We are out of brochures for the Baltic cruise.",
        "Traffic on the bridge was terrible this morning.",
        "The intern did very well on the phone today.",
        "Remind me how long a visa for Japan usually takes.",
        "Lunch was fine, nothing special.",
        "I think I will go home early, my head hurts.",
    ),
    questions=(
        DemoQuestion("What am I allergic to?", "shellfish"),
        DemoQuestion("Which instrument does Nora play?", "cello"),
        DemoQuestion("What is the name of our dog?", "Pixel"),
        DemoQuestion("How much can the Hendersons spend?", "3,200"),
        DemoQuestion("What do I drink instead of coffee?", "peppermint"),
    ),
)

BIRCH = Company(
    slug="birch",
    name="Birch Garden Centre",
    messages=(
        "Hello Iris, Sam here, from the greenhouse.",
        "My son Theo is learning to play the trumpet, the neighbours suffer.",
        "We have two cats, Miso and Soba, and no dog.",
        "The holidays are cancelled this year, we are building a new greenhouse instead.",
        "I water the orchids on Mondays and Thursdays with rain water only.",
        "The supplier raised the price of peat-free compost to nine euros a bag.",
    ),
    questions=(
        DemoQuestion("What am I allergic to?"),
        DemoQuestion("Where is the passport office that I should go to before November?"),
        DemoQuestion("What are our cats called?", "Miso"),
        DemoQuestion("Which instrument does Theo play?", "trumpet"),
    ),
)

TENANTS = (AURORA, BIRCH)
