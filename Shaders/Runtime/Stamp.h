// Made by .ci/embed-shaders: the name of the empty kernel that says which text a library was made from.
#pragma once
#define MNK_SHADER_STAMP "mnkStamp_1692a7253fa39bf6"
