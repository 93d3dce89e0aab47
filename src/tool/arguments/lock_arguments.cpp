#include "lock_arguments.hpp"

namespace redlock::tool {

void add_lease(CLI::App& app, LockOptions& lock) {
    add_span(app, "--ttl", lock.ttl, "How long the lock remains if its holder dies (30s)");
    app.add_option("--drift-factor", lock.drift_factor,
                   "The part of the ttl by which clocks may differ (0.01)");
}

void LockArguments::add_acquisition(CLI::App& app) {
    app.add_flag("-n,--nonblock,--nb", nonblock, "Do not wait for another holder");
    const auto read_wait = [this](const std::string& text) {
        if (text != "infinity") wait = parse_span(text);
    };
    add_value(app, "-w,--wait,--timeout", read_wait,
              "Wait at most this long (infinity: also for nodes that are down)", "SPAN")
        ->excludes("--nonblock");
    app.add_option("-E,--conflict-exit-code", conflict_exit_code,
                   "Exit status if another client holds the lock (1)")
        ->check(CLI::Range(0, 255));
    app.add_flag("-q,--quiet", quiet, "Print nothing if another client holds the lock");
    app.add_flag("--fencing", lock.fencing,
                 "Number the holders, so that the protected resource can reject late ones");
    add_span(app, "--retry-delay", lock.retry.delay, "The longest pause between two attempts (200ms)");
}

}  // namespace redlock::tool
