"""The content security policy of pages, and the replacement of unfold's Alpine."""

from pathlib import Path

from django.contrib.staticfiles import finders

from konstruct.content_security import POLICIES


def test_pages_run_files_of_this_host_alone() -> None:
    for policy in POLICIES.values():
        assert "; script-src 'self'; " in policy
        assert "unsafe-eval" not in policy


def test_alpines_build_that_evaluates_no_text_is_served_in_the_place_of_unfolds() -> None:
    served = finders.find("unfold/js/alpine/alpine.js")
    assert served is not None
    assert "@alpinejs/csp 3.17.4" in Path(served).read_text()[:200]
    # Alpine of unfold: without it nothing is replaced.
    assert len(finders.find("unfold/js/alpine/alpine.js", find_all=True)) == 2
