// The source file with which a program compiles the library.
#include <redlock/src.hpp>
