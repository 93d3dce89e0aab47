// A header of the program. The library has one of this name in src/os.
#pragma once

#ifdef REDLOCK_PROGRAM
inline constexpr bool own_network = true;
#else
#error "the library includes a header of the program"
#endif
