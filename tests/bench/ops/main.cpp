// Does a number of ops with one client and says what it has asked of the heap meanwhile: for callgrind and
// strace, which look at a whole process.
//
//     with_redis_nodes redlock_bench_ops "redlock sequential" 1000
//     0 of 0 allocations by C++, 1000 ops
#include "allocations.hpp"

#include "environment.hpp"
#include "field.hpp"

#include <algorithm>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>

namespace redlock::bench {
namespace {

void run(const std::string& name, std::size_t ops) {
    const Field field{nodes_of_environment()};
    const auto client = std::ranges::find(field.clients(), name, &Client::name);
    if (client == field.clients().end()) throw std::invalid_argument("no client " + name);
    auto* const local = dynamic_cast<LocalClient*>(*client);
    (void)local->run({.ops = 1000});  // buffers have grown to what they need
    const auto before = allocations();
    for (std::size_t op = 0; op < ops; ++op) {
        if (!local->acquire()) throw std::runtime_error(name + " did not get the lock");
        local->release();
    }
    const auto after = allocations();
    std::cout << after.from_cpp - before.from_cpp << " of " << after.calls - before.calls
              << " allocations by C++, " << ops << " ops\n";
}

}  // namespace
}  // namespace redlock::bench

int main(int argc, char** argv) {
    try {
        if (argc != 3) throw std::invalid_argument("usage: redlock_bench_ops CLIENT OPS");
        redlock::bench::run(argv[1], std::stoul(argv[2]));
    } catch (const std::exception& error) {
        std::cerr << "redlock_bench_ops: " << error.what() << '\n';
        return 1;
    }
}
