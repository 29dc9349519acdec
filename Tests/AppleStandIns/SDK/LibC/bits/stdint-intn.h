// Stands for glibc's header, which makes 64 bits a long. On Apple's systems they are a long long, so that std::max of a
// size_t and a uint64_t, say, does not compile.
#pragma once
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
