// GNUstep's headers look for the blocks runtime under libobjc2's name.
#pragma once
#include <Block.h>
