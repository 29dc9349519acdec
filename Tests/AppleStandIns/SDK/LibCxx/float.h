// Darwin's math.h requests a part of float.h. LLVM's libc++ treats that as the whole header and then provides no more.
#ifdef __need_infinity_nan
#include_next <float.h>
#undef _LIBCPP_FLOAT_H
#else
#include_next <float.h>
#endif
