#!/usr/bin/env python3
"""Checks whether Xcode would read Xcode/MLXNativeKernels.xcodeproj and build the package from it, as far as possible
without Xcode."""
import argparse
import os
import sys

sys.dont_write_bytecode = True
import includes
import library
import membership
import references
from project import Mistake, Project
from repository import Finding, Repository

ROOT = os.path.dirname(os.path.abspath(__file__)).rsplit("/", 3)[0]
PROJECT = "Xcode/MLXNativeKernels.xcodeproj/project.pbxproj"


def check(files):
    """The findings, the number of objects, and the targets with their folders for quotes."""
    text = files.text(PROJECT)
    if text is None:
        return [Finding(PROJECT, 1, "there is no such file. Correct the path of the repository.")], 0, []
    try:
        project = Project(text, PROJECT)
    except Mistake as mistake:
        return [Finding(PROJECT, mistake.line, str(mistake))], 0, []
    paths, problems = references.paths(project, files)
    targets = [membership.Target(project, files, paths, object) for object in project.targets]
    found = {
        *problems, *references.findings(project, files, paths), *membership.findings(project, files, paths, targets),
        *includes.findings(project, files, paths, targets), *library.findings(project, files, paths, targets),
    }
    return sorted(found), len(project.objects), includes.quoted_folders(project, files, paths, targets)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", nargs="?", default=ROOT, help="the repository (default: the one with this script)")
    parser.add_argument("--sources", action="store_true", help="print each C, C++ and Objective-C++ file after its flags")
    arguments = parser.parse_args()
    findings, objects, targets = check(Repository(arguments.root))
    if arguments.sources:
        for target, folders in targets:
            flags = " ".join(f"-iquote {folder}" for folder in folders)
            for path in includes.sources(target):
                print(f"{flags}\t{path}")
        return
    for file, line, message in findings:
        print(f"{file}:{line}: {message}")
    counts = ", ".join(f"{target.name} ({len(target.compiled)} files)" for target, _ in targets)
    print(f"xcode-check: {objects} objects, {counts}: {f'{len(findings)} findings' if findings else 'accepted'}")
    sys.exit(bool(findings))


if __name__ == "__main__":
    main()
