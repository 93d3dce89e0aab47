#!/usr/bin/env python3
"""Reads rules.txt, in which each rule puts one bug into the library. As a program, checks that each rule applies.

This is a rule. README.md describes its fields.

    quorum-half
    Bug: half of the nodes counts as a majority
    Found by: sim halves: two holders
    Find: return nodes / 2 + 1;
    Replace: return nodes / 2;
"""
import dataclasses
import functools
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TEXT = r".*(?:\n .*)*"  # of a field; all lines but the first are indented
CHANGE = rf"(?:Near: (\S{TEXT})\n)?Find: (\S{TEXT})\nReplace:({TEXT})\n"
HEAD = rf"(\S+)\nBug: {TEXT}\nFound by: (.+)\n(?:Also found by: .+\n)?(?:With: ({TEXT})\n)?"
RULE = rf"{HEAD}((?:{CHANGE})+)"
MOST_BETWEEN = 600  # characters between Near and Find


class DoesNotApply(Exception):
    """The text of a rule is not in the code, or occurs more than once."""


@dataclasses.dataclass
class Mutant:
    name: str
    found_by: str
    sources: list  # to compile beside the changed ones
    changes: list

    @staticmethod
    def read(rule):
        fields = re.fullmatch(RULE, rule)
        if not fields:
            raise SystemExit(f"rules.txt: this is not a rule:\n{rule}")
        name, found_by, sources, changes = fields.groups()[:4]
        return Mutant(name, found_by, (sources or "").split(), re.findall(CHANGE, changes))

    def changed_files(self, tree):
        """Returns the paths and new texts of the files that the mutant changes. `tree` has the texts of all files."""
        files = dict(tree)
        for near, find, replacement in self.changes:
            path, place = only_place(near, find, files)
            files[path] = files[path][:place.start(1)] + replacement.strip() + files[path][place.end(1):]
        return {path: text for path, text in files.items() if text != tree[path]}


def only_place(near, find, files):
    """Returns the path and the match of the only place with the text `find`, which is group 1, shortly after `near`."""
    pattern = f"({pattern_of(find)})"
    if near:
        pattern = rf"{pattern_of(near)}[\s\S]{{0,{MOST_BETWEEN}}}?{pattern}"
    longest = max(words_of(find), key=len)  # rules out most files quickly
    places = [(path, it) for path, text in files.items() if longest in text for it in re.finditer(pattern, text)]
    if len(places) != 1:
        raise DoesNotApply(f"this text occurs {len(places)} times: {find}" + (f"\nnear: {near}" if near else ""))
    return places[0]


def pattern_of(text):
    """Returns a pattern that finds the text, with any white space between its words and signs."""
    return r"\s*".join(map(re.escape, words_of(text)))


def words_of(text):
    return re.findall(r"\w+|[^\w\s]", text)


def read_mutants():
    mutants = [Mutant.read(rule.strip("\n") + "\n") for rule in (HERE / "rules.txt").read_text().split("\n\n")]
    names = [it.name for it in mutants]
    if wrong := [it for it, before in zip(names[1:], names) if it <= before]:
        raise SystemExit(f"rules.txt: not in the order of the names, or there twice: {', '.join(wrong)}")
    return mutants


@functools.cache
def read_tree():
    """Returns the paths and texts of all files that a mutant may change."""
    return {str(it.relative_to(ROOT)): it.read_text()
            for room in ("include", "src") for it in (ROOT / room).rglob("*") if it.is_file()}


def main():
    mutants = read_mutants()
    wrong = 0
    for mutant in mutants:
        try:
            mutant.changed_files(read_tree())
        except DoesNotApply as why:
            wrong += 1
            print(f"{mutant.name}: {why}")
    print(f"{len(mutants) - wrong} of {len(mutants)} rules apply")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
