"""Words and names that an earlier version wrote otherwise are written again."""

import pytest

from memory.indexing.service import ReembedProgress, reindex_words
from memory.models import PersonName, Posting
from memory.text.lexical import lexeme_hash
from tenants.context import tenant_scope
from tenants.models import Tenant
from tests.database import as_owner
from tests.memory.messages import add_messages


def hashes(tenant: Tenant) -> set[int]:
    with tenant_scope(tenant.id):
        return set(Posting.objects.values_list("lexeme_hash", flat=True))


@pytest.mark.django_db(transaction=True)
def test_words_and_names_are_written_again(tenant_a: Tenant, tenant_b: Tenant) -> None:
    add_messages(tenant_a, "Wir haben die Wohnungen gesehen.", "Das ist gut.", name="Jörg")
    add_messages(tenant_b, "Wir haben die Wohnungen gesehen.")
    written = hashes(tenant_a), hashes(tenant_b)
    with as_owner():
        with tenant_scope(tenant_a.id):
            changed = Posting.objects.filter(lexeme_hash=lexeme_hash("wohnung"))
            assert changed.update(lexeme_hash=lexeme_hash("wohnungen")) == 1
            assert PersonName.objects.update(folded="joerg") == 1
        assert list(reindex_words(tenant_a.id)) == [ReembedProgress(0, 2), ReembedProgress(2, 2)]
    assert (hashes(tenant_a), hashes(tenant_b)) == written
    with tenant_scope(tenant_a.id):
        assert PersonName.objects.get().folded == "jorg"


def test_a_message_without_frequent_words_has_the_language_of_the_turns_before(
    tenant_a: Tenant,
) -> None:
    add_messages(tenant_a, "Wir haben gestern viele Katzen gesehen.", "Wohnungen!")
    assert lexeme_hash("wohnung") in hashes(tenant_a)
    assert lexeme_hash("wohnungen") not in hashes(tenant_a)
