"""The log of `serve`: lines with the names of their processes."""

from konstruct.local.serving import print_log


def test_lines_have_the_name_of_their_process_and_no_control_characters() -> None:
    lines: list[str] = []
    text = "one\x1b[31m\rtwo\u202ethree \N{SNOWMAN}\n".encode()
    log = [b"==> /home/log/web.log <==\n", text, b"\n", b"==> /home/log/beat.log <==\n", b"\xff\n"]
    print_log(log, lines.append)
    assert lines == [
        r"web        | one\x1b[31m\rtwo\u202ethree " + "\N{SNOWMAN}",
        "beat       | \N{REPLACEMENT CHARACTER}",
    ]
