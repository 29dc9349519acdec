"""What files of C, C++ and Objective-C++ include is found with the flags of their target: its folders for quotes, the
public headers of the framework for angle brackets."""
import functools
import posixpath
import re
import shlex

from repository import Finding, clean, kind

SOURCES = {"c", "m", "mm", "cpp"}


def quoted_folders(project, files, paths, targets):
    """Each target with the folders of what its files include in quotes."""
    settings = [(target, Settings(project, files, paths, target.object)) for target in targets]
    return [(target, one.folders("OTHER_CPLUSPLUSFLAGS", "-iquote")) for target, one in settings]


def sources(target):
    return sorted(path for path in target.compiled if kind(path) in SOURCES)


def findings(project, files, paths, targets):
    quoted = quoted_folders(project, files, paths, targets)
    everywhere = {folder for _, folders in quoted for folder in folders}
    public = {
        target.name: {posixpath.basename(path) for path in target.public} |
        {"/".join(path.split("/")[-2:]) for path in target.generated} for target in targets
    }
    for target, folders in quoted:
        search = Search(files, folders, everywhere, public)
        yield from search.findings(target)


class Settings:
    """Values of a target's settings, without those for one configuration or system."""

    def __init__(self, project, files, paths, target):
        self.folder = project.folder
        self.levels = [read(files.text(file) or "") for file in base_files(project, paths, target)]

    def value(self, name, level=0):
        for at in range(level, len(self.levels)):
            if name in self.levels[at]:
                return re.sub(r"\$\((\w+)\)", lambda used: self.expanded(used[1], name, at), self.levels[at][name])
        return ""

    def expanded(self, used, name, level):
        if used == "inherited":
            return self.value(name, level + 1)
        return self.folder if used == "SRCROOT" else self.value(used)

    def folders(self, name, flag):
        words = shlex.split(self.value(name))
        return [clean(path) for before, path in zip(words, words[1:]) if before == flag]


def base_files(project, paths, target):
    """The configuration files of a target and of the project, which it inherits."""
    for owner in (target, project.root):
        listed = project.first(owner, "buildConfigurationList")
        configuration = project.first(listed, "buildConfigurations") if listed else None
        file = paths.get(configuration.text("baseConfigurationReference")) if configuration else None
        if file:
            yield file


@functools.lru_cache(maxsize=None)
def read(text):
    lines = (line.split("//")[0] for line in text.split("\n"))
    return dict(line.split(" = ", 1) for line in lines if re.match(r"\w+ = ", line))


@functools.lru_cache(maxsize=None)
def included(text):
    """The names that a text includes, each with its line and whether it is in quotes."""
    pattern = r'^[ \t]*#[ \t]*(?:include|import)[ \t]*(["<])([^">\n]+)[">]'
    return [(text.count("\n", 0, one.start()) + 1, one[1] == '"', one[2]) for one in re.finditer(pattern, text, re.M)]


class Search:
    def __init__(self, files, folders, everywhere, public):
        self.files, self.folders, self.everywhere, self.public = files, folders, everywhere, public

    def findings(self, target):
        waiting = sources(target)
        seen = set(waiting)
        while waiting:
            path = waiting.pop()
            for line, is_quoted, name in included(self.files.text(path) or ""):
                found = self.found([posixpath.dirname(path), *self.folders], name) if is_quoted else None
                if found and found not in seen:
                    seen.add(found)
                    waiting.append(found)
                if not found and not self.is_outside(name, is_quoted):
                    flags = f"the flags of {target.name}" + ("" if is_quoted else ", which are for quotes")
                    yield Finding(path, line, f"{name} is not found with {flags}. Correct the name, or add its folder.")

    def found(self, folders, name):
        return next((path for path in (clean(f"{one}/{name}") for one in folders) if self.files.is_file(path)), None)

    def is_outside(self, name, is_quoted):
        """Whether the system or a framework has the header."""
        framework, _, header = name.partition("/")
        if not is_quoted and self.public.get(framework):
            return header in self.public[framework]
        return not is_quoted and not self.found(self.everywhere, name)
