"""Pages with tables between two markers, which a script of this folder writes from the records. Standard library only."""
import difflib
import sys


def table(headings, lines):
    """The lines of a table: its first column is words, the others are numbers."""
    return [f"| {' | '.join(headings)} |", "|---|" + "---:|" * (len(headings) - 1), *(f"| {' | '.join(cells)} |" for cells in lines)]


def rewrite(script, contents, check):
    """Prints how each page differs from {path of a page: what belongs between its markers}, and writes that, but not with `check`. Returns the exit code:
    1 when a page lacks the markers, and with `check` when one differs."""
    begin, end = f"<!-- tables: written by deploy/dev/{script} -->", "<!-- end of the tables -->"
    wanted, differ = {}, False
    for path, content in contents.items():
        with open(path, encoding="utf-8") as file:
            page = file.read()
        if page.count(begin) != 1 or page.count(end) != 1 or page.index(begin) > page.index(end):
            print(f"{script}: {path} must contain these lines once each, in this order:\n{begin}\n{end}", file=sys.stderr)
            return 1
        wanted[path] = page.split(begin)[0] + begin + "\n" + content + end + page.split(end)[1]
        sys.stderr.writelines(difflib.unified_diff(page.splitlines(True), wanted[path].splitlines(True), path, "from the records"))
        differ = differ or page != wanted[path]
    if check and differ:
        print(f"{script}: a page differs from the records; run deploy/dev/{script} to rewrite it", file=sys.stderr)
    for path, page in wanted.items():
        if not check:
            with open(path, "w", encoding="utf-8") as file:
                file.write(page)
    return int(check and differ)
# SPDX-License-Identifier: Apache-2.0
