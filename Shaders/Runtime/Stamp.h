// Made by .ci/embed-shaders: the name of the empty kernel that says which text a library was made from.
#pragma once
#define MNK_SHADER_STAMP "mnkStamp_7d3325e2a2b38e53"
