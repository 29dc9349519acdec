/// The kind of a key's value in a project object.
enum FieldKind: Sendable {
    case text
    case texts
    case table
    /// The identifier of an object of one of these classes.
    case one([String])
    /// A list of such identifiers.
    case many([String])
}

/// The classes of objects that the project uses, with their keys. Any other key is a typo or must be added here.
struct ObjectRule: Sendable {
    let required: [String: FieldKind]
    let optional: [String: FieldKind]

    private init(_ required: [String: FieldKind], optional: [String: FieldKind] = [:]) {
        self.required = required
        self.optional = optional
    }

    static let phases = [
        "PBXSourcesBuildPhase", "PBXHeadersBuildPhase", "PBXFrameworksBuildPhase", "PBXResourcesBuildPhase",
        "PBXCopyFilesBuildPhase",
    ]
    private static let nodes = ["PBXGroup", "PBXFileReference", "PBXFileSystemSynchronizedRootGroup"]
    private static let phase: [String: FieldKind] = [
        "buildActionMask": .text, "files": .many(["PBXBuildFile"]), "runOnlyForDeploymentPostprocessing": .text,
    ]

    static let all: [String: ObjectRule] = [
        "PBXProject": ObjectRule(
            [
                "buildConfigurationList": .one(["XCConfigurationList"]), "mainGroup": .one(["PBXGroup"]),
                "productRefGroup": .one(["PBXGroup"]), "targets": .many(["PBXNativeTarget"]),
            ],
            optional: [
                "attributes": .table, "developmentRegion": .text, "hasScannedForEncodings": .text,
                "knownRegions": .texts, "minimizedProjectReferenceProxies": .text,
                "preferredProjectObjectVersion": .text, "projectDirPath": .text, "projectRoot": .text,
            ]),
        "PBXNativeTarget": ObjectRule(
            [
                "buildConfigurationList": .one(["XCConfigurationList"]), "buildPhases": .many(phases),
                "dependencies": .many(["PBXTargetDependency"]),
                "fileSystemSynchronizedGroups": .many(["PBXFileSystemSynchronizedRootGroup"]), "name": .text,
                "productReference": .one(["PBXFileReference"]), "productType": .text,
            ],
            optional: ["buildRules": .texts, "packageProductDependencies": .texts, "productName": .text]),
        "PBXGroup": ObjectRule(
            ["children": .many(nodes), "sourceTree": .text], optional: ["name": .text, "path": .text]),
        "PBXFileReference": ObjectRule(
            ["path": .text, "sourceTree": .text],
            optional: [
                "name": .text, "lastKnownFileType": .text, "explicitFileType": .text, "includeInIndex": .text,
            ]),
        "PBXFileSystemSynchronizedRootGroup": ObjectRule(
            ["path": .text, "sourceTree": .text],
            optional: [
                "exceptions": .many(["PBXFileSystemSynchronizedBuildFileExceptionSet"]), "name": .text,
                "explicitFileTypes": .table, "explicitFolders": .texts,
            ]),
        "PBXFileSystemSynchronizedBuildFileExceptionSet": ObjectRule(
            ["target": .one(["PBXNativeTarget"])],
            optional: ["membershipExceptions": .texts, "publicHeaders": .texts, "privateHeaders": .texts]),
        "PBXSourcesBuildPhase": ObjectRule(phase),
        "PBXHeadersBuildPhase": ObjectRule(phase),
        "PBXFrameworksBuildPhase": ObjectRule(phase),
        "PBXResourcesBuildPhase": ObjectRule(phase),
        "PBXCopyFilesBuildPhase": ObjectRule(
            phase, optional: ["dstPath": .text, "dstSubfolderSpec": .text, "name": .text]),
        "PBXBuildFile": ObjectRule(["fileRef": .one(["PBXFileReference"])], optional: ["settings": .table]),
        "PBXTargetDependency": ObjectRule(
            ["target": .one(["PBXNativeTarget"]), "targetProxy": .one(["PBXContainerItemProxy"])],
            optional: ["platformFilter": .text]),
        "PBXContainerItemProxy": ObjectRule([
            "containerPortal": .one(["PBXProject"]), "proxyType": .text,
            "remoteGlobalIDString": .one(["PBXNativeTarget"]), "remoteInfo": .text,
        ]),
        "XCConfigurationList": ObjectRule(
            ["buildConfigurations": .many(["XCBuildConfiguration"]), "defaultConfigurationName": .text],
            optional: ["defaultConfigurationIsVisible": .text]),
        "XCBuildConfiguration": ObjectRule(
            ["baseConfigurationReference": .one(["PBXFileReference"]), "buildSettings": .table, "name": .text]),
    ]

    func kind(of key: String) -> FieldKind? { required[key] ?? optional[key] }
}
