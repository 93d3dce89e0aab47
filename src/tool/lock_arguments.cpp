#include "lock_arguments.hpp"

#include "span.hpp"

namespace redlock::tool {

void LeaseArguments::add_to(Arguments& arguments) {
    arguments.span("--ttl", ttl, "How long the lock remains if its holder dies (30s)");
    arguments.number("--drift-factor", drift_factor, "The part of the ttl by which clocks may differ (0.01)");
}

void AcquireArguments::add_to(Arguments& arguments) {
    arguments.flag("-n,--nonblock,--nb", nonblock, "Do not wait for another holder");
    const auto read_wait = [this](const std::string& text) {
        wait.reset();
        if (text != "infinity") wait = parse_span(text);
    };
    arguments.value("-w,--wait,--timeout", read_wait,
                    "Wait at most this long (infinity: also for nodes that are down)", "SPAN");
    arguments.exclude("--wait", "--nonblock");
    arguments.number(
        "-E,--conflict-exit-code", [this](int status) { conflict_exit_code = status; }, 0, 255,
        "Exit status if another client holds the lock (1)");
    arguments.flag("-q,--quiet", quiet, "Print nothing if another client holds the lock");
    arguments.flag("--fencing", fencing,
                   "Number the holders, so that the protected resource can reject late ones");
    arguments.span("--retry-delay", retry_delay, "The longest pause between two attempts (200ms)");
}

}  // namespace redlock::tool
