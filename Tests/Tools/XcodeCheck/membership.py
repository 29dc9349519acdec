"""What each target compiles, copies and publishes, by Xcode's rules: its folders minus the exceptions. The project must
build what the package builds on a Mac: each file in one target, Linux-only files in none."""
import re
from collections import Counter

from repository import Finding, Manifest, file_name, kind, within

COMPILED = {"c", "m", "mm", "cpp", "swift", "metal"}
HEADERS = {"h", "hpp"}
# Resources that a product may have.
RESOURCES = {"docc", "xcprivacy", "xcassets"}

TEST_FOLDER = "Tests/Core"
# Folders whose files are compiled on a Mac, and their target.
FOLDERS = {
    "Sources/MLXNativeKernelsCore": "MLXNativeKernels", "Sources/MLXNativeKernels": "MLXNativeKernels",
    "Shaders": "MLXNativeKernels", "Sources/MLXNativeKernelsHost": "MLXNativeKernelsHost",
    "Tests/MLXNativeKernelsTests": "MLXNativeKernelsTests", TEST_FOLDER: "MLXNativeKernelsTests",
    "Tests/MLXNativeKernelsObjCTests": "MLXNativeKernelsTests", "Examples/JargonLM": "DecodeDemo",
    "Examples/DecodeDemo": "DecodeDemo",
}
# Folders with C++ files that the package compiles through unified files, and its targets there.
UNIFIED = {
    "Sources/MLXNativeKernelsCore": ["MLXNativeKernelsCore"],
    "Sources/MLXNativeKernelsHost": ["MLXNativeKernelsHost"],
    TEST_FOLDER: ["MLXNativeKernelsCoreTests", "MLXNativeKernelsTestSupport"],
}


class Target:
    """Paths are from the repository."""

    def __init__(self, project, files, paths, object):
        self.object, self.name = object, object.name
        self.is_framework = object.text("productType") == "com.apple.product-type.framework"
        self.compiled, self.headers, self.public, self.generated, self.copied = set(), set(), set(), set(), []
        for group in project.named(object, "fileSystemSynchronizedGroups"):
            folder = paths.get(group.id)
            if not folder:
                continue
            sets = [one for one in project.named(group, "exceptions") if one.text("target") == object.id]
            excepted = {f"{folder}/{path}" for one in sets for path in one.texts("membershipExceptions")}
            self.public |= {f"{folder}/{path}" for one in sets for path in one.texts("publicHeaders")}
            self.generated |= set(generated_headers(project, object, group, folder))
            for path in files.below(folder):
                if path in excepted:
                    continue
                if kind(path) in COMPILED:
                    self.compiled.add(path)
                elif kind(path) in HEADERS:
                    self.headers.add(path)
                elif kind(path) not in RESOURCES:
                    self.copied.append((group, path))
        # Whether it is part of the library: the framework or the Host device.
        self.is_library = any(path.startswith("Sources/") for path in self.compiled)
        self.swift = sorted(path for path in self.compiled if path.endswith(".swift"))


def generated_headers(project, target, group, folder):
    """The headers that a phase copies into the folder of public headers, below it as in the sources."""
    for one in project.named(group, "exceptions"):
        phase = project.first(one, "buildPhase")
        if phase and phase.id in target.texts("buildPhases") and phase.text("dstSubfolderSpec") == "16":
            below = phase.text("dstPath").removeprefix("$(PUBLIC_HEADERS_FOLDER_PATH)")
            for path in one.texts("membershipExceptions"):
                if path.rpartition("/")[0].endswith(below) and below:
                    yield f"{folder}/{path}"


def same_names(paths):
    return [(name, count) for name, count in Counter(map(file_name, paths)).items() if count > 1]


def findings(project, files, paths, targets):
    for group in project.all("PBXFileSystemSynchronizedRootGroup"):
        if group.id in paths:
            yield from exceptions(project, files, group, paths[group.id])
    for target in targets:
        for group, path in target.copied:
            message = f"{path} would be copied into {target.name} as a resource. Add it to membershipExceptions."
            yield project.finding(group, message)
        for file, count in same_names(target.swift):
            message = f"{target.name} has {count} files called {file}, which Swift refuses. Rename one."
            yield project.finding(target.object, message)
        if target.is_framework:
            yield from published(project, target)
    if files.text(Manifest.path) is None:
        yield Finding(Manifest.path, 1, "there is no such file. Restore it.")
    else:
        yield from package(project, files, targets)


def exceptions(project, files, group, folder):
    found = set(files.below(folder))
    for one in project.named(group, "exceptions"):
        owner = project.first(one, "target")
        if owner and group.id not in owner.texts("fileSystemSynchronizedGroups"):
            message = f"{one.id} excepts files of {folder} from {owner.name}, which lacks that folder. Correct it."
            yield project.finding(one, message)
        seen = set()
        for key in ("membershipExceptions", "publicHeaders", "privateHeaders"):
            for path in one.texts(key):
                if f"{folder}/{path}" not in found:
                    yield project.finding(one, f"{key}: there is no file {folder}/{path}. Remove the line.")
                if path in seen:
                    yield project.finding(one, f"{path} is named twice. Remove one.")
                seen.add(path)


def published(project, target):
    """Headers in a folder `include` must be public, and no others."""
    meant = {path for path in target.headers if "/include/" in path}
    for path in meant - target.public - target.generated:
        place = "headers that a phase copies" if "/Generated/" in path else f"publicHeaders of {target.name}"
        yield project.finding(target.object, f"{path} is not among the {place}. Add it.")
    for path in (target.public | target.generated) - meant:
        message = f"{path} is a public header of {target.name}, but is not in a folder include. Remove it."
        yield project.finding(target.object, message)
    for file, count in same_names(target.public):
        message = f"{count} public headers are called {file}, and all are copied into one folder. Rename one."
        yield project.finding(target.object, message)


def is_for_swiftpm(path):
    """Xcode compiles the files that a unified file includes, and creates no bundle of the kernels."""
    return "/Unified" in path or path == "Shaders/ShaderBundle.swift"


def included(files, folder, unified):
    """The C++ files of a folder that unified files include."""
    texts = "\n".join(files.text(path) or "" for path in unified)
    return {f"{folder}/{path}" for path in re.findall(r'^#include "(.*\.cpp)"', texts, re.M)}


def package(project, files, targets):
    manifest = Manifest(files)
    # Tests of the software Metal, which a Mac lacks.
    soft = included(files, TEST_FOLDER, files.below(f"{TEST_FOLDER}/UnifiedMetal"))
    soft = tuple("/".join(path.split("/")[:3]) + "/" for path in soft)
    wanted = {
        path: target
        for folder, target in FOLDERS.items() for path in files.below(folder)
        if kind(path) in COMPILED and not is_for_swiftpm(path) and not path.startswith(soft)
    }
    owners = {}
    for target in targets:
        for path in target.compiled:
            owners.setdefault(path, []).append(target.name)
            if path not in wanted:
                why = "is for SwiftPM alone" if is_for_swiftpm(path) else "the package does not compile for a Mac"
                message = f"{target.name} compiles {path}, which {why}. Add it to membershipExceptions."
                yield project.finding(target.object, message)
    for path, target in wanted.items():
        if owners.get(path) != [target]:
            got = " and ".join(sorted(owners.get(path, ["no target"])))
            yield project.finding(project.root, f"{path} is compiled by {got} (expected {target} alone). Correct the folders.")
    for folder, names in UNIFIED.items():
        sources = [source for name in names for source in manifest.sources(name)]
        compiled = {path for path in files.below(folder) if any(within(path, source) for source in sources)}
        compiled |= included(files, folder, filter(is_for_swiftpm, compiled))
        for path in wanted:
            if path.startswith(folder + "/") and path not in compiled:
                message = f"the package does not compile this file. Include it in a file in {folder}/Unified."
                yield Finding(path, 1, message)
    listed = set(manifest.resources("MLXNativeKernelsShaders", "process"))
    compiled = {path for path in owners if path.endswith(".metal")}
    for path in listed ^ compiled:
        has, lacks = ("package", "project") if path in listed else ("project", "package")
        yield Finding(Manifest.path, 1, f"the {has} compiles {path}, and the {lacks} does not. Add it there.")
