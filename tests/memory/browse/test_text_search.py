"""Finding messages by their words among all users of a tenant."""

from collections.abc import Callable

import pytest

from memory.browse.search import search_messages
from memory.indexing import embedding_jobs
from memory.models import Message
from tenants.context import tenant_scope
from tenants.models import Tenant


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("wir suchen eine schöne Wohnung mit einem Balkon", "Wohnungen"),
        ("mi hermana vive con dos gatas en la casa", "gata"),
        ("Мы купили новую книгу о море", "книги"),
        ("kediler bu ışıkta hiç uyumuyor", "KEDİ"),
        ("w domu jest nowe łóżko i szafa", "lozko"),
        ("اشتريتُ الكتابَ من هنا", "كتاب"),
        ("札幌の大学に通っています", "大学"),
        ("the wedding was in Lisbon", "weddings"),
    ],
)
def test_a_word_alone_finds_its_forms_in_any_language(
    tenant_a: Tenant, add_message: Callable[..., Message], said: str, asked: str
) -> None:
    message = add_message(tenant_a.id, said)
    add_message(tenant_a.id, "Something else was said in the meantime")
    for _ in range(2):  # before and after it is indexed
        with tenant_scope(tenant_a.id):
            first, *_rest = search_messages(asked).hits
        assert (first.message, first.words) == (message, 1.0)
        embedding_jobs.drain(tenant_a.id)
