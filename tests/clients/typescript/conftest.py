"""One server for the tests of the TypeScript client."""

from tests.clients.python.conftest import url  # noqa: F401  (a fixture)
from tests.konstruct.conftest import make_program, program_a, program_b  # noqa: F401  (fixtures)
