// The version of this package, for every language; CHANGELOG.md lists what each version changed.
#ifndef MNK_VERSION_H
#define MNK_VERSION_H

#define MNK_VERSION_MAJOR 0
#define MNK_VERSION_MINOR 2
#define MNK_VERSION "0.2.0"

#endif
