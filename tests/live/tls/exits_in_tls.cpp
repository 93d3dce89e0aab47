// Ends while Sentinels are asked over TLS, in the way that its first argument names:
//
//     exits_in_tls MODE NODE_TIMEOUT_MS NODE...
//
//     automatic   the nodes are destroyed before main() returns
//     static      the nodes are destroyed after main(), before OpenSSL is torn down
//     early       the nodes are destroyed after OpenSSL was torn down
//     never       exit() is called, and the nodes are never destroyed
#include <redlock/redlock.hpp>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#if __has_include(<sanitizer/lsan_interface.h>)
#include <sanitizer/lsan_interface.h>
#endif

namespace {

using namespace redlock;

std::optional<RedisNodes> early;

/// What OpenSSL allocated is not freed once OpenSSL was torn down, so it is no leak.
bool outlives_openssl = false;

void begin_looking_up(RedisNodes& nodes) {
    (void)Lock{nodes, "resource"}.try_acquire();
}

int end(std::string_view mode, const std::vector<std::string>& uris, std::chrono::milliseconds node_timeout) {
    const NodesOptions options{.node_timeout = node_timeout, .round = Round::all_at_once};
    outlives_openssl = mode == "early" || mode == "never";
    if (mode == "automatic") {
        RedisNodes nodes{uris, options};
        begin_looking_up(nodes);
    } else if (mode == "static") {
        static RedisNodes nodes{uris, options};
        begin_looking_up(nodes);
    } else if (mode == "early") {
        begin_looking_up(early.emplace(uris, options));
    } else if (mode == "never") {
        begin_looking_up(*new RedisNodes{uris, options});
        std::exit(0);  // NOLINT(concurrency-mt-unsafe): the subject of the test
    } else {
        return 2;
    }
    return 0;
}

}  // namespace

#if __has_include(<sanitizer/lsan_interface.h>)
/// LeakSanitizer calls this before it looks for leaks at exit.
int __lsan_is_turned_off() {
    return outlives_openssl ? 1 : 0;
}
#endif

int main(int argc, char** argv) {
    const std::vector<std::string> words{argv, argv + argc};
    return end(words.at(1), {words.begin() + 3, words.end()},
               std::chrono::milliseconds{std::stoi(words.at(2))});
}
