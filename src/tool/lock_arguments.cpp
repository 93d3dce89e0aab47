#include "lock_arguments.hpp"

#include "span.hpp"

namespace redlock::tool {

void LeaseArguments::add_to(Arguments& arguments) {
    arguments.span("--ttl", ttl, "The lease: how long the lock outlives its holder (30s)");
    arguments.number("--drift-factor", drift_factor, "Share of the ttl by which clocks may differ (0.01)");
}

void AcquireArguments::add_to(Arguments& arguments) {
    arguments.flag("-n,--nonblock", nonblock, "One attempt; do not wait for another holder");
    arguments.value(
        "-w,--wait", [this](const std::string& text) { wait = parse_span(text); },
        "Wait that long at most (default: for as long as others hold it)", "SPAN");
    arguments.exclude("--wait", "--nonblock");
    arguments.number(
        "-E,--conflict-exit-code", [this](int status) { conflict_exit_code = status; }, 0, 255,
        "Exit status when another holds it (1)");
    arguments.flag("--fencing", fencing, "Number the holders, for the guarded store to check");
    arguments.span("--retry-delay", retry_delay, "The longest pause between two attempts (200ms)");
}

}  // namespace redlock::tool
