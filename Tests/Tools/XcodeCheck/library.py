"""The products: a target links what it depends on, an app contains the framework, and the framework's module map,
includes and privacy manifest are complete."""
import functools
import plistlib
import re

from repository import Finding, Manifest, file_name

FRAMEWORK, LIBRARY, APP = (
    "com.apple.product-type." + one for one in ("framework", "library.static", "application"))
# Calls for which Apple requires a reason, by category.
CATEGORIES = {
    "FileTimestamp": r"stat\(|fstat\(|lstat\(|fstatat\(|getattrlist\(|filesystem::last_write_time\(",
    "SystemBootTime": r"mach_absolute_time\(|systemUptime",
    "DiskSpace": r"statfs\(|statvfs\(|fstatfs\(|fstatvfs\(|filesystem::space\(",
    "UserDefaults": "UserDefaults",
}


def findings(project, files, paths, targets):
    for target in project.targets:
        yield from links(project, files, paths, target)
    public = {file_name(path) for target in targets for path in target.public}
    public |= {"/".join(path.split("/")[-2:]) for target in targets for path in target.generated}
    yield from module_map(files, f"{project.folder}/Configuration/MLXNativeKernels.modulemap", public)
    # Embedded text is not code, and a .metal file neither calls C functions nor includes headers of the core.
    library = {path for one in targets if one.is_library for path in one.compiled | one.headers}
    library = sorted(path for path in library if not path.endswith(".metal"))
    for path in library:
        for number, line, message in wrong_includes(files.text(path) or ""):
            yield Finding(path, number, f"{message} (got {line}). Use them.")
    for target in targets:
        for path in target.swift:
            if re.search("(?<!#if SWIFT_PACKAGE\n)^ *import MLXNativeKernelsCore$", files.text(path) or "", re.M):
                message = "the framework has no module MLXNativeKernelsCore. Import it under #if SWIFT_PACKAGE."
                yield Finding(path, 1, message)
    yield from privacy(files, "Shaders/PrivacyInfo.xcprivacy", library)


def links(project, files, paths, target):
    """A static library does not link; what links it also links what it uses."""
    entries = {phase.isa: project.named(phase, "files") for phase in project.named(target, "buildPhases")}
    linked = [entry.text("fileRef") for entry in entries.get("PBXFrameworksBuildPhase", [])]
    copied = [paths.get(entry.text("fileRef")) for entry in entries.get("PBXResourcesBuildPhase", [])]
    type = target.text("productType")
    needed = [one for other in project.named(target, "dependencies") for one in project.named(other, "target")]
    products = [one.text("productReference") for one in needed]
    if type != LIBRARY and sorted(linked) != sorted(products):
        message = f"{target.name} does not link what it depends on, {' and '.join(one.name for one in needed)}. Link it."
        yield project.finding(target, message)
    if type == APP:
        # In the folder for frameworks, which has this number.
        embedded = [phase for phase in project.named(target, "buildPhases") if phase.text("dstSubfolderSpec") == "10"]
        embedded = [one for phase in embedded for one in project.named(phase, "files") if "CodeSignOnCopy" in str(one.fields)]
        frameworks = [one.text("productReference") for one in needed if one.text("productType") == FRAMEWORK]
        if sorted(one.text("fileRef") for one in embedded) != frameworks:
            yield project.finding(target, f"{target.name} does not embed and sign the framework. Embed it.")
        for folder in Manifest(files, "Examples").resources("JargonLM", "copy"):
            if folder not in copied:
                yield project.finding(target, f"{target.name} does not copy {folder}, which it reads. Add it.")


def module_map(files, file, public):
    """It lists the public headers for C and Objective-C."""
    general, _, objc = (files.text(file) or "").partition("requires objc")
    listed = {text: re.findall(r'^\s*header "(.*)"$', text, re.M) for text in (general, objc)}
    wanted = {name for name in public if name.endswith(".h")}
    if "umbrella header" in general + objc:
        yield Finding(file, 1, "an umbrella includes the C++ headers. List the others instead.")
    for name in sorted(wanted ^ {*listed[general], *listed[objc]}):
        what = "is missing. Add it" if name in wanted else "is not a public header for C. Remove it"
        yield Finding(file, 1, f"{name} {what}.")
    for text, names in listed.items():
        for name in names:
            if file_name(name).startswith("MNK") != (text is objc) or (listed[general] + listed[objc]).count(name) > 1:
                yield Finding(file, 1, f"{name} belongs once in the part that requires objc, or outside. Move it.")


@functools.lru_cache(maxsize=None)
def wrong_includes(text):
    """During a build, headers exist both in the sources and in the product; a header without a guard that is included
    by both paths is read twice."""
    rules = [
        (r"<MLXNativeKernels/\S*\.hpp>", "C++ headers of the core are included in quotes"),
        (r'"MLXNativeKernels/(?:Generated/)?MNK\S*"', "headers of Objective-C are imported in angle brackets"),
    ]
    return [
        (text.count("\n", 0, found.start()) + 1, found[0], message) for pattern, message in rules
        for found in re.finditer(rf"^#(?:include|import) +{pattern}.*", text, re.M)
    ]


def privacy(files, file, library):
    """The privacy manifest must give a reason for each call for which Apple requires one, and for no other."""
    try:
        manifest = plistlib.loads((files.text(file) or "").encode())
        types = manifest["NSPrivacyAccessedAPITypes"]
        declared = {one["NSPrivacyAccessedAPIType"] for one in types if one["NSPrivacyAccessedAPITypeReasons"]}
        is_tracking = manifest["NSPrivacyTracking"]
    except Exception:  # plistlib raises what its parts raise
        yield Finding(file, 1, "this is not a privacy manifest. Correct it.")
        return
    if is_tracking is not False:
        yield Finding(file, 1, "NSPrivacyTracking is not false. Set it.")
    used = {category: path for path in library for category in called_categories(files.text(path) or "")}
    for category in sorted(used.keys() - declared):
        yield Finding(used[category], 1, f"a call needs a reason of {category}. Add it to {file}.")
    for category in sorted(declared - used.keys()):
        yield Finding(file, 1, f"{category} is declared, but no call needs it. Remove it.")


@functools.lru_cache(maxsize=None)
def called_categories(text):
    return [
        "NSPrivacyAccessedAPICategory" + name for name, calls in CATEGORIES.items()
        if re.search(rf"(?<!\w)(?:{calls})", text)
    ]
