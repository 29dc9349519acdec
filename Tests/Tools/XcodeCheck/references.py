"""Every identifier names an object of the right class, every object is used, and every path exists."""
import json
import re
from xml.etree import ElementTree

from repository import Finding, clean

PHASES = (
    "PBXSourcesBuildPhase", "PBXHeadersBuildPhase", "PBXFrameworksBuildPhase", "PBXResourcesBuildPhase",
    "PBXCopyFilesBuildPhase",
)
# The classes of the objects that a key names.
CLASSES = {
    "mainGroup": ("PBXGroup",), "productRefGroup": ("PBXGroup",), "targets": ("PBXNativeTarget",),
    "buildConfigurationList": ("XCConfigurationList",), "buildConfigurations": ("XCBuildConfiguration",),
    "baseConfigurationReference": ("PBXFileReference",), "buildPhases": PHASES, "files": ("PBXBuildFile",),
    "fileRef": ("PBXFileReference",), "dependencies": ("PBXTargetDependency",), "target": ("PBXNativeTarget",),
    "targetProxy": ("PBXContainerItemProxy",), "containerPortal": ("PBXProject",),
    "remoteGlobalIDString": ("PBXNativeTarget",), "productReference": ("PBXFileReference",),
    "fileSystemSynchronizedGroups": ("PBXFileSystemSynchronizedRootGroup",),
    "exceptions": (
        "PBXFileSystemSynchronizedBuildFileExceptionSet",
        "PBXFileSystemSynchronizedGroupBuildPhaseMembershipExceptionSet",
    ),
    "buildPhase": ("PBXCopyFilesBuildPhase",),
    "children": ("PBXGroup", "PBXFileReference", "PBXFileSystemSynchronizedRootGroup"),
}
# Variables that Xcode defines.
XCODE = {"inherited", "SRCROOT", "TARGET_NAME", "CURRENT_PROJECT_VERSION", "DEVELOPMENT_TEAM"}


def findings(project, files, paths):
    used = {project.root.id}
    for object in project.objects.values():
        for key, classes in CLASSES.items():
            for id in object.texts(key):
                used.add(id)
                got = project.objects[id].isa if id in project.objects else "nothing"
                if got not in classes:
                    message = f"{key} names {id}, {got} (expected {' or '.join(classes)}). Correct it."
                    yield project.finding(object, message)
    for object in project.objects.values():
        if object.id not in used:
            yield project.finding(object, f"nothing names {object.id}, a {object.isa}. Use it, or remove it.")
    for dependency in project.all("PBXTargetDependency"):
        proxy = project.first(dependency, "targetProxy")
        if not proxy or proxy.text("remoteGlobalIDString") != dependency.text("target"):
            yield project.finding(dependency, f"{dependency.id} and its proxy name different targets. Correct one.")
    for path in sorted(paths.values()):
        if path.endswith(".xcconfig"):
            yield from settings(project, files, path)
        elif path.endswith(".xctestplan"):
            yield from plan(project, files, path)
    for path in files.below(clean(f"{project.path}/../xcshareddata/xcschemes")):
        yield from scheme(project, files, path)


def settings(project, files, file):
    text = re.sub("//.*", "", files.text(file) or "")
    configuration = [files.text(path) or "" for path in files.below(f"{project.folder}/Configuration")]
    defined = set(re.findall(r"^(\w+) =", "\n".join(configuration), re.M))
    submodules = re.findall("path = (.*)", files.text(".gitmodules") or "")
    for used in re.findall(r"\$\((\w+)", text):
        if used not in XCODE | defined:
            yield Finding(file, 1, f"$({used}) is not defined. Correct the spelling, or define it.")
    for part in re.findall(r'\$\(SRCROOT\)([^ "\n]*)', text):
        path = clean(project.folder + part)
        in_submodule = any((path + "/").startswith(one + "/") for one in submodules)
        if not in_submodule and not files.is_file(path) and not files.is_folder(path):
            yield Finding(file, 1, f"{path} does not exist. Correct the path.")


def targets(project, file, named):
    """Each identifier with its name must be of a target."""
    for id, name in named:
        if name not in [one.name for one in project.targets if one.id == id]:
            yield Finding(file, 1, f"{id} is not the target {name}. Correct it.")


def plan(project, files, file):
    try:
        tests = [one["target"] for one in json.loads(files.text(file) or "")["testTargets"]]
        named = [(one["identifier"], one["name"]) for one in tests]
    except (ValueError, TypeError, LookupError):
        yield Finding(file, 1, "this is not a test plan. Correct it.")
        return
    yield from targets(project, file, named)
    if not named:
        yield Finding(file, 1, "no test is run. Add its target.")


def scheme(project, files, file):
    try:
        found = list(ElementTree.fromstring(files.text(file) or "").iter())
    except ElementTree.ParseError as error:
        yield Finding(file, 1, f"this is not XML: {error}. Correct it.")
        return
    built = [one.attrib for one in found if one.tag == "BuildableReference"]
    yield from targets(project, file, [(one.get("BlueprintIdentifier"), one.get("BlueprintName")) for one in built])
    for one in found:
        path = f"{project.folder}/" + one.get("reference", "").replace("container:", "")
        if one.tag == "TestPlanReference" and not files.is_file(path):
            yield Finding(file, 1, f"there is no test plan {path}. Correct it.")


def paths(project, files):
    """The locations of groups and files by identifier, from the repository, and the findings about them."""
    found, problems, seen = {}, [], set()
    waiting = [(main, project.folder) for main in project.named(project.root, "mainGroup")]
    while waiting:
        node, parent = waiting.pop()
        tree = node.text("sourceTree")
        if node.id in seen:
            problems.append(project.finding(node, f"{node.id} is in two groups. Remove it from one."))
            continue
        seen.add(node.id)
        if tree == "BUILT_PRODUCTS_DIR":
            continue
        if tree != "<group>":
            problems.append(project.finding(node, f"sourceTree is {tree} (expected <group>). Correct it."))
            continue
        path = clean(f"{parent}/{node.text('path') or ''}")
        found[node.id] = path
        # A folder that is copied whole is a reference, too.
        is_file = node.isa == "PBXFileReference" and node.text("lastKnownFileType") != "folder"
        if not (files.is_file(path) if is_file else files.is_folder(path)):
            problems.append(project.finding(node, f"{path} does not exist. Correct the path."))
        if node.isa == "PBXGroup":
            waiting += [(child, path) for child in project.named(node, "children")]
    return found, problems
