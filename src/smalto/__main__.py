"""``python -m smalto``: the command line."""

from smalto.cli import main

if __name__ == "__main__":
    main()
