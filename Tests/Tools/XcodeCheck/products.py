"""A target links what it imports; an app embeds what it links and what its libraries read; the framework's headers and
privacy manifest are complete."""
import functools
import plistlib
import re

from references import PHASES
from repository import Finding, Manifest, file_name, imports, kind

FRAMEWORK, LIBRARY, APP = (
    "com.apple.product-type." + one for one in ("framework", "library.static", "application"))
# The destination of a copy phase.
FRAMEWORKS_FOLDER = "10"
SANDBOX = "com.apple.security.app-sandbox"
CORE = "MLXNativeKernelsCore"

# Calls for which Apple requires a reason, by category.
CATEGORIES = {
    "FileTimestamp": r"stat\(|fstat\(|lstat\(|fstatat\(|getattrlist\(|filesystem::last_write_time\(",
    "SystemBootTime": r"mach_absolute_time\(|systemUptime",
    "DiskSpace": r"statfs\(|statvfs\(|fstatfs\(|fstatvfs\(|filesystem::space\(",
    "UserDefaults": "UserDefaults",
}


def findings(project, files, paths, targets):
    yield from build_files(project)
    products = Products(project, paths)
    for target in targets:
        yield from products.imports(files, target)
        yield from products.links(target.object, Manifest(files, "Examples"))
        if target.object.text("productType") == APP:
            yield from products.embeds(target.object)
    for path in paths.values():
        if kind(path) == "entitlements" and files.is_file(path) and (plist(files, path) or {}).get(SANDBOX) is not True:
            yield Finding(path, 1, f"{SANDBOX} is not true. Set it.")
    yield from headers(project, files, targets)
    yield from privacy(project, files, paths, targets)


def plist(files, path):
    """None if it is not a property list with a table."""
    try:
        table = plistlib.loads((files.text(path) or "").encode())
    except Exception:  # plistlib raises what its parts raise
        return None
    return table if isinstance(table, dict) else None


def build_files(project):
    seen = set()
    for phase in project.all(*PHASES):
        for id in phase.texts("files"):
            if id in seen:
                yield project.finding(id.line, f"{id} is in two phases. Create an entry for each.")
            seen.add(id)


class Products:
    def __init__(self, project, paths):
        self.project, self.paths = project, paths

    def files(self, target, *phases, folder=None):
        """The files in a target's phases of these classes: their entries in the phase by identifier."""
        return {
            entry.text("fileRef"): entry
            for phase in self.project.named(target, "buildPhases")
            if phase.isa in phases and folder in (None, phase.text("dstSubfolderSpec"))
            for entry in self.project.named(phase, "files")
        }

    def linked(self, target):
        """Targets whose products are linked."""
        products = self.files(target, "PBXFrameworksBuildPhase")
        return [one for one in self.project.targets if one.text("productReference") in products]

    def needed(self, target):
        dependencies = self.project.named(target, "dependencies")
        return [one for dependency in dependencies for one in self.project.named(dependency, "target")]

    def imports(self, files, target):
        is_library = target.object.text("productType") == LIBRARY
        # A static library does not link, but what it imports must be built before it.
        reached = self.needed(target.object) if is_library else self.linked(target.object)
        modules = {
            one.name for one in self.project.targets
            if one.text("productType") in (FRAMEWORK, LIBRARY) and one is not target.object and one not in reached
        }
        verb = "depend on" if is_library else "link"
        for path in target.swift:
            for module, line, before in imports(files.text(path) or ""):
                if module in modules:
                    message = f"{target.name} does not {verb} {module}, which is imported here. Add it there."
                    yield Finding(path, line, message)
                # In the package, the C API is a separate module; in the framework, it is part of the one module.
                if module == CORE and before != "#if SWIFT_PACKAGE":
                    message = f"{CORE} is not a module in the framework. Import it under #if SWIFT_PACKAGE."
                    yield Finding(path, line, message)

    def links(self, target, manifest):
        linked, needed = self.linked(target), self.needed(target)
        copied = self.files(target, "PBXResourcesBuildPhase", "PBXCopyFilesBuildPhase")
        copied = {self.paths.get(id) for id in copied}
        for other in linked:
            messages = []
            if other not in needed:
                messages.append(f"links {other.name}, but does not depend on it. Add the dependency.")
            if other.text("productType") == LIBRARY:
                messages += [
                    f"links {other.name}, but not {one.name}, which {other.name} uses. Link it."
                    for one in self.needed(other) if one not in linked
                ] + [
                    f"does not copy {folder}, which {other.name} reads. Add it."
                    for folder in manifest.resources(other.name, "copy") if folder not in copied
                ]
            for message in messages:
                yield self.project.finding(target.line, f"{target.name} {message}")

    def embeds(self, target):
        embedded = self.files(target, "PBXCopyFilesBuildPhase", folder=FRAMEWORKS_FOLDER)
        for framework in self.linked(target):
            if framework.text("productType") != FRAMEWORK:
                continue
            entry = embedded.get(framework.text("productReference"))
            if not entry:
                message = f"{target.name} does not embed {framework.name}, which it links. Embed it."
                yield self.project.finding(target.line, message)
            elif "CodeSignOnCopy" not in entry.table("settings").get("ATTRIBUTES", []):
                message = f"{framework.name} is embedded, but not signed. Add CodeSignOnCopy."
                yield self.project.finding(entry.line, message)


def headers(project, files, targets):
    """The module has the headers for C and Objective-C, and each has one path. During a build, headers exist both in
    the sources and in the product; a header without a guard that is included by both paths is read twice."""
    frameworks = [target for target in targets if target.is_framework]
    if not frameworks:
        yield project.finding(1, "the project has no framework. Add the target.")
        return
    yield from module_map(project, files, {file_name(path) for path in frameworks[0].public})
    for path in library_files(targets):
        for number, line, message in wrong_includes(files.text(path) or ""):
            yield Finding(path, number, f"{message} (got {line}). Use them.")


def library_files(targets):
    """Embedded text is not code, and a .metal file neither calls C functions nor includes headers of the core."""
    found = {path for target in targets if target.is_library for path in target.compiled | target.headers}
    return sorted(path for path in found if not path.endswith(".metal"))


def module_map(project, files, public):
    file = f"{project.folder}/Configuration/MLXNativeKernels.modulemap"
    if files.text(file) is None:
        yield Finding(file, 1, "there is no module map. Restore it.")
        return
    listed, is_objc = set(), False
    for number, line in enumerate(files.lines(file), 1):
        words = line.split()
        is_objc = words == ["requires", "objc"] or is_objc and words[:1] != ["}"]
        if "umbrella" in words and words[0] != "//":
            yield Finding(file, number, "an umbrella includes the C++ headers. List the others instead.")
        if len(words) != 2 or words[0] != "header":
            continue
        name = words[1].strip('"')
        problems = {
            "is named twice. Remove one.": name in listed,
            "is not a public header of the framework. Correct the name.": name not in public,
            "is C++, which clients could not import. Remove it.": name.endswith(".hpp"),
            "belongs in the part that requires objc. Move it.": name.startswith("MNK") and not is_objc,
            "belongs outside the part that requires objc. Move it.": not name.startswith("MNK") and is_objc,
        }
        for problem in problems:
            if problems[problem]:
                yield Finding(file, number, f"{name} {problem}")
        listed.add(name)
    for name in public - listed:
        if name.endswith(".h"):
            yield Finding(file, 1, f"{name} is a public header, but is missing here. Add it.")


@functools.lru_cache(maxsize=None)
def wrong_includes(text):
    rules = [
        (r"<MLXNativeKernels/\S*\.hpp>", "C++ headers of the core are included in quotes"),
        (r'"MLXNativeKernels/MNK\S*"', "headers of Objective-C are imported in angle brackets"),
    ]
    return [
        (text.count("\n", 0, found.start()) + 1, found[0], message) for pattern, message in rules
        for found in re.finditer(rf"^#(?:include|import) +{pattern}.*", text, re.M)
    ]


def privacy(project, files, paths, targets):
    """The privacy manifest must give a reason for each call for which Apple requires one, and for no other."""
    groups = {group.id for target in targets for group in project.named(target.object, "fileSystemSynchronizedGroups")}
    found = {path for id in groups if id in paths for path in files.below(paths[id])}
    for file in sorted(found):
        if kind(file) in ("plist", "entitlements") and plist(files, file) is None:
            yield Finding(file, 1, "this is not a property list. Correct it.")
    manifests = [file for file in found if file.endswith("/PrivacyInfo.xcprivacy")]
    if len(manifests) != 1:
        yield project.finding(1, f"there are {len(manifests)} privacy manifests (expected 1). Correct that.")
        return
    file = manifests[0]
    manifest = plist(files, file)
    if manifest is None:
        yield Finding(file, 1, "this is not a property list. Correct it.")
        return
    if manifest.get("NSPrivacyTracking") is not False:
        yield Finding(file, 1, "NSPrivacyTracking is not false. Set it.")
    declared = set()
    for entry in manifest.get("NSPrivacyAccessedAPITypes", []):
        category = entry.get("NSPrivacyAccessedAPIType", "an entry without a type")
        declared.add(category)
        if not entry.get("NSPrivacyAccessedAPITypeReasons"):
            yield Finding(file, 1, f"{category} has no reason. Add one.")
    users = {}
    for path in library_files(targets):
        for category in called_categories(files.text(path) or ""):
            users.setdefault(category, path)
    for category in users.keys() - declared:
        yield Finding(users[category], 1, f"a call needs a reason of {category}. Add it to {file}.")
    for category in declared - users.keys():
        yield Finding(file, 1, f"{category} is declared, but no call needs it. Remove it.")


@functools.lru_cache(maxsize=None)
def called_categories(text):
    return [
        "NSPrivacyAccessedAPICategory" + name for name, calls in CATEGORIES.items()
        if re.search(rf"(?<!\w)(?:{calls})", text)
    ]
