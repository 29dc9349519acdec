// Darwin's math.h asks for a part of float.h, which libc++ as LLVM publishes it takes for the whole, and gives no more.
#ifdef __need_infinity_nan
#include_next <float.h>
#undef _LIBCPP_FLOAT_H
#else
#include_next <float.h>
#endif
