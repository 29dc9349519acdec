#!/usr/bin/env python3
"""Checks whether Apple's Metal compiler would accept these files, and whether they mean the same as on the Host device,
as far as possible without that compiler: with a strict compile, a list of functions, and a lint."""
import argparse
import os
import sys
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor

sys.dont_write_bytecode = True
import functions
from compilers import FOLDER, Failure, Finding, Strict, shown
from lint import Lint
from source import tokens

FUNCTIONS, TEST_FUNCTIONS = f"{FOLDER}/functions.tsv", f"{FOLDER}/test-functions.tsv"
# `exports`: the names that the files export; `used`: the indices of the used rows of the list.
Report = namedtuple("Report", "findings exports used")


def concurrently(work, items):
    """Most of the time is spent waiting for compilers."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(work, items))


class Checker:
    def __init__(self, rows, clang=None):
        self.rows, self.strict = rows, Strict(rows, clang)

    def check(self, files):
        """One report for all files."""
        reports = self.check_each(files)
        findings = {finding for report in reports for finding in report.findings}  # two files may include a header
        exports = [name for report in reports for name in report.exports]
        return Report(sorted(findings), exports, {row for report in reports for row in report.used})

    def check_each(self, files):
        return concurrently(self._check, files)

    def _check(self, file):
        if not os.access(file, os.R_OK):
            message = "no such file (expected a .metal file or a header). Correct the path."
            return Report([Finding(file, 1, message, "compile")], [], set())
        path = os.path.abspath(file)
        findings, used = self.strict.check(path)
        found = tokens(self.strict.preprocessed(path), shown(path), shown)
        # MetalCompat.h comes first, and opens namespace metal for all files.
        lint = Lint([token for token in found if not token.file.startswith(("<", self.strict.empty))])
        findings |= {Finding(*finding, "lint") for finding in lint.findings}
        return Report(sorted(findings), lint.exports, used)

    def unused_rows(self, report):
        """Findings for rows that no source uses: an unused entry has no evidence."""
        return [
            Finding(
                shown(row.file), row.line,
                f"no kernel uses {row.declaration}. Remove the row, or pass all files that ship.", "list")
            for index, row in enumerate(self.rows) if index not in report.used
        ]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="the files are all that ship: an unused row is a finding")
    parser.add_argument("--tests", action="store_true", help="the files may also use test-functions.tsv")
    parser.add_argument("--clang", help="the compiler (default: the first clang on PATH)")
    parser.add_argument("files", nargs="+", metavar="FILE")
    options = parser.parse_args()
    try:
        checker = Checker(functions.rows(FUNCTIONS, *[TEST_FUNCTIONS] * options.tests), options.clang)
        report = checker.check(options.files)
    except (Failure, functions.Mistake) as error:
        parser.exit(2, f"shader-check: {error}\n")
    findings = report.findings + (checker.unused_rows(report) if options.all else [])
    for file, line, message, _ in findings:
        print(f"{file}:{line}: {message}")
    verdict = f"{len(findings)} findings" if findings else "accepted"
    counts = f"{len(options.files)} files, {len(report.exports)} exported kernels, {len(report.used)} listed functions"
    print(f"shader-check: {counts}: {verdict}")
    sys.exit(bool(findings))


if __name__ == "__main__":
    main()
