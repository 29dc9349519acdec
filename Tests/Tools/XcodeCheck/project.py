"""An Xcode project and its targets, as they lie in the repository."""
import copy
import functools
import json
import os
import re
import shlex
from collections import Counter
from posixpath import basename, dirname, normpath

XCODE = "Xcode"  # paths of the project are relative to it
PROJECT = f"{XCODE}/MLXNativeKernels.xcodeproj/project.pbxproj"
CPP = {"c", "m", "mm", "cpp"}
COMPILED = CPP | {"swift", "metal"}
HEADERS = {"h", "hpp"}
# Resources that a product may have; folders of these kinds are one item to Xcode.
RESOURCES = {"docc", "xcprivacy", "xcassets"}


def kind(path):
    return path.rpartition(".")[2] if "." in path else ""


def many(value):
    """The strings of a list, or the one string."""
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)]


class Repository:
    """Caches what it reads: tests check it a hundred times."""

    def __init__(self, root):
        self.seeded, self.paths = {}, set()
        for parent, folders, files in os.walk(root):
            bundles = [one for one in folders if kind(one) in RESOURCES]
            folders[:] = [one for one in folders if one not in (*bundles, ".git", ".build", "ThirdParty")]
            found = (os.path.relpath(f"{parent}/{one}", root) for one in files + bundles if one != ".DS_Store")
            self.paths |= set(found)
        self.read = functools.lru_cache(None)(lambda path: open(f"{root}/{path}", encoding="utf-8").read())

    def seeding(self, path, text):
        """The same repository in which one file has this text; None: no such file."""
        other = copy.copy(self)
        other.seeded, other.paths = {path: text}, self.paths - {path} | ({path} if text is not None else set())
        return other

    def text(self, path):
        return "" if path not in self.paths else self.seeded[path] if path in self.seeded else self.read(path)

    def below(self, folder):
        return sorted(path for path in self.paths if path.startswith(folder + "/"))

    def has(self, path):
        return path in self.paths or bool(self.below(path))


def of_manifest(files, root, target):
    """The part of Package.swift in a folder that describes a target, and the target's folder."""
    text = files.text(normpath(f"{root}/Package.swift")).partition(f'name: "{target}"')[2].partition("arget(")[0]
    path = re.search('path: "([^"]*)"', text)
    return text, normpath(f"{root}/{path[1] if path else 'Sources/' + target}")


def resources(files, root, target, rule):
    """Resources that the package copies or processes."""
    text, folder = of_manifest(files, root, target)
    return [normpath(f"{folder}/{path}") for path in re.findall(rf'\.{rule}\("([^"]*)"', text)]


def parsed(text):
    """An old-style property list, which is JSON with other marks."""
    marks = {"=": ":", ";": ",", "(": "[", ")": "]", "{": "{", "}": "}", ",": ","}

    def as_json(token):
        is_comment = token[0].startswith(("/*", "//"))
        return "" if is_comment else token[0] if token[0][0] == '"' else marks.get(token[0]) or json.dumps(token[0])

    def table(pairs):
        for key, count in Counter(key for key, _ in pairs).items():
            if count > 1:
                raise ValueError(f"{key} is defined twice")
        return dict(pairs)

    text = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\]|\\.)*"|[\w$/:.-]+|[={};(),]', as_json, text, flags=re.S)
    return json.loads(re.sub(r",(\s*[]}])", r"\1", text), object_pairs_hook=table)


class Project:
    """Objects are dictionaries; each also has its own identifier as "id"."""

    def __init__(self, files):
        value = parsed(files.text(PROJECT))
        self.files, self.findings, self.paths = files, set(), {}
        self.objects = {id: {"id": id, **fields} for id, fields in value["objects"].items()}
        self.root = self.objects.get(value["rootObject"], {})
        if value["objectVersion"] != "77" or self.root.get("isa") != "PBXProject":
            raise ValueError("rootObject is not a PBXProject, or objectVersion is not 77, Xcode 16")
        self.settings = dict(re.findall(
            r"^(\w+) = (.*)", "\n".join(map(files.text, files.below(f"{XCODE}/Configuration"))), re.M))
        for group in self.named(self.root, "mainGroup"):
            self.find_paths(group, XCODE, set())
        self.targets = [Target(self, one) for one in self.named(self.root, "targets")]

    def say(self, message, file=PROJECT):
        self.findings.add(f"{file}: {message}")

    def named(self, owner, key):
        """The objects that a key of another one names."""
        return [self.objects[id] for id in many(owner.get(key)) if id in self.objects]

    def all(self, isa):
        return [one for one in self.objects.values() if one["isa"] == isa]

    def find_paths(self, node, parent, seen):
        """The paths of groups and files, from the repository."""
        if node["id"] in seen:
            self.say(f"{node['id']} is in two groups. Remove it from one.")
        elif node.get("sourceTree") == "<group>":
            path = self.paths[node["id"]] = normpath(f"{parent}/{node.get('path', '')}")
            # A folder that is copied whole is a file reference, too.
            is_file = node["isa"] == "PBXFileReference" and node.get("lastKnownFileType") != "folder"
            if not (path in self.files.paths if is_file else self.files.below(path)):
                self.say(f"{path} does not exist. Correct the path.")
            seen.add(node["id"])
            for child in self.named(node, "children"):
                self.find_paths(child, path, seen)
        elif node.get("sourceTree") != "BUILT_PRODUCTS_DIR":
            self.say(f"sourceTree is {node.get('sourceTree')} (expected <group>). Correct it.")


class Target:
    """What a target compiles, copies and publishes, by Xcode's rules: its folders minus the exceptions."""

    def __init__(self, project, object):
        self.object, self.id, self.name, self.type = object, object["id"], object.get("name"), object.get("productType")
        self.compiled, self.headers, self.public, self.generated, self.copied = set(), set(), set(), set(), set()
        for group in project.named(object, "fileSystemSynchronizedGroups"):
            folder = project.paths.get(group["id"])
            excepted = set()
            for one in project.named(group, "exceptions"):
                named = {f"{folder}/{path}" for path in many(one.get("membershipExceptions"))}
                if one.get("target") == self.id:
                    excepted |= named
                    self.public |= {f"{folder}/{path}" for path in many(one.get("publicHeaders"))}
                # A phase copies headers into the folder of public headers, below it as in the sources.
                for phase in project.named(one, "buildPhase"):
                    below = phase.get("dstPath", "").removeprefix("$(PUBLIC_HEADERS_FOLDER_PATH)")
                    is_own = phase["id"] in many(object.get("buildPhases"))
                    if is_own and phase.get("dstSubfolderSpec") == "16" and below:
                        self.generated |= {path for path in named if dirname(path).endswith(below)}
            for path in set(project.files.below(folder)) - excepted if folder else ():
                (self.compiled if kind(path) in COMPILED else self.headers if kind(path) in HEADERS else
                 set() if kind(path) in RESOURCES else self.copied).add(path)
        self.public_names = {basename(path) for path in self.public}
        self.public_names |= {"/".join(path.split("/")[-2:]) for path in self.generated}

    def flags(self, project):
        """The folders in which what it includes in quotes is found."""
        lists = project.named(self.object, "buildConfigurationList")
        for one in [one for list in lists for one in project.named(list, "buildConfigurations")]:
            settings = dict(re.findall(
                r"^(\w+) = (.*)", project.files.text(project.paths.get(one.get("baseConfigurationReference"))), re.M))
            value = settings.get("OTHER_CPLUSPLUSFLAGS", "")
            while "$(" in value:
                value = re.sub(r"\$\((\w+)\)", lambda used: {"SRCROOT": XCODE, "inherited": ""}.get(used[1]) or
                               project.settings.get(used[1], ""), value)
            return " ".join(normpath(word) if "/" in word else word for word in shlex.split(value))
