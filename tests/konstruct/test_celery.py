"""Tasks whose names changed are done under the names that wait in queues."""

from konstruct.celery import RENAMED_TASKS, _answer_to_old_names, app


def test_a_task_answers_to_its_old_name() -> None:
    app.loader.import_default_modules()
    _answer_to_old_names()
    assert set(RENAMED_TASKS) <= set(app.tasks)
    for old, new in RENAMED_TASKS.items():
        assert app.tasks[old] is app.tasks[new]
        assert app.tasks[new].name == new
