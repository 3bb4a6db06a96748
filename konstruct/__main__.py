"""`python -m konstruct --version`: the version of this code. Commands are those of manage.py."""

from argparse import ArgumentParser

from konstruct import __version__

if __name__ == "__main__":
    parser = ArgumentParser("konstruct", description="Commands: python manage.py help")
    parser.add_argument("--version", action="version", version=f"konstruct {__version__}")
    parser.parse_args()
    parser.print_help()
