"""The admin distinguishes two ids that look alike, and finds each exactly."""

from urllib.parse import urlencode

import pytest
from django.test import Client

from memory.indexing import embedding_jobs as embeddings
from tests.konstruct.conftest import Program

pytestmark = pytest.mark.django_db(transaction=True)


def test_erasure_form_warns_of_ids_that_look_the_same(program_a: Program, admin: Client) -> None:
    for user_id in ("zoe", "zoe ", "eva"):
        assert program_a.send("Hello", user_id=user_id).status_code == 202
    embeddings.drain(program_a.tenant.id)
    page = admin.get(f"/admin/people/person/erase/?{urlencode({'user': 'zoe'})}").content.decode()
    assert "zoe‹U+0020›" in page
    other = admin.get(f"/admin/people/person/?{urlencode({'user': 'zoe '})}").content.decode()
    assert "(zoe‹U+0020›)" in other
    alone = admin.get(f"/admin/people/person/erase/?{urlencode({'user': 'eva'})}").content.decode()
    assert 'id="alike"' not in alone
