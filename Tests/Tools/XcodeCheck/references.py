"""Every identifier names an object of the right class, every key is known, every object is used; every path exists."""
from project import List, Table, Text
from repository import clean

TEXT, TEXTS, TABLE = "a string", "a list of strings", "a table"
PHASES = (
    "PBXSourcesBuildPhase", "PBXHeadersBuildPhase", "PBXFrameworksBuildPhase", "PBXResourcesBuildPhase",
    "PBXCopyFilesBuildPhase",
)


def one(*classes):
    return "one", classes


def many(*classes):
    return "many", classes


PHASE = {"buildActionMask": TEXT, "files": many("PBXBuildFile"), "runOnlyForDeploymentPostprocessing": TEXT}
# The classes of objects that the project uses, with their keys; ? marks an optional one. Any other key is a typo or
# must be added here.
RULES = {
    "PBXProject": {
        "buildConfigurationList": one("XCConfigurationList"), "mainGroup": one("PBXGroup"),
        "productRefGroup": one("PBXGroup"), "targets": many("PBXNativeTarget"), "attributes?": TABLE,
        "developmentRegion?": TEXT, "hasScannedForEncodings?": TEXT, "knownRegions?": TEXTS,
        "minimizedProjectReferenceProxies?": TEXT, "preferredProjectObjectVersion?": TEXT, "projectDirPath?": TEXT,
        "projectRoot?": TEXT,
    },
    "PBXNativeTarget": {
        "buildConfigurationList": one("XCConfigurationList"), "buildPhases": many(*PHASES),
        "dependencies": many("PBXTargetDependency"),
        "fileSystemSynchronizedGroups": many("PBXFileSystemSynchronizedRootGroup"), "name": TEXT,
        "productReference": one("PBXFileReference"), "productType": TEXT, "buildRules?": TEXTS,
        "packageProductDependencies?": TEXTS, "productName?": TEXT,
    },
    "PBXGroup": {
        "children": many("PBXGroup", "PBXFileReference", "PBXFileSystemSynchronizedRootGroup"), "sourceTree": TEXT,
        "name?": TEXT, "path?": TEXT,
    },
    "PBXFileReference": {
        "path": TEXT, "sourceTree": TEXT, "name?": TEXT, "lastKnownFileType?": TEXT, "explicitFileType?": TEXT,
        "includeInIndex?": TEXT,
    },
    "PBXFileSystemSynchronizedRootGroup": {
        "path": TEXT, "sourceTree": TEXT, "exceptions?": many("PBXFileSystemSynchronizedBuildFileExceptionSet"),
        "name?": TEXT, "explicitFileTypes?": TABLE, "explicitFolders?": TEXTS,
    },
    "PBXFileSystemSynchronizedBuildFileExceptionSet": {
        "target": one("PBXNativeTarget"), "membershipExceptions?": TEXTS, "publicHeaders?": TEXTS,
        "privateHeaders?": TEXTS,
    },
    **{phase: PHASE for phase in PHASES},
    "PBXCopyFilesBuildPhase": {**PHASE, "dstPath?": TEXT, "dstSubfolderSpec?": TEXT, "name?": TEXT},
    "PBXBuildFile": {"fileRef": one("PBXFileReference"), "settings?": TABLE},
    "PBXTargetDependency": {
        "target": one("PBXNativeTarget"), "targetProxy": one("PBXContainerItemProxy"), "platformFilter?": TEXT,
    },
    "PBXContainerItemProxy": {
        "containerPortal": one("PBXProject"), "proxyType": TEXT, "remoteGlobalIDString": one("PBXNativeTarget"),
        "remoteInfo": TEXT,
    },
    "XCConfigurationList": {
        "buildConfigurations": many("XCBuildConfiguration"), "defaultConfigurationName": TEXT,
        "defaultConfigurationIsVisible?": TEXT,
    },
    "XCBuildConfiguration": {
        "baseConfigurationReference": one("PBXFileReference"), "buildSettings": TABLE, "name": TEXT,
    },
}


def has_kind(value, kind):
    if kind == TEXTS:
        return isinstance(value, List) and all(isinstance(one, Text) for one in value)
    return isinstance(value, {TEXT: Text, TABLE: Table}[kind])


def findings(project):
    for object in project.objects.values():
        yield from fields(project, object)
    yield from unreached(project)
    yield from groups(project)
    yield from dependencies(project)
    yield from configurations(project)


def fields(project, object):
    if object.isa not in RULES:
        message = f"{object.id} is a {object.isa}, which is not known here. Correct it, or add it to RULES."
        yield project.finding(object.line, message)
        return
    rule = RULES[object.isa]
    for key in rule:
        if not key.endswith("?") and key not in object.fields:
            yield project.finding(object.line, f"{object.id}, a {object.isa}, lacks {key}. Add it.")
    for key, value in object.fields.items():
        kind = rule.get(key) or rule.get(key + "?")
        if key == "isa":
            continue
        if not kind:
            yield project.finding(key.line, f"a {object.isa} has no {key}. Correct the spelling.")
        elif isinstance(kind, str):
            if not has_kind(value, kind):
                yield project.finding(key.line, f"{key} is not {kind}. Correct it.")
        elif kind[0] == "many" and not isinstance(value, List):
            yield project.finding(key.line, f"{key} is not a list. Write ( … ).")
        else:
            ids = value if kind[0] == "many" else [value]
            for index, id in enumerate(ids):
                yield from reference(project, key, id, kind[1])
                if id in ids[:index]:
                    yield project.finding(id.line, f"{key} names {id} twice. Remove one.")


def reference(project, key, id, classes):
    expected = " or ".join(classes)
    if not isinstance(id, Text):
        yield project.finding(id.line, f"{key} is not an identifier. Write one.")
    elif id not in project.objects:
        yield project.finding(id.line, f"{key} names {id}, which does not exist (expected a {expected}). Correct it.")
    elif project.objects[id].isa not in classes:
        got = project.objects[id].isa
        yield project.finding(id.line, f"{key} names {id}, a {got} (expected a {expected}). Correct it.")


def unreached(project):
    waiting, reached = [project.root], {project.root.id}
    while waiting:
        for value in waiting.pop().fields.values():
            ids = {id for id in (value if isinstance(value, List) else [value]) if isinstance(id, Text)}
            waiting += [project.objects[id] for id in ids - reached if id in project.objects]
            reached |= ids
    for object in project.objects.values():
        if object.id not in reached:
            yield project.finding(object.line, f"nothing leads to {object.id}, a {object.isa}. Use it, or remove it.")


def groups(project):
    """The navigator is a tree."""
    parents = {}
    for group in project.all("PBXGroup"):
        for child in group.texts("children"):
            if child in parents:
                message = f"{child} is already in a group, see line {parents[child]}. Remove one."
                yield project.finding(child.line, message)
            parents[child] = child.line
    for node in project.all("PBXFileReference", "PBXFileSystemSynchronizedRootGroup"):
        if node.id not in parents:
            yield project.finding(node.line, f"{node.id}, a {node.isa}, is in no group. Add it to one.")


def dependencies(project):
    for dependency in project.all("PBXTargetDependency"):
        proxy, target = project.first(dependency, "targetProxy"), project.first(dependency, "target")
        if not proxy or proxy.text("remoteGlobalIDString") != dependency.text("target"):
            message = f"{dependency.id} and its proxy name different targets. Correct one."
            yield project.finding(dependency.line, message)
        if proxy and target and proxy.text("remoteInfo") != target.text("name"):
            message = f"remoteInfo is {proxy.text('remoteInfo')} (expected {target.text('name')}). Set it."
            yield project.finding(proxy.line, message)


def configurations(project):
    expected = ["Debug", "Release"]
    for list in project.all("XCConfigurationList"):
        names = [one.name for one in project.named(list, "buildConfigurations")]
        if sorted(names) != expected:
            message = f"a target's configurations are {names} (expected {expected}). Correct them."
            yield project.finding(list.line, message)
        default = list.text("defaultConfigurationName")
        if default and default not in names:
            message = f"defaultConfigurationName is {default} (expected one of {names}). Correct it."
            yield project.finding(list.line, message)


def paths(project, files):
    """The locations of groups and files by identifier, from the repository, and the findings about them."""
    found, problems, seen = {}, [], set()
    waiting = [(main, project.folder) for main in project.named(project.root, "mainGroup")]
    while waiting:
        node, parent = waiting.pop()
        tree = node.text("sourceTree")
        # A group that is its own descendant is reported as one with two parents.
        if node.id in seen or tree == "BUILT_PRODUCTS_DIR":
            continue
        seen.add(node.id)
        if tree not in ("<group>", "SOURCE_ROOT"):
            message = f"sourceTree is {tree} (expected <group>, SOURCE_ROOT or BUILT_PRODUCTS_DIR). Correct it."
            problems.append(project.finding(node.line, message))
            continue
        path = clean(f"{parent if tree == '<group>' else project.folder}/{node.text('path') or ''}")
        found[node.id] = path
        # A folder that is copied whole is a reference, too.
        is_file = node.isa == "PBXFileReference" and node.text("lastKnownFileType") != "folder"
        if not (files.is_file(path) if is_file else files.is_folder(path)):
            what = "file" if is_file else "folder"
            problems.append(project.finding(node.line, f"there is no {what} {path}. Correct the path."))
        if node.isa == "PBXGroup":
            waiting += [(child, path) for child in project.named(node, "children")]
    return found, problems
