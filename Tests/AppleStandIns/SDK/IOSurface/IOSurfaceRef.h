// Stands for Apple's header.
#pragma once
typedef struct __IOSurface* IOSurfaceRef;
