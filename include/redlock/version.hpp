// The version of redlock. CMake, pkg-config and the command `redlock` read it from here.
#pragma once

#define REDLOCK_VERSION_MAJOR 0
#define REDLOCK_VERSION_MINOR 1
#define REDLOCK_VERSION_PATCH 0

#define REDLOCK_VERSION_STRING "0.1.0"
