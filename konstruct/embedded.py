"""The command `python -m konstruct.embedded`, implemented in `konstruct.local.embedded`."""

from runpy import run_module

if __name__ == "__main__":
    run_module("konstruct.local.embedded", run_name="__main__", alter_sys=True)
