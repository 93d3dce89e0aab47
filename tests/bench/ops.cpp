// Runs a number of ops with one client, and prints how often it allocated memory meanwhile. It serves
// callgrind and strace, which observe a whole process.
//
//     with_redis_nodes redlock_bench_ops "redlock sequential" 1000
//     0 of 0 allocations by C++, 1000 ops
#include "asio_client.hpp"
#include "field.hpp"
#include "loop_client.hpp"
#include "raw_client.hpp"

#include "support/redlock_nodes.hpp"

#include <algorithm>
#include <cerrno>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

// The functions of glibc, under the names that it offers to programs which replace the usual ones.
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
void __libc_free(void* memory);
}

namespace {

/// How often this thread has allocated memory.
struct Allocations {
    std::uint64_t calls;     ///< of malloc, calloc, realloc and similar functions, by any caller
    std::uint64_t from_cpp;  ///< those of them made by operator new
};
constinit thread_local Allocations counted{};

}  // namespace

// These functions precede those of the C library, for the whole program and its shared libraries.
extern "C" {

void* malloc(std::size_t size) {
    ++counted.calls;
    return __libc_malloc(size);
}

void* calloc(std::size_t count, std::size_t size) {
    ++counted.calls;
    return __libc_calloc(count, size);
}

void* realloc(void* memory, std::size_t size) {
    ++counted.calls;
    return __libc_realloc(memory, size);
}

void* aligned_alloc(std::size_t alignment, std::size_t size) {
    ++counted.calls;
    return __libc_memalign(alignment, size);
}

int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
    *memory = aligned_alloc(alignment, size);
    return *memory != nullptr ? 0 : ENOMEM;
}

void free(void* memory) {
    __libc_free(memory);
}

}  // extern "C"

void* operator new(std::size_t size) {
    ++counted.from_cpp;
    if (auto* const memory = malloc(size > 0 ? size : 1)) return memory;
    throw std::bad_alloc{};
}

void operator delete(void* memory) noexcept {
    free(memory);
}

void operator delete(void* memory, std::size_t) noexcept {
    free(memory);
}

namespace redlock::bench {
namespace {

void run(LocalClient& client, std::size_t ops) {
    for (std::size_t op = 0; op < ops; ++op) {
        if (!client.acquire()) throw std::runtime_error(client.name() + " did not get the lock");
        client.release();
    }
}

template <std::derived_from<Client> LoopOrAsioClient>
void run(LoopOrAsioClient& client, std::size_t ops) {
    if (client.run({.ops = ops}).failed > 0)
        throw std::runtime_error(client.name() + " did not get all locks");
}

template <class AnyClient>
void measure(AnyClient& client, std::size_t ops) {
    (void)client.run({.ops = 1000});  // grows the buffers to the size that they need
    const auto before = counted;
    run(client, ops);
    const auto after = counted;
    std::cout << after.from_cpp - before.from_cpp << " of " << after.calls - before.calls
              << " allocations by C++, " << ops << " ops\n";
}

/// Returns the number at the end of the name, or nothing if the name does not begin with this.
std::optional<std::size_t> count_in(std::string_view name, std::string_view beginning) {
    if (!name.starts_with(beginning)) return std::nullopt;
    return std::stoul(std::string{name.substr(beginning.size())});
}

/// A client whose name has a number makes so many ops at the same time in one thread.
void run(const std::string& name, std::size_t ops) {
    const auto uris = support::redlock_nodes();
    if (const auto count = count_in(name, "redlock, a loop with ")) {
        LoopClient client{name, uris, *count};
        return measure(client, ops);
    }
    if (const auto count = count_in(name, "redlock, Asio with ")) {
        AsioClient client{name, uris, *count};
        return measure(client, ops);
    }
    if (const auto count = count_in(name, "raw, 1 thread that pipelines ")) {
        std::vector<std::string> resources;
        for (std::size_t i = 0; i < *count; ++i) resources.push_back("bench:raw--" + std::to_string(i));
        RawClient client{uris, RawClient::Way::multiplexed, resources};
        return measure(static_cast<LocalClient&>(client), ops / *count);
    }
    const Field field{uris};
    const auto client = std::ranges::find(field.clients(), name, &Client::name);
    if (client == field.clients().end()) throw std::invalid_argument("no client " + name);
    measure(dynamic_cast<LocalClient&>(**client), ops);
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
