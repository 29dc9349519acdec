#!/usr/bin/env python3
"""Checks whether Xcode would read Xcode/MLXNativeKernels.xcodeproj and build the package from it, as far as possible
without Xcode: identifiers and paths name what exists, and each file that the package compiles on a Mac is in one
target."""
import argparse
import functools
import json
import os
import plistlib
import re
import sys
from collections import Counter
from posixpath import basename, dirname, normpath
from xml.etree import ElementTree

sys.dont_write_bytecode = True
from project import COMPILED, CPP, PROJECT, XCODE, Project, Repository, kind, many, of_manifest, resources

ROOT = dirname(os.path.abspath(__file__)).rsplit("/", 3)[0]
MODULE_MAP = f"{XCODE}/Configuration/MLXNativeKernels.modulemap"
PRIVACY = "Shaders/PrivacyInfo.xcprivacy"
FRAMEWORK, LIBRARY, APP = (
    "com.apple.product-type." + one for one in ("framework", "library.static", "application"))
# The classes of the objects that a key names.
CLASSES = {
    "mainGroup": ["PBXGroup"], "productRefGroup": ["PBXGroup"], "targets": ["PBXNativeTarget"],
    "buildConfigurationList": ["XCConfigurationList"], "buildConfigurations": ["XCBuildConfiguration"],
    "baseConfigurationReference": ["PBXFileReference"],
    "buildPhases": [f"PBX{one}BuildPhase" for one in ("Sources", "Headers", "Frameworks", "Resources", "CopyFiles")],
    "files": ["PBXBuildFile"], "fileRef": ["PBXFileReference"], "dependencies": ["PBXTargetDependency"],
    "target": ["PBXNativeTarget"], "targetProxy": ["PBXContainerItemProxy"], "containerPortal": ["PBXProject"],
    "remoteGlobalIDString": ["PBXNativeTarget"], "productReference": ["PBXFileReference"],
    "fileSystemSynchronizedGroups": ["PBXFileSystemSynchronizedRootGroup"],
    "exceptions": [
        "PBXFileSystemSynchronizedBuildFileExceptionSet",
        "PBXFileSystemSynchronizedGroupBuildPhaseMembershipExceptionSet",
    ],
    "buildPhase": ["PBXCopyFilesBuildPhase"],
    "children": ["PBXGroup", "PBXFileReference", "PBXFileSystemSynchronizedRootGroup"],
}
# Variables that Xcode defines.
VARIABLES = {"inherited", "SRCROOT", "TARGET_NAME", "CURRENT_PROJECT_VERSION", "DEVELOPMENT_TEAM"}
# Folders whose files are compiled on a Mac, and their target.
FOLDERS = {
    "Sources/MLXNativeKernelsCore": "MLXNativeKernels", "Sources/MLXNativeKernels": "MLXNativeKernels",
    "Shaders": "MLXNativeKernels", "Sources/MLXNativeKernelsHost": "MLXNativeKernelsHost",
    "Tests/MLXNativeKernelsTests": "MLXNativeKernelsTests", "Tests/Core": "MLXNativeKernelsTests",
    "Tests/MLXNativeKernelsObjCTests": "MLXNativeKernelsTests", "Examples/JargonLM": "DecodeDemo",
    "Examples/DecodeDemo": "DecodeDemo",
}
# Folders with C++ files that the package compiles through unified files, and its targets there.
UNIFIED = {
    "Sources/MLXNativeKernelsCore": ["MLXNativeKernelsCore"],
    "Sources/MLXNativeKernelsHost": ["MLXNativeKernelsHost"],
    "Tests/Core": ["MLXNativeKernelsCoreTests", "MLXNativeKernelsTestSupport"],
}
# Calls for which Apple requires a reason, by category.
CATEGORIES = {
    "FileTimestamp": r"stat\(|fstat\(|lstat\(|fstatat\(|getattrlist\(|filesystem::last_write_time\(",
    "SystemBootTime": r"mach_absolute_time\(|systemUptime",
    "DiskSpace": r"statfs\(|statvfs\(|fstatfs\(|fstatvfs\(|filesystem::space\(",
    "UserDefaults": "UserDefaults",
}


class Check(Project):
    """A project with what Xcode might refuse, or might build otherwise than the package does."""

    def check_references(self):
        """Every identifier names an object of the right class, and every object is used."""
        used = {self.root["id"]}
        for object in self.objects.values():
            for key, classes in CLASSES.items():
                for id in many(object.get(key)):
                    used.add(id)
                    got = self.objects.get(id, {}).get("isa", "nothing")
                    if got not in classes:
                        self.say(f"{key} names {id}, {got} (expected {' or '.join(classes)}). Correct it.")
        for id in self.objects.keys() - used:
            self.say(f"nothing names {id}. Use it, or remove it.")
        for one in self.all("PBXTargetDependency"):
            proxies = self.named(one, "targetProxy")
            if [proxy.get("remoteGlobalIDString") for proxy in proxies] != many(one.get("target")):
                self.say(f"{one['id']} and its proxy name different targets. Correct one.")

    def check_settings(self, file):
        text = re.sub("//.*", "", self.files.text(file))
        for used in re.findall(r"\$\((\w+)", text):
            if used not in VARIABLES | self.settings.keys():
                self.say(f"$({used}) is not defined. Correct the spelling, or define it.", file)
        submodules = tuple(f"{one}/" for one in re.findall("path = (.*)", self.files.text(".gitmodules")))
        for part in re.findall(r'\$\(SRCROOT\)([^ "\n]*)', text):
            path = normpath(XCODE + part)
            if not f"{path}/".startswith(submodules) and not self.files.has(path):
                self.say(f"{path} does not exist. Correct the path.", file)

    def check_named_targets(self, file, read):
        """The identifiers and names of targets in a plan or a scheme, and test plans that it names."""
        try:
            named, plans = read(self.files.text(file))
        except (ValueError, TypeError, LookupError, ElementTree.ParseError) as error:
            return self.say(f"this cannot be read: {error}. Correct it.", file)
        for id, name in named:
            if self.objects.get(id, {}).get("name") != name or not any(one.id == id for one in self.targets):
                self.say(f"{id} is not the target {name}. Correct it.", file)
        for path in plans:
            if path not in self.files.paths:
                self.say(f"there is no test plan {path}. Correct it.", file)
        if not named:
            self.say("no target is named. Add one.", file)

    def check_links(self, target):
        """A static library does not link; what links it also links what it uses."""
        entries = {phase["isa"]: self.named(phase, "files") for phase in self.named(target.object, "buildPhases")}
        linked = [entry["fileRef"] for entry in entries.get("PBXFrameworksBuildPhase", [])]
        copied = [self.paths.get(entry["fileRef"]) for entry in entries.get("PBXResourcesBuildPhase", [])]
        needed = [one for other in self.named(target.object, "dependencies") for one in self.named(other, "target")]
        if target.type != LIBRARY and sorted(linked) != sorted(one["productReference"] for one in needed):
            self.say(f"{target.name} does not link what it depends on, {[one['name'] for one in needed]}. Link it.")
        if target.type == APP:
            # The folder for frameworks has this number.
            embedded = [
                one["fileRef"] for phase in self.named(target.object, "buildPhases")
                if phase.get("dstSubfolderSpec") == "10" for one in self.named(phase, "files")
                if "CodeSignOnCopy" in str(one)]
            if embedded != [one["productReference"] for one in needed if one["productType"] == FRAMEWORK]:
                self.say(f"{target.name} does not embed and sign the framework. Embed it.")
            for folder in set(resources(self.files, "Examples", "JargonLM", "copy")) - set(copied):
                self.say(f"{target.name} does not copy {folder}, which it reads. Add it.")

    def check_exceptions(self, group, folder):
        for one in self.named(group, "exceptions"):
            for owner in self.named(one, "target"):
                if group["id"] not in many(owner.get("fileSystemSynchronizedGroups")):
                    self.say(f"{one['id']} excepts files of {folder} from {owner['name']}, which lacks it. Correct it.")
            named = [path for key in ("membershipExceptions", "publicHeaders") for path in many(one.get(key))]
            for path, count in Counter(named).items():
                if f"{folder}/{path}" not in self.files.paths:
                    self.say(f"there is no file {folder}/{path}. Remove the line.")
                if count > 1:
                    self.say(f"{path} is named twice. Remove one.")

    def check_target(self, target):
        for path in target.copied:
            self.say(f"{path} would be copied into {target.name} as a resource. Add it to membershipExceptions.")
        swift = [path for path in target.compiled if kind(path) == "swift"]
        for what, paths in (("files", swift), ("public headers", target.public)):
            for name, count in Counter(map(basename, paths)).items():
                if count > 1:
                    self.say(f"{target.name} has {count} {what} called {name}. Rename one.")
        for path in swift:
            if re.search("(?<!#if SWIFT_PACKAGE\n)^ *import MLXNativeKernelsCore$", self.files.text(path), re.M):
                self.say("the framework has no module MLXNativeKernelsCore. Import it under #if SWIFT_PACKAGE.", path)
        if target.type == FRAMEWORK:
            # Headers in a folder `include` must be public, and no others.
            meant = {path for path in target.headers if "/include/" in path}
            for path in meant - target.public - target.generated:
                place = "headers that a phase copies" if "/Generated/" in path else "publicHeaders"
                self.say(f"{path} is not among the {place} of {target.name}. Add it.")
            for path in (target.public | target.generated) - meant:
                self.say(f"{path} is public in {target.name}, but is not in a folder include. Remove it.")

    def check_package(self):
        """The project builds what the package builds on a Mac: each file in one target, files for Linux in none."""
        def is_for_swiftpm(path):
            return "/Unified" in path or path == "Shaders/ShaderBundle.swift"

        def included(folder, unified):
            texts = "\n".join(map(self.files.text, unified))
            return {f"{folder}/{path}" for path in re.findall(r'^#include "(.*\.cpp)"', texts, re.M)}

        # Tests of the software Metal, which a Mac lacks.
        soft = included("Tests/Core", self.files.below("Tests/Core/UnifiedMetal"))
        soft = tuple("/".join(path.split("/")[:3]) + "/" for path in soft)
        wanted = {
            path: target for folder, target in FOLDERS.items() for path in self.files.below(folder)
            if kind(path) in COMPILED and not is_for_swiftpm(path) and not path.startswith(soft)
        }
        owners = {}
        for target in self.targets:
            for path in target.compiled:
                owners.setdefault(path, []).append(target.name)
        for path in owners.keys() - wanted.keys():
            why = "is for SwiftPM alone" if is_for_swiftpm(path) else "the package does not compile for a Mac"
            self.say(f"{owners[path][0]} compiles {path}, which {why}. Add it to membershipExceptions.")
        for path, target in wanted.items():
            if owners.get(path) != [target]:
                got = " and ".join(sorted(owners.get(path, ["no target"])))
                self.say(f"{path} is compiled by {got} (expected {target} alone). Correct the folders.")
        for folder, names in UNIFIED.items():
            # What targets compile on any system. Settings follow their sources.
            texts = (of_manifest(self.files, ".", name)[0].partition("sources: ")[2] for name in names)
            sources = [one for text in texts for one in re.findall(
                '"([^"]*)"', re.split("cxxSettings|publicHeadersPath", text)[0])]
            compiled = {path for path in self.files.below(folder) if any(
                f"{path}/".startswith(f"{folder}/{source}/") for source in sources)}
            compiled |= included(folder, filter(is_for_swiftpm, compiled))
            for path in {path for path in wanted if path.startswith(folder + "/")} - compiled:
                self.say(f"the package does not compile this file. Include it in a file in {folder}/Unified.", path)
        listed = set(resources(self.files, ".", "MLXNativeKernelsShaders", "process"))
        for path in listed ^ {path for path in owners if kind(path) == "metal"}:
            has, lacks = ("package", "project") if path in listed else ("project", "package")
            self.say(f"the {has} compiles {path}, and the {lacks} does not. Add it there.", "Package.swift")

    def check_module_map(self):
        """It lists the public headers for C and Objective-C."""
        general, _, objc = self.files.text(MODULE_MAP).partition("requires objc")
        wanted = {name for one in self.targets for name in one.public_names if name.endswith(".h")}
        listed = [(name, text is objc) for text in (general, objc)
                  for name in re.findall(r'^\s*header "(.*)"$', text, re.M)]
        if "umbrella header" in general + objc:
            self.say("an umbrella includes the C++ headers. List the others instead.", MODULE_MAP)
        for name in wanted ^ {name for name, _ in listed}:
            what = "is missing. Add it" if name in wanted else "is not a public header for C. Remove it"
            self.say(f"{name} {what}.", MODULE_MAP)
        counts = Counter(name for name, _ in listed)
        for name, is_objc in listed:
            if basename(name).startswith("MNK") != is_objc or counts[name] > 1:
                self.say(f"{name} belongs once in the part that requires objc, or outside. Move it.", MODULE_MAP)

    def check_privacy(self):
        """The privacy manifest must give a reason for each call for which Apple requires one, and for no other."""
        try:
            manifest = plistlib.loads(self.files.text(PRIVACY).encode())
            types = manifest["NSPrivacyAccessedAPITypes"]
            declared = {one["NSPrivacyAccessedAPIType"] for one in types if one["NSPrivacyAccessedAPITypeReasons"]}
            if manifest["NSPrivacyTracking"] is not False:
                self.say("NSPrivacyTracking is not false. Set it.", PRIVACY)
        except Exception as error:  # plistlib raises what its parts raise
            return self.say(f"this is not a privacy manifest: {error}. Correct it.", PRIVACY)
        # Embedded text is not code, and a .metal file does not call C functions.
        library = [path for one in self.targets if any(path.startswith("Sources/") for path in one.compiled)
                   for path in one.compiled | one.headers if kind(path) != "metal"]
        used = {"NSPrivacyAccessedAPICategory" + name: path for path in library
                for name in called_categories(self.files.text(path))}
        for category in used.keys() - declared:
            self.say(f"a call needs a reason of {category}. Add it to {PRIVACY}.", used[category])
        for category in declared - used.keys():
            self.say(f"{category} is declared, but no call needs it. Remove it.", PRIVACY)

    def check(self):
        self.check_references()
        for path in self.paths.values():
            if kind(path) == "xcconfig":
                self.check_settings(path)
            elif kind(path) == "xctestplan":
                self.check_named_targets(path, of_plan)
        for path in self.files.below(dirname(PROJECT) + "/xcshareddata"):
            self.check_named_targets(path, of_scheme)
        for group in self.all("PBXFileSystemSynchronizedRootGroup"):
            if group["id"] in self.paths:
                self.check_exceptions(group, self.paths[group["id"]])
        for target in self.targets:
            self.check_links(target)
            self.check_target(target)
        self.check_package()
        self.check_module_map()
        self.check_privacy()


@functools.lru_cache(None)
def called_categories(text):
    return [name for name, calls in CATEGORIES.items() if re.search(rf"(?<!\w)(?:{calls})", text)]


def of_plan(text):
    tests = [one["target"] for one in json.loads(text)["testTargets"]]
    return [(one["identifier"], one["name"]) for one in tests], []


def of_scheme(text):
    found = list(ElementTree.fromstring(text).iter())
    plans = [one.get("reference").replace("container:", f"{XCODE}/") for one in found if one.tag == "TestPlanReference"]
    built = [one.attrib for one in found if one.tag == "BuildableReference"]
    return [(one.get("BlueprintIdentifier"), one.get("BlueprintName")) for one in built], plans


def check(files):
    """The findings, and the project unless it cannot be read."""
    try:
        project = Check(files)
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        return [f"{PROJECT}: this is not a project: {error}. Correct it."], None
    project.check()
    return sorted(project.findings), project


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", action="store_true", help="print files in languages of C, each after its flags")
    arguments = parser.parse_args()
    findings, project = check(Repository(ROOT))
    if arguments.sources:
        for target in project.targets:
            for path in sorted(path for path in target.compiled if kind(path) in CPP):
                print(f"{target.flags(project)}\t{path}")
        return
    print(*findings, sep="\n", end="\n" if findings else "")
    counts = ", ".join(f"{one.name} ({len(one.compiled)} files)" for one in (project.targets if project else []))
    print(f"xcode-check: {counts}: {f'{len(findings)} findings' if findings else 'accepted'}")
    sys.exit(bool(findings))


if __name__ == "__main__":
    main()
