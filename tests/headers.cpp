// An empty source, for which the precompiled headers of the tests are compiled, see CMakeLists.txt.
