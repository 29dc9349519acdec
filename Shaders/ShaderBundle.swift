// SwiftPM makes a bundle of the kernels, and it makes bundles only for targets with source files.
