// Made by .ci/embed-shaders: the name of the empty kernel that says which text a library was made from.
#pragma once
#define MNK_SHADER_STAMP "mnkStamp_ff43c32bb4b3b10a"
