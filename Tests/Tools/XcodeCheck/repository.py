"""The repository as the checks see it, and what they report."""
import functools
import os
import posixpath
import re
from collections import namedtuple

# A reason why Xcode might refuse the project, or might build something else than the package does.
Finding = namedtuple("Finding", "file line message")

# Folders that Xcode treats as one item.
BUNDLES = {"docc", "xcassets", "bundle"}


def clean(path):
    """Removes `.` and `..`. A path that leaves the repository keeps its leading `..`, and matches nothing in it."""
    path = posixpath.normpath(path)
    return "" if path == "." else path.lstrip("/")


def kind(path):
    """The path extension."""
    return path.rpartition(".")[2] if "." in path else ""


def file_name(path):
    return path.rpartition("/")[2]


def within(path, folder):
    return path == folder or path.startswith(folder + "/")


class Repository:
    """Caches what it reads: tests check the repository hundreds of times."""

    def __init__(self, root):
        self.root = root
        self.seeded = {}
        self._text = functools.lru_cache(maxsize=None)(self._read)
        self._is_file = functools.lru_cache(maxsize=None)(lambda path: os.path.isfile(os.path.join(root, path)))
        self._below = functools.lru_cache(maxsize=None)(self._walk)

    def seeding(self, texts):
        """The same repository with other texts, in memory, by path; None: no file."""
        other = Repository.__new__(Repository)
        other.__dict__.update(self.__dict__, seeded={**self.seeded, **texts})
        return other

    def _read(self, path):
        try:
            with open(os.path.join(self.root, path), encoding="utf-8", errors="replace", newline="") as file:
                return file.read()
        except OSError:
            return None

    def _walk(self, folder):
        found = []
        for parent, folders, files in os.walk(os.path.join(self.root, folder)):
            bundles = [one for one in folders if kind(one) in BUNDLES]
            folders[:] = [one for one in folders if one not in bundles]
            prefix = os.path.relpath(parent, os.path.join(self.root, folder))
            found += [clean(f"{prefix}/{one}") for one in files + bundles if one != ".DS_Store"]
        return found

    def text(self, path):
        return self.seeded[path] if path in self.seeded else self._text(path)

    def is_file(self, path):
        if path in self.seeded:
            return self.seeded[path] is not None
        return self._is_file(path)

    def is_folder(self, path):
        return os.path.isdir(os.path.join(self.root, path))

    def below(self, folder):
        """What Xcode finds in a folder, by path from the root: including hidden files, and bundles without contents."""
        found = {f"{folder}/{path}" for path in self._below(folder)}
        for path, text in self.seeded.items():
            if path.startswith(folder + "/"):
                found.discard(path) if text is None else found.add(path)
        return sorted(found)


class Manifest:
    """The targets of Package.swift in a folder, as far as its text shows."""

    path = "Package.swift"

    def __init__(self, files, root="."):
        self.root = root
        self.text = files.text(clean(f"{root}/{self.path}")) or ""

    def _target(self, name):
        """From a target's name to the next target."""
        return self.text.partition(f'name: "{name}"')[2].partition("arget(")[0]

    def folder(self, target):
        path = re.search(r'path: "([^"]*)"', self._target(target))
        return clean(f"{self.root}/{path.group(1) if path else 'Sources/' + target}")

    def sources(self, target):
        """What a target compiles on any system, by path from the root. Settings follow its sources."""
        sources = re.split("cxxSettings|publicHeadersPath", self._target(target).partition("sources: ")[2])[0]
        return [f"{self.folder(target)}/{path}" for path in re.findall('"([^"]*)"', sources)]

    def resources(self, target, rule):
        """Resources of a target that are copied or processed, by path from the root."""
        found = re.findall(rf'\.{rule}\("([^"]*)"', self._target(target))
        return [clean(f"{self.folder(target)}/{path}") for path in found]
