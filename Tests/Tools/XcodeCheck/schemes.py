"""What shared schemes build, run and test is in the project. One test plan runs every test of the project; another,
selected by name because it takes long, runs them with Metal's validation and with each sanitizer."""
import json
import uuid
from xml.parsers import expat

from repository import Finding, clean

UNIT_TEST = "com.apple.product-type.bundle.unit-test"
OPTIONS = {
    "addressSanitizer", "environmentVariableEntries", "threadSanitizerEnabled", "undefinedBehaviorSanitizerEnabled",
}
# A debugger would stop at the traps that tests cause on purpose, before the handlers that the tests are about.
WITHOUT_DEBUGGER = {
    "selectedDebuggerIdentifier": "",
    "selectedLauncherIdentifier": "Xcode.IDEFoundation.Launcher.PosixSpawn",
}


def findings(project, files, paths):
    folder = clean(f"{project.path}/../xcshareddata/xcschemes")
    schemes = [path for path in files.below(folder) if path.endswith(".xcscheme")]
    if not schemes:
        yield Finding(folder, 1, "there is no shared scheme. Add one.")
    for scheme in schemes:
        for line, message in scheme_problems(project, files, files.text(scheme) or ""):
            yield Finding(scheme, line, message)
    plans = sorted({path for path in paths.values() if path.endswith(".xctestplan")})
    if not plans:
        yield project.finding(1, "the project has no test plan. Add one.")
    for plan in plans:
        for message in plan_problems(project, plan, files.text(plan) or ""):
            yield Finding(plan, 1, message)


def elements(text):
    """The elements of an XML text: lines, names and attributes."""
    found, parser = [], expat.ParserCreate()
    parser.StartElementHandler = lambda name, attributes: found.append((parser.CurrentLineNumber, name, attributes))
    parser.Parse(text, True)
    return found


def scheme_problems(project, files, text):
    targets = {target.id: target for target in project.targets}
    try:
        found = elements(text)
    except expat.ExpatError as error:
        yield error.lineno, f"this is not XML: {error}. Correct it."
        return
    for line, name, attributes in found:
        configuration = attributes.get("buildConfiguration")
        if configuration and configuration not in project.configurations:
            yield line, f"there is no configuration {configuration}. Correct {name}."
        for key, value in WITHOUT_DEBUGGER.items() if name == "TestAction" else []:
            if attributes.get(key) != value:
                yield line, f'tests run in a debugger: {key} is {attributes.get(key)} (expected "{value}"). Set it.'
        if name == "TestPlanReference":
            plan = attributes.get("reference", "")
            if not plan.startswith("container:") or not files.is_file(f"{project.folder}/{plan[len('container:'):]}"):
                yield line, f"there is no test plan {plan}. Correct it."
        if name == "BuildableReference":
            id = attributes.get("BlueprintIdentifier")
            if id not in targets:
                yield line, f"BlueprintIdentifier {id} is not a target of the project. Correct it."
                continue
            product = project.first(targets[id], "productReference")
            expected = {
                "BlueprintName": targets[id].text("name"), "BuildableName": product and product.text("path"),
                "ReferencedContainer": project.container,
            }
            for key, value in expected.items():
                if attributes.get(key) != value:
                    yield line, f"{key} is {attributes.get(key)} (expected {value}). Correct it."


def kept(value, kind):
    """The value, or an empty one if it has another type."""
    return value if isinstance(value, kind) else kind()


def tables(value):
    return [kept(one, dict) for one in kept(value, list)]


def plan_problems(project, file, text):
    try:
        plan = json.loads(text)
    except ValueError:
        plan = None
    if not isinstance(plan, dict):
        yield "this is not a JSON object. Correct it."
        return
    if plan.get("version") != 1:
        yield "version is not 1. Set it."
    all = tables(plan.get("configurations"))
    names = [kept(one.get("name"), str) for one in all]
    is_of_checks = file.endswith("/Checks.xctestplan")
    expected = ["Validation", "Address Sanitizer", "Thread Sanitizer"] if is_of_checks else ["Default"]
    if names != expected:
        yield f"the configurations are {names} (expected {expected}). Correct them."
    if len({one.get("id") for one in all if is_uuid(one.get("id"))}) != len(all):
        yield "an id of a configuration is not a UUID, or is used twice. Give each its own."
    for name, one in zip(names, all):
        yield from option_problems(name, kept(one.get("options"), dict))
    yield from option_problems("defaultOptions", kept(plan.get("defaultOptions"), dict))
    missing = {one.id: one for one in project.targets if one.text("productType") == UNIT_TEST}
    for target in tables(plan.get("testTargets")):
        target = kept(target.get("target"), dict)
        id = target.get("identifier")
        if id not in missing:
            yield f"testTargets names {id}, which is not a test target, or is named twice. Correct it."
            continue
        for key, value in {"name": missing.pop(id).name, "containerPath": project.container}.items():
            if target.get(key) != value:
                yield f"{key} of {id} is {target.get(key)} (expected {value}). Correct it."
    for target in missing.values():
        yield f"no test of {target.name} is run. Add it."


def is_uuid(text):
    try:
        return bool(uuid.UUID(text))
    except (AttributeError, TypeError, ValueError):
        return False


def option_problems(name, options):
    for key in sorted(options.keys() - OPTIONS):
        yield f"{name} has an option {key}, which is not known here. Correct the spelling, or add it to OPTIONS."
    variables = {one.get("key"): one.get("value") for one in tables(options.get("environmentVariableEntries"))}
    for variable in ["MTL_DEBUG_LAYER", "MTL_SHADER_VALIDATION"] if name == "Validation" else []:
        if variables.get(variable) != "1":
            yield f"Validation does not set {variable} to 1. Add it."
    if name == "Address Sanitizer" and kept(options.get("addressSanitizer"), dict).get("enabled") is not True:
        yield f"{name} does not turn addressSanitizer on. Set enabled."
    if name == "Thread Sanitizer" and options.get("threadSanitizerEnabled") is not True:
        yield f"{name} is not turned on. Set threadSanitizerEnabled."
