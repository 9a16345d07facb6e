"""Prints the command of README.md's fenced block that follows the comment `<!-- command: NAME -->`.

usage: python3 .ci/readme_command.py NAME [setup|last]

`setup` prints what stands before the command's last `&&`, `last` what stands after it, so that CI can check in between.
"""

import re
import sys
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"


def command(name: str) -> str:
    block = re.search(rf"<!-- command: {re.escape(name)} -->\s*```\w*\n(.*?)```", README.read_text(), re.DOTALL)
    if block is None:
        sys.exit(f"{README}: no fenced block after a line `<!-- command: {name} -->`")
    return block[1].replace("\\\n", " ").strip()


def part(text: str, which: str) -> str:
    setup, _, last = text.rpartition(" && ")
    return {"": text, "setup": setup, "last": last}[which]


if __name__ == "__main__":
    print(part(command(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""))
