// Nothing: the headers that the tests share are compiled for it, see CMakeLists.txt.
