// Runs a program against five independent redis-servers, and sets REDLOCK_NODES to their addresses:
//
//     with_redis_nodes PROGRAM [ARGUMENT]...
//
// The exit status is that of the program, or 2 if the servers do not start.
#include "support/child_process.hpp"
#include "support/cluster.hpp"

#include <exception>
#include <iostream>

int main(int argc, char** argv) {
    using namespace redlock::support;
    if (argc < 2) {
        std::cerr << "usage: with_redis_nodes PROGRAM [ARGUMENT]...\n";
        return 2;
    }
    try {
        const Cluster cluster;
        ChildProcess program{
            {.words = {argv + 1, argv + argc}, .environment = {"REDLOCK_NODES=" + cluster.uri_list()}}};
        return program.wait();
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return 2;
    }
}
